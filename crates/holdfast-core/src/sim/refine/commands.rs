//! The random commands of a list: each is drawn from its own dice and from what the book and the model hold, so that a list
//! with some of its commands left out is still a list. Here are those that claim.

use holdfast_replay::event::StoredEvent;

use super::{
    super::{claims::turn_key, program::Dice},
    answers,
    book::{Book, TaskLease, TurnLease, remember},
    names::{Line, Names},
    sides::{Sides, ask},
};
use crate::{
    error::{Error, Result},
    store::{
        NodeKey, TagFilter,
        activity::{Lane, Terms},
        replay_version::{self, ReplayRange},
        turn::{ClaimRequest, ClaimedTurn},
    },
};

/// Why a list stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The sides do not agree.
    Mismatch(String),
    /// The database cannot be asked.
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

pub(super) type Step = std::result::Result<(), Stop>;

/// One list on its way.
pub(super) struct Run<'a> {
    pub(super) sides: &'a mut Sides,
    pub(super) names: Names,
    pub(super) book: Book,
    pub(super) dice: Dice,
    /// What was done, command by command, when somebody wants to read it.
    pub(super) told: Option<Vec<String>>,
}

/// Both answers, when both sides answered; an error that both give is an answer too.
pub(super) fn both<T>((fake, real): (Result<T>, Result<T>)) -> std::result::Result<Option<(T, T)>, Stop> {
    match (fake, real) {
        (Ok(fake), Ok(real)) => Ok(Some((fake, real))),
        (Err(fake), Err(real)) if fake.kind() == real.kind() => Ok(None),
        (Ok(_), Err(real)) => Err(Stop::Mismatch(format!("only the database fails: {}", real.full_text()))),
        (Err(fake), Ok(_)) => Err(Stop::Mismatch(format!("only the model fails: {}", fake.full_text()))),
        (Err(fake), Err(real)) => {
            Err(Stop::Mismatch(format!("model: {}, database: {}", fake.full_text(), real.full_text())))
        }
    }
}

pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, fake: &T, real: &T) -> Step {
    if fake == real {
        return Ok(());
    }
    Err(Stop::Mismatch(format!("{what}\n    model:    {fake:?}\n    database: {real:?}")))
}

pub(super) const NAMES: [&str; 2] = ["p", "q"];
pub(super) const HANDLERS: [&str; 3] = ["p@1", "q@1", "p@2"];
pub(super) const ACTIVITIES: [&str; 2] = ["a", "b"];
const MAX_ATTEMPTS: i32 = 3;

