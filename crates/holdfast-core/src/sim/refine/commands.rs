//! The random commands of a list: each is drawn from its own dice and from what the book and the model hold, so that a list
//! with some of its commands left out is still a list.

use std::time::Duration;

use holdfast_replay::MessageBody;

use super::{
    super::{claims::turn_key, model::Model, program::Dice},
    answers::{self, real_fences, real_items, told},
    book::{Book, TaskLease, TurnLease, remember},
    names::{Line, Names},
    sides::{Sides, ask},
    turns::{any_instance, any_name, draw, payload},
};
use crate::{
    error::{Error, Result},
    store::{
        ActivityKey, Fence, NodeKey, TagFilter,
        activity::{Beat, Lane, Terms},
        commit::{ActivityCommit, ActivityOutcome, CommitItem, CommitOutcome, Send, Start},
        look::LookRequest,
        node::{HeartbeatTimes, NodeTimes, Recovery},
        replay_version::ReplayRange,
        turn::{ClaimRequest, ClaimedTurn, RenewRequest},
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
fn both<T>((fake, real): (Result<T>, Result<T>)) -> std::result::Result<Option<(T, T)>, Stop> {
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

fn same<T: PartialEq + std::fmt::Debug>(what: &str, fake: &T, real: &T) -> Step {
    if fake == real {
        return Ok(());
    }
    Err(Stop::Mismatch(format!("{what}\n    model:    {fake:?}\n    database: {real:?}")))
}

const NAMES: [&str; 2] = ["p", "q"];
const HANDLERS: [&str; 3] = ["p@1", "q@1", "p@2"];
const ACTIVITIES: [&str; 2] = ["a", "b"];
const MAX_ATTEMPTS: i32 = 3;

fn strings(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

impl Run<'_> {
    fn say(&mut self, text: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(format!("{} {}", self.sides.model.now % 1_000_000_000, text()));
        }
    }

    fn agree(&mut self, what: &str, fake: Vec<Line>, real: Vec<Line>) -> Step {
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
            88..=90 => self.heartbeat().await,
            91..=92 => self.sweep().await,
            93..=94 => self.look().await,
            95 => {
                let number = self.dice.below(3);
                self.register(number).await
            }
            96 => self.goodbye().await,
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

    fn any_node(&mut self) -> NodeKey {
        let nodes = &self.book.nodes;
        // The newest ones are alive, most of the time.
        let back = self.dice.below(4).min(self.dice.below(4)).min(nodes.len() as u64 - 1);
        nodes[nodes.len() - 1 - usize::try_from(back).unwrap_or(0)].clone()
    }

    async fn register(&mut self, number: u64) -> Step {
        let id = format!("node-{number}");
        let times = NodeTimes { interval_ms: 1_000, stale_after_ms: 5_000 };
        self.say(|| format!("register {id}"));
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.register(&id, times)))? {
            same("register", &fake, &real)?;
            self.book.nodes.push(fake);
        }
        Ok(())
    }

    async fn goodbye(&mut self) -> Step {
        let node = self.any_node();
        self.say(|| format!("goodbye {node:?}"));
        both(ask!(self.sides, |side| side.goodbye(&node))).map(drop)
    }

    /// Starts, events and cancels of clients alone.
    async fn clients(&mut self) -> Step {
        let items = (0..=self.dice.below(4)).map(|_| self.client_item()).collect();
        self.commit(items, false).await
    }

    fn client_item(&mut self) -> CommitItem {
        let instance = any_instance(&mut self.dice);
        let dedup_key = (!self.dice.one_in(3)).then(|| format!("k{}", self.dice.below(6)));
        match self.dice.below(6) {
            0..=2 => CommitItem::Start(Start {
                instance,
                name: any_name(&mut self.dice),
                version: self.dice.one_in(3).then(|| "1".to_owned()),
                input: self.dice.below(2).to_string(),
                delay_ms: self.dice.one_in(5).then(|| self.dice.below(2_000).cast_signed()),
                start_at_ms: self
                    .dice
                    .one_in(8)
                    .then(|| self.sides.model.now - 500 + self.dice.below(2_000).cast_signed()),
                ..Start::default()
            }),
            3 => {
                let body = MessageBody::CancelRequested { reason: "\"client\"".to_owned() };
                CommitItem::Send(Send { instance, body, dedup_key })
            }
            _ => {
                let data = payload(self.book.value());
                let body = MessageBody::EventRaised { name: "e".to_owned(), data };
                CommitItem::Send(Send { instance, body, dedup_key })
            }
        }
    }

    fn lease_ms(&mut self) -> i64 {
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
            replay: ReplayRange::ALL,
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
            let texts = |events: Vec<(String, Result<holdfast_replay::event::StoredEvent>)>| {
                events.into_iter().map(|(instance, event)| Ok((instance, event?))).collect::<Result<Vec<_>>>()
            };
            same("histories", &texts(fake)?, &texts(real)?)?;
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
        let tags = TagFilter::default_only();
        let terms = Terms {
            tags: &tags,
            new_sessions: 0,
            session_timeout_ms: 1_000,
            spares_last: self.dice.one_in(3),
        };
        let lane = Lane::Plain;
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

    /// A batch of turns and activities that were claimed some time, and of what clients send at the same time.
    async fn settle(&mut self) -> Step {
        let mut items = Vec::new();
        let mut ends: Vec<ActivityKey> = Vec::new();
        for _ in 0..self.dice.below(3) {
            let Some(task) = pick(&mut self.dice, &self.book.tasks) else { break };
            if !ends.contains(&task.key) {
                let item = self.task_item(&task);
                ends.push(task.key);
                items.push(item);
            }
        }
        let mut settled: Vec<String> = Vec::new();
        for _ in 0..=self.dice.below(3) {
            let Some(lease) = pick(&mut self.dice, &self.book.turns) else { break };
            if !settled.contains(&lease.instance) {
                settled.push(lease.instance.clone());
                let turn = draw(&mut self.dice, &self.sides.model, &mut self.book, &lease, &ends);
                items.push(CommitItem::Turn(Box::new(turn)));
            }
        }
        for _ in 0..self.dice.below(3) {
            items.push(self.client_item());
        }
        // Clients' items may come first.
        if self.dice.one_in(2) {
            items.reverse();
        }
        if items.is_empty() {
            return Ok(());
        }
        let again = self.dice.one_in(10);
        self.commit(items, again).await
    }

    fn task_item(&mut self, task: &TaskLease) -> CommitItem {
        let (execution, source) =
            (task.key.execution, holdfast_replay::EventId(task.key.event.unsigned_abs()));
        let value = payload(self.book.value());
        let outcome = match self.dice.below(5) {
            0 => ActivityOutcome::Retry {
                delay_ms: self.dice.below(3).cast_signed() * 400,
                attempt: task.attempt + 1,
            },
            1 => ActivityOutcome::Ended(MessageBody::ActivityFailed { execution, source, error: value }),
            _ => ActivityOutcome::Ended(MessageBody::ActivityCompleted { execution, source, result: value }),
        };
        let heartbeat = self.dice.one_in(4).then(|| payload(self.book.value()));
        CommitItem::Activity(ActivityCommit {
            key: task.key.clone(),
            fence: task.fence,
            node: task.node.clone(),
            outcome,
            rides: self.dice.one_in(3),
            heartbeat,
        })
    }

    /// A batch of before, as if its answer had been lost.
    async fn run_again(&mut self) -> Step {
        match pick(&mut self.dice, &self.book.batches) {
            Some(items) => self.commit(items, true).await,
            None => Ok(()),
        }
    }

    async fn commit(&mut self, items: Vec<CommitItem>, again: bool) -> Step {
        self.say(|| format!("commit, again {again}: {}", brief(&items)));
        let real = real_items(&items, &self.names);
        let before = self.sides.model.clone();
        let answer =
            both(ask!(self.sides, |fake| fake.commit(&items, again), |side| side.commit(&real, again)))?;
        let Some((fake, real)) = answer else {
            let fences = self.sides.model.fences;
            self.sides.model = Model { fences, ..before };
            return Ok(());
        };
        // Whoever runs something again is promised more than the tables tell; the simulation checks that.
        self.sides.model.wrong.clear();
        self.agree("commit", answers::outcomes(&fake), answers::outcomes(&real))?;
        for (item, outcome) in items.iter().zip(&fake) {
            self.note(item, outcome);
        }
        remember(&mut self.book.batches, items);
        Ok(())
    }

    /// What a settled turn leaves: its next fence, and the activities that its node took.
    fn note(&mut self, item: &CommitItem, outcome: &CommitOutcome) {
        let (CommitItem::Turn(turn), CommitOutcome::Settled(settled)) = (item, outcome) else { return };
        for task in &settled.handed {
            let key =
                ActivityKey { instance: turn.instance.clone(), execution: turn.execution, event: task.event };
            let lease = TaskLease { key, fence: task.fence, node: turn.node.clone(), attempt: 1 };
            remember(&mut self.book.tasks, lease);
        }
        if turn.end.is_none() && turn.park.is_none() {
            let lease = TurnLease {
                instance: turn.instance.clone(),
                fence: settled.next,
                node: turn.node.clone(),
                name: turn.name.clone(),
                version: Some(turn.version.clone()),
                execution: turn.execution,
                history_len: turn.history_len,
                parent: self.sides.model.instances.get(&turn.instance).and_then(|row| row.parent.clone()),
                parked: false,
                poisoned: false,
                messages: Vec::new(),
            };
            remember(&mut self.book.turns, lease);
        }
    }

    /// Fences of a node's leases, of turns or of activities; some of them are gone.
    fn some_fences(&mut self, turns: bool) -> (NodeKey, Vec<Fence>) {
        let node = self.any_node();
        let held: Vec<Fence> = if turns {
            self.book.turns.iter().filter(|lease| lease.node == node).map(|lease| lease.fence).collect()
        } else {
            self.book.tasks.iter().filter(|lease| lease.node == node).map(|lease| lease.fence).collect()
        };
        let fences = held.into_iter().filter(|_| !self.dice.one_in(3)).collect();
        (node, fences)
    }

    async fn renew(&mut self) -> Step {
        let turns = self.dice.one_in(2);
        let (node, fences) = self.some_fences(turns);
        let times =
            RenewRequest { lock_timeout_ms: self.lease_ms(), backoff_base_ms: 100, backoff_max_ms: 1_000 };
        self.say(|| format!("renew, turns {turns}: {node:?} {fences:?} {times:?}"));
        let real = real_fences(&fences, &self.names);
        let answer = if turns {
            ask!(self.sides, |fake| fake.renew_turns(&node, &fences, &times), |side| side
                .renew_turns(&node, &real, &times))
        } else {
            ask!(self.sides, |fake| fake.renew_activities(&node, &fences, &times), |side| side
                .renew_activities(&node, &real, &times))
        };
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("renewed", &told(&fake, false, &self.names), &told(&real, true, &self.names))
    }

    async fn give_back(&mut self) -> Step {
        let (turns, releases, flag) = (self.dice.one_in(2), self.dice.one_in(2), self.dice.one_in(2));
        let (node, fences) = self.some_fences(turns);
        let delay = if flag { 0 } else { 900 };
        self.say(|| format!("give back, turns {turns}, release {releases}, {flag}: {node:?} {fences:?}"));
        let real = real_fences(&fences, &self.names);
        let answer = match (turns, releases) {
            (true, true) => {
                ask!(self.sides, |fake| fake.release_turns(&node, &fences, delay), |side| side
                    .release_turns(&node, &real, delay))
            }
            (true, false) => {
                ask!(self.sides, |fake| fake.abandon_turns(&node, &fences, flag), |side| side
                    .abandon_turns(&node, &real, flag))
            }
            (false, true) => {
                ask!(self.sides, |fake| fake.release_activities(&node, &fences, delay), |side| side
                    .release_activities(&node, &real, delay))
            }
            (false, false) => {
                ask!(self.sides, |fake| fake.abandon_activities(&node, &fences, flag), |side| side
                    .abandon_activities(&node, &real, flag))
            }
        };
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("given back", &fake, &real)
    }

    /// What is gone, taken, cancelled, open; nothing is changed.
    async fn questions(&mut self) -> Step {
        let turns = self.dice.one_in(2);
        let (node, fences) = self.some_fences(turns);
        let real = real_fences(&fences, &self.names);
        let answer = if turns {
            ask!(self.sides, |fake| fake.gone_turns(&node, &fences), |side| side.gone_turns(&node, &real))
        } else {
            ask!(self.sides, |fake| fake.gone_activities(&node, &fences), |side| side
                .gone_activities(&node, &real))
        };
        if let Some((fake, real)) = both(answer)? {
            same("gone", &told(&fake, false, &self.names), &told(&real, true, &self.names))?;
        }
        let tasks: Vec<(Fence, ActivityKey)> =
            self.book.tasks.iter().map(|task| (task.fence, task.key.clone())).collect();
        let real: Vec<(Fence, ActivityKey)> =
            tasks.iter().map(|(fence, key)| (Fence(self.names.fences.real(fence.0)), key.clone())).collect();
        if let Some((fake, real)) =
            both(ask!(self.sides, |fake| fake.taken(&tasks), |side| side.taken(&real)))?
        {
            same("taken", &told(&fake, false, &self.names), &told(&real, true, &self.names))?;
        }
        let instance = any_instance(&mut self.dice);
        self.say(|| format!("questions of {node:?}, of {instance}"));
        let instances = [instance.clone()];
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.cancels(&instances)))? {
            let bodies = |found: &[(String, holdfast_replay::Message)]| {
                found.iter().map(|(of, message)| (of.clone(), message.body.clone())).collect::<Vec<_>>()
            };
            same("cancels", &bodies(&fake), &bodies(&real))?;
        }
        let execution = self.dice.between(1, 2).cast_signed();
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.open(&instance, execution)))? {
            let sorted = |open: crate::store::turn::Open| {
                let (mut activities, mut children) = (open.activities, open.children);
                activities.sort_unstable();
                children.sort();
                (activities, children, open.last_event)
            };
            same("open", &sorted(fake), &sorted(real))?;
        }
        Ok(())
    }

    async fn beat(&mut self) -> Step {
        let mut beats: Vec<Beat> = Vec::new();
        for task in self.book.tasks.clone() {
            if self.dice.one_in(3) || beats.iter().any(|beat| beat.key == task.key) {
                continue;
            }
            beats.push(Beat { key: task.key, fence: task.fence, details: payload(self.book.value()) });
        }
        self.say(|| format!("beat {beats:?}"));
        let real: Vec<Beat> = beats
            .iter()
            .map(|beat| Beat { fence: Fence(self.names.fences.real(beat.fence.0)), ..beat.clone() })
            .collect();
        let Some((fake, real)) = both(ask!(self.sides, |fake| fake.beat(&beats), |side| side.beat(&real)))?
        else {
            return Ok(());
        };
        same("beats", &told(&fake, false, &self.names), &told(&real, true, &self.names))
    }

    async fn heartbeat(&mut self) -> Step {
        let (node, turns) = self.some_fences(true);
        let tasks: Vec<Fence> =
            self.book.tasks.iter().filter(|task| task.node == node).map(|task| task.fence).collect();
        let recovery = match self.dice.below(4) {
            0 => Recovery::Forbidden,
            _ => Recovery::Allowed {
                clean_ms: self.dice.below(3).cast_signed() * 4_000,
                fresh: self.dice.one_in(2),
            },
        };
        let times = HeartbeatTimes { explicit: self.dice.one_in(2), claim_limit_ms: 2_000, recovery };
        self.say(|| format!("heartbeat {node:?} {turns:?} {tasks:?} {times:?}"));
        let (real_turns, real_tasks) = (real_fences(&turns, &self.names), real_fences(&tasks, &self.names));
        let answer =
            ask!(self.sides, |fake| fake.heartbeat(&node, (&turns, &tasks), times, None), |side| side
                .heartbeat(&node, (&real_turns, &real_tasks), times, None));
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same(
            "heartbeat",
            &(fake.alive, fake.released, fake.outage),
            &(real.alive, real.released, real.outage),
        )?;
        let sorted = |ids: &[String]| {
            let mut ids = ids.to_vec();
            ids.sort();
            ids
        };
        same("recovered", &sorted(&fake.recovered_nodes), &sorted(&real.recovered_nodes))?;
        let names = &self.names;
        same("gone turns", &told(&fake.gone_turns, false, names), &told(&real.gone_turns, true, names))?;
        same(
            "gone tasks",
            &told(&fake.gone_activities, false, names),
            &told(&real.gone_activities, true, names),
        )
    }

    async fn sweep(&mut self) -> Step {
        self.say(|| "sweep".to_owned());
        let Some((fake, real)) = both(ask!(self.sides, |side| side.sweep()))? else { return Ok(()) };
        same("swept", &(fake.freed, fake.more), &(real.freed, real.more))
    }

    async fn look(&mut self) -> Step {
        let node = self.any_node();
        let (names, handlers, activities) = (strings(&NAMES), strings(&HANDLERS), strings(&ACTIVITIES));
        let tags = TagFilter::default_only();
        let request = LookRequest {
            node: &node,
            names: &names,
            handlers: &handlers,
            activities: &activities,
            tags: &tags,
            new_sessions: false,
            replay: ReplayRange::ALL,
        };
        self.say(|| format!("look {node:?}"));
        self.sides.forget_marks();
        let Some((fake, real)) = both(ask!(self.sides, |side| side.look(&request)))? else { return Ok(()) };
        same("look", &fake, &real)
    }

    async fn release_unknown(&mut self) -> Step {
        let (node, turns) = self.some_fences(true);
        let tasks: Vec<Fence> =
            self.book.tasks.iter().filter(|task| task.node == node).map(|task| task.fence).collect();
        let older = Duration::from_millis(self.dice.below(2) * 1_500);
        self.say(|| format!("release unknown {node:?} {turns:?} {tasks:?} {older:?}"));
        let (real_turns, real_tasks) = (real_fences(&turns, &self.names), real_fences(&tasks, &self.names));
        let answer = ask!(self.sides, |fake| fake.release_unknown(&node, &turns, &tasks, older), |side| side
            .release_unknown(&node, &real_turns, &real_tasks, older));
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("released", &fake, &real)
    }
}

/// Items without what is empty in them.
fn brief(items: &[CommitItem]) -> String {
    let text = format!("{items:?}");
    let said =
        |part: &&str| !part.ends_with(": []") && !part.ends_with(": None") && !part.ends_with(": false");
    text.split(", ").filter(said).collect::<Vec<_>>().join(", ")
}

/// One of them, the newest most of the time.
fn pick<T: Clone>(dice: &mut Dice, of: &[T]) -> Option<T> {
    if of.is_empty() {
        return None;
    }
    let count = of.len() as u64;
    let back = dice.below(count).min(dice.below(count)).min(dice.below(count));
    Some(of[of.len() - 1 - usize::try_from(back).unwrap_or(0)].clone())
}