pub(super) fn strings(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

impl Run<'_> {
    pub(super) fn say(&mut self, text: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(format!("{} {}", self.sides.model.now % 1_000_000_000, text()));
        }
    }

    pub(super) fn agree(&mut self, what: &str, fake: Vec<Line>, real: Vec<Line>) -> Step {
        self.names.agree(fake, real).map_err(|text| Stop::Mismatch(format!("{what}: {text}")))
    }

    /// Two nodes, before the first command.
    pub(super) async fn begin(&mut self) -> Step {
        self.register(0).await?;
        self.register(1).await
    }

    /// The command of these dice.
    pub(super) async fn command(&mut self, dice: Dice) -> Step {
        self.dice = dice;
        self.pass_time().await?;
        match self.dice.below(100) {
            0..=9 => self.clients().await,
            10..=29 => self.claim_turns().await,
            30..=54 => self.settle().await,
            55..=66 => self.claim_tasks().await,
            67..=70 => self.run_again().await,
            71..=75 => self.renew().await,
            76..=80 => self.give_back().await,
            81..=84 => self.questions().await,
            85..=87 => self.beat().await,
            88..=91 => self.heartbeats().await,
            92 => self.sweep().await,
            93..=94 => self.look().await,
            95 => {
                let number = self.dice.below(3);
                self.register(number).await
            }
            96 => self.goodbye().await,
            97 => self.sessions().await,
            98 => self.standalone().await,
            99 => self.manage().await,
            _ => self.release_unknown().await,
        }
    }

    async fn pass_time(&mut self) -> Step {
        let step = match self.dice.below(20) {
            0..=2 => 0,
            3 => self.dice.between(1_000, 20_000).cast_signed(),
            4..=6 => self.dice.between(100, 2_000).cast_signed(),
            7 => -self.dice.between(1, 3_000).cast_signed(),
            _ => self.dice.between(1, 20).cast_signed(),
        };
        self.sides.model.now += step;
        self.sides.tell_time().await?;
        Ok(())
    }

    pub(super) fn any_node(&mut self) -> NodeKey {
        let nodes = &self.book.nodes;
        // The newest ones are alive, most of the time.
        let back = self.dice.below(4).min(self.dice.below(4)).min(nodes.len() as u64 - 1);
        nodes[nodes.len() - 1 - usize::try_from(back).unwrap_or(0)].clone()
    }

    /// Histories of all versions, most of the time.
    pub(super) fn replay(&mut self) -> ReplayRange {
        let own = replay_version::current();
        match self.dice.below(10) {
            0 => ReplayRange { min: own, max: own },
            1 => ReplayRange { min: own + 1, max: i64::MAX },
            _ => ReplayRange::ALL,
        }
    }

    pub(super) fn tags(&mut self) -> TagFilter {
        match self.dice.below(6) {
            0..=1 => TagFilter::default_only(),
            2 => TagFilter::any(),
            3 => TagFilter::tags(strings(&["s"])),
            4 => TagFilter::tags(strings(&["s", "t"])),
            _ => TagFilter::default_and(strings(&["t"])),
        }
    }

    pub(super) fn lease_ms(&mut self) -> i64 {
        [1, 500, 3_000, 8_000][usize::try_from(self.dice.below(4)).unwrap_or(0)]
    }

    async fn claim_turns(&mut self) -> Step {
        let node = self.any_node();
        let request = ClaimRequest {
            node: &node,
            limit: self.dice.between(1, 4).cast_signed(),
            lock_timeout_ms: self.lease_ms(),
            backoff_base_ms: 100,
            backoff_max_ms: 1_000,
            max_attempts: MAX_ATTEMPTS,
            isolated: self.dice.one_in(3),
            unowned_only: self.dice.one_in(5),
            replay: self.replay(),
        };
        let names = strings(&NAMES[..usize::try_from(self.dice.between(1, 2)).unwrap_or(1)]);
        let handlers = strings(&HANDLERS[..usize::try_from(self.dice.between(1, 3)).unwrap_or(1)]);
        self.say(|| format!("claim turns {request:?}"));
        self.sides.forget_marks();
        let sides = &mut *self.sides;
        let real = sides.real.claim_turns(&request, &names, &handlers).await;
        if let Ok(claimed) = &real {
            sides.prefer(claimed.iter().map(|turn| turn_key(&turn.instance)));
        }
        let fake = sides.ask_model(|side| side.claim_turns(&request, &names, &handlers)).await;
        let Some((fake, real)) = both((fake, real))? else { return Ok(()) };
        self.agree("claim turns", answers::turns(&fake), answers::turns(&real))?;
        self.load(&fake, &node).await
    }

    /// Reads what claimed turns start from.
    async fn load(&mut self, claimed: &[ClaimedTurn], node: &NodeKey) -> Step {
        let instances: Vec<String> = claimed.iter().map(|turn| turn.instance.clone()).collect();
        let keys: Vec<(String, i64)> =
            claimed.iter().map(|turn| (turn.instance.clone(), turn.execution)).collect();
        let limit = self.dice.between(1, 6).cast_signed();
        let mut leases: Vec<TurnLease> = claimed.iter().map(|turn| TurnLease::of(turn, node)).collect();
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.inbox(&instances, limit, 1 << 20)))? {
            same("messages of inboxes", &fake.len(), &real.len())?;
            for ((instance, fake), (other, real)) in fake.into_iter().zip(real) {
                let (fake, real) = (fake?, real?);
                same("a message", &(&instance, &fake.body), &(&other, &real.body))?;
                if !self.names.messages.pair(fake.id, real.id) {
                    return Err(Stop::Mismatch(format!("message {} of {instance} is another one", fake.id)));
                }
                for lease in leases.iter_mut().filter(|lease| lease.instance == instance) {
                    lease.messages.push((fake.id, fake.body.clone()));
                }
            }
        }
        let histories = both(ask!(self.sides, |side| side.history(&keys)))?;
        if let Some((fake, real)) = histories {
            let texts = |events: Vec<(String, Result<StoredEvent>)>| {
                events.into_iter().map(|(instance, event)| Ok((instance, event?))).collect::<Result<Vec<_>>>()
            };
            let (fake, real) = (texts(fake)?, texts(real)?);
            same("histories", &fake, &real)?;
            // A row that was cut off is behind it.
            for lease in &mut leases {
                let recorded = fake.iter().filter(|(instance, _)| *instance == lease.instance).count();
                lease.history_len = i32::try_from(recorded).unwrap_or(i32::MAX);
            }
        }
        for lease in leases {
            remember(&mut self.book.turns, lease);
        }
        Ok(())
    }

    async fn claim_tasks(&mut self) -> Step {
        let node = self.any_node();
        let request = ClaimRequest {
            node: &node,
            limit: self.dice.between(1, 4).cast_signed(),
            lock_timeout_ms: self.lease_ms(),
            backoff_base_ms: 100,
            backoff_max_ms: 1_000,
            max_attempts: MAX_ATTEMPTS,
            isolated: self.dice.one_in(3),
            unowned_only: self.dice.one_in(5),
            replay: ReplayRange::ALL,
        };
        let names = strings(&ACTIVITIES[..usize::try_from(self.dice.between(1, 2)).unwrap_or(1)]);
        let tags = self.tags();
        let terms = Terms {
            tags: &tags,
            new_sessions: self.dice.below(3).cast_signed(),
            session_timeout_ms: self.lease_ms(),
            spares_last: self.dice.one_in(3),
        };
        let lane = match self.dice.below(4) {
            0..=1 => Lane::Plain,
            2 => Lane::Tagged,
            _ => Lane::InSession,
        };
        self.say(|| format!("claim activities {request:?} {terms:?} {lane:?}"));
        self.sides.forget_marks();
        let sides = &mut *self.sides;
        let real = sides.real.claim_activities(&request, &names, &terms, lane).await;
        if let Ok(claimed) = &real {
            sides.prefer(claimed.iter().map(|task| task.key.clone()));
        }
        let fake = sides.ask_model(|side| side.claim_activities(&request, &names, &terms, lane)).await;
        let Some((fake, real)) = both((fake, real))? else { return Ok(()) };
        self.agree("claim activities", answers::tasks(&fake), answers::tasks(&real))?;
        for task in &fake {
            remember(&mut self.book.tasks, TaskLease::of(task, &node));
        }
        Ok(())
    }
}
