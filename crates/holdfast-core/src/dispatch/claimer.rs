//! The claimer: one task of a runtime that feeds all its slots, and gives back what will not run here.
//!
//! A hint makes it claim at once, and again while more is due. Without one it looks: one statement asks both queues, and
//! only what is due is claimed. In between it sleeps until a hint, the next known due time or the poll interval; meanwhile
//! the heartbeats look for it, so that an idle node asks no more often than it beats.
//!
//! length: one round of claims from the look to the hand-over; its pace, its latency and what goes back are in the files beside it.

use std::{
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join;
use tokio::sync::watch;

use crate::{
    activity::{ActivityRunner, ClaimedTasks, Suspects},
    clock::{self, Moment},
    config::{EngineConfig, ms},
    dispatch::{
        FreeSlots, Handlers, coverage::Coverage, giving_back::Giving, latency::ClaimLatency, pace::Pace,
    },
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Keeper, Kind, Returns},
    limits,
    liveness::{Claiming, LookAlong, Standing, Wish},
    notify::{Bell, Ring},
    pool::CallerClass,
    provider::Provider,
    session::SessionBook,
    store::{
        NodeKey, StoreSession,
        activity::{ClaimedActivity, Lane, Terms},
        look::{Due, LookOrder},
        turn::ClaimRequest,
    },
    telemetry::{Backoff, Level, Progress, RunCounters},
    turn::{ClaimedBatch, TurnRunner},
};

/// All that claiming needs.
pub(crate) struct Claimer {
    pub(crate) provider: Arc<Provider>,
    pub(crate) counters: Arc<RunCounters>,
    pub(crate) config: EngineConfig,
    pub(crate) handlers: Handlers,
    pub(crate) node: Arc<Mutex<NodeKey>>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) standing: Arc<Standing>,
    pub(crate) along: Arc<LookAlong>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) returns: Arc<Returns>,
    pub(crate) sessions: Arc<SessionBook>,
    pub(crate) turns: Arc<TurnRunner>,
    pub(crate) activities: Arc<ActivityRunner>,
    pub(crate) wake: Arc<Bell>,
    /// What this runtime can take without a hint; known to the provider as long as it is here.
    pub(crate) _slots: Arc<FreeSlots>,
}

/// What one round brought.
#[derive(Debug, Default)]
struct Round {
    claimed: usize,
    /// A claim came back full: more is due.
    full: bool,
    /// A suspect is due that it did not ask for: the next claim takes it along.
    again: bool,
    /// It looked at both queues.
    looked: bool,
    /// Until the next row is due.
    next_due: Option<Duration>,
}

/// What the claimer remembers from round to round.
#[derive(Debug, Default)]
struct Memory {
    /// Something says that there is work: claim without a look.
    eager: bool,
    /// The last look.
    looked: Option<Instant>,
    /// What a heartbeat's look found in the last sleep.
    seen: Option<Due>,
    /// The last claim came back full: there is work for slots that become free.
    more: bool,
    /// It found activities in these lanes: claims without a look ask for them too.
    tagged: bool,
    in_session: bool,
    /// It found suspects among the turns: a slot is left for one.
    turn_suspects: bool,
    /// Which lane goes first, so that none takes all slots for ever.
    turn_of_lanes: AtomicUsize,
    /// A round failed: a claim of it may have been carried out.
    unanswered: bool,
    coverage: Coverage,
    latency: Mutex<ClaimLatency>,
}

impl Memory {
    fn saw(&mut self, due: &Due) {
        self.looked = Some(clock::now());
        (self.tagged, self.in_session) = (due.tagged, due.in_session);
        self.turn_suspects = due.turn_suspects;
    }
}

/// How many of what one claim is to take.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    turns: usize,
    activities: usize,
    /// Lanes of the activities, in order.
    lanes: [Option<Lane>; 3],
    isolated: bool,
}

impl Wanted {
    fn of((turns, activities): (usize, usize)) -> Self {
        Self { turns, activities, ..Self::default() }
    }
}

impl Claimer {
    /// Claims until `stop` says so. Dropped half way it may hold rows that nobody here knows of: the heartbeat, or the
    /// goodbye, frees them. After a panic it is run `again`.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>, again: bool) {
        let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        let mut memory = Memory { unanswered: again, ..Memory::default() };
        if again {
            self.return_orphans();
        }
        let mut pace = Pace::new(self.config.dispatch.poll_interval, self.longest_sleep());
        let mut giving = Giving::default();
        while !*stop.borrow() {
            self.progress.step();
            giving.begin(&self);
            let before = self.free();
            let outcome = giving.beside(self.round(&mut memory)).await;
            self.progress.idle();
            match outcome {
                Ok(round) => {
                    backoff.reset();
                    memory.eager = true;
                    if round.again || round.full && self.has_free_slot() {
                        continue;
                    }
                    if self.waits_for_slots(before, round.full) {
                        continue;
                    }
                    pace.bound(self.longest_sleep());
                    let rest = pace.after(round.claimed, round.next_due);
                    let wish = round.looked.then(|| self.along.wish(self.order()));
                    let grace = self.grace(&wish, rest, round.next_due);
                    // Nothing rings for these slots.
                    let slow = if self.turns.free() == 0 { self.turns.until_slow() } else { None };
                    let sleep = async {
                        tokio::select! {
                            biased;
                            ring = self.wake.rung() => memory.eager = ring == Ring::Claim,
                            due = answer(&wish) => (memory.eager, memory.seen) = (false, Some(due)),
                            () = after(slow) => memory.eager = true,
                            () = tokio::time::sleep(rest + grace) => memory.eager = memory.more,
                            _ = stop.changed() => {}
                        }
                    };
                    giving.beside(sleep).await;
                }
                Err(error) => {
                    self.provider.counters().claims_failed.add(1);
                    self.counters.provider_errors.add(1);
                    let text = format!("a claim failed and is tried again: {}", error.text_without_data());
                    let fields = serde_json::json!({ "code": error.kind().code() });
                    self.provider.events().emit("claim-failed", Level::Warn, text, fields);
                    memory.unanswered = true;
                    if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::CircuitOpen) {
                        self.standing.failed(Moment::now());
                    }
                    // No hint cuts this short: giving back what the failed round claimed rings the bell.
                    let pause = async {
                        tokio::select! {
                            biased;
                            () = tokio::time::sleep(backoff.next_delay()) => {}
                            _ = stop.changed() => {}
                        }
                    };
                    giving.beside(pause).await;
                }
            }
        }
    }

    /// Without a listener nobody tells of what other processes made ready.
    fn longest_sleep(&self) -> Duration {
        let limit = self.config.dispatch.long_poll_timeout;
        if self.provider.hints().is_listening() { limit } else { limit.min(limits::POLL_WITHOUT_LISTENER) }
    }

    /// While a heartbeat looks for it at the end of its rest the claimer waits for that a little; not past the next due time.
    fn grace(&self, wish: &Option<Wish<'_>>, rest: Duration, next_due: Option<Duration>) -> Duration {
        let waits = wish.is_some() && rest >= self.config.liveness.heartbeat_interval;
        let most = next_due.map_or(limits::HEARTBEAT_GRACE, |due| due.saturating_sub(rest));
        if waits { most.min(limits::HEARTBEAT_GRACE) } else { Duration::ZERO }
    }

    async fn round(&self, memory: &mut Memory) -> Result<Round> {
        let seen = memory.seen.take();
        if self.free() == (0, 0) || self.standing.claiming(Moment::now()) == Claiming::Nothing {
            return Ok(Round::default());
        }
        if let Some(due) = seen.filter(|due| due.is_nothing() && memory.coverage.is_kept(&self.node())) {
            memory.saw(&due);
            return Ok(Round { looked: true, next_due: due.next, ..Round::default() });
        }
        self.gather(&memory.latency).await;
        let session = self.provider.store().acquire(CallerClass::Ordinary).await?;
        memory.coverage.keep(&*session, self).await?;
        if memory.unanswered {
            self.release_unanswered(&*session).await?;
            memory.unanswered = false;
        }
        let overdue = memory.looked.is_none_or(|last| clock::since(last) >= limits::LOOK_EVERY);
        if memory.eager && (overdue || self.takes_suspect(memory.turn_suspects)) {
            return self.claim_looking(session, memory).await;
        }
        let mut round = Round::default();
        if memory.eager {
            let wanted = Wanted { lanes: self.lanes(memory), ..Wanted::of(self.free()) };
            round = self.claim(&*session, memory, wanted).await?;
            memory.more = round.full;
        }
        if round.claimed == 0 {
            let due = match seen {
                Some(due) => due,
                None => self.look(&*session).await?,
            };
            memory.saw(&due);
            round = self.claim_due(session, memory, due).await?;
            (round.looked, round.next_due) = (true, due.next);
        }
        Ok(round)
    }

    /// Lanes of activities that are asked without a look.
    fn lanes(&self, memory: &Memory) -> [Option<Lane>; 3] {
        let plain = self.config.dispatch.worker_tag_filter.untagged.then_some(Lane::Plain);
        [plain, memory.tagged.then_some(Lane::Tagged), memory.in_session.then_some(Lane::InSession)]
    }

    async fn look(&self, session: &dyn StoreSession) -> Result<Due> {
        self.wake.looks();
        self.provider.counters().looks.add(1);
        session.look(&self.order().by(&self.node())).await
    }

    /// What this node could take now.
    fn order(&self) -> LookOrder {
        let free = self.free();
        let some = |count: usize, names: Vec<String>| if count > 0 { names } else { Vec::new() };
        LookOrder {
            names: some(free.0, self.handlers.names()),
            handlers: some(free.0, self.handlers.exact()),
            activities: some(free.1, self.handlers.activities.clone()),
            tags: self.config.dispatch.worker_tag_filter.clone(),
            new_sessions: self.sessions.room() > 0,
            replay: self.config.dispatch.replay_versions.range(),
        }
    }

    /// Claims and looks in one flight: what the look finds beside is claimed then, or with the next claim where that takes long.
    async fn claim_looking(&self, session: Box<dyn StoreSession>, memory: &mut Memory) -> Result<Round> {
        let suspect = self.takes_suspect(memory.turn_suspects);
        let known = &*memory;
        let claims = async move {
            let wanted = Wanted { lanes: self.lanes(known), ..Wanted::of(self.free()) };
            let (round, due) = join(self.claim(&*session, known, wanted), self.look(&*session)).await;
            let (round, due) = (round?, due?);
            let beside = Due { turns: false, activities: false, tagged: due.tagged && !known.tagged, ..due };
            let more = self.claim_in_order(&*session, known, beside).await?;
            Ok((Round { claimed: round.claimed + more.claimed, full: round.full || more.full, ..round }, due))
        };
        let (claimed, suspects) = join(claims, self.claim_suspect(known, suspect)).await;
        let ((mut round, due), suspects) = (claimed?, suspects?);
        memory.saw(&due);
        // The look may have seen what was claimed beside it.
        memory.turn_suspects &= !suspect || suspects > 0;
        memory.more = round.full;
        round.claimed += suspects;
        (round.looked, round.next_due) = (true, due.next);
        round.again = !suspect && self.takes_suspect(due.turn_suspects);
        Ok(round)
    }

    /// Claims what a look found; a suspect among the turns beside the others, on a session of its own, so that a claim that
    /// takes long holds up no other.
    async fn claim_due(
        &self,
        session: Box<dyn StoreSession>,
        memory: &mut Memory,
        due: Due,
    ) -> Result<Round> {
        let suspect = self.takes_suspect(due.turn_suspects);
        let known = &*memory;
        // The session goes back before the suspect's is waited for.
        let claims = async move { self.claim_in_order(&*session, known, due).await };
        let (round, suspects) = join(claims, self.claim_suspect(known, suspect)).await;
        let (round, suspects) = (round?, suspects?);
        memory.turn_suspects &= suspects > 0;
        memory.more = round.full;
        Ok(Round { claimed: round.claimed + suspects, ..round })
    }

    /// Whether one of the suspects that are due may run here: one at a time does, beside the slots, so that none waits behind a
    /// backlog without end.
    fn takes_suspect(&self, due: bool) -> bool {
        due && !self.turns.isolated()
    }

    /// Claims a suspect among the turns, when one is `wanted`; tells how many it got.
    async fn claim_suspect(&self, memory: &Memory, wanted: bool) -> Result<usize> {
        if !wanted {
            return Ok(0);
        }
        let session = self.provider.store().acquire(CallerClass::Ordinary).await?;
        let one = Wanted { isolated: true, ..Wanted::of((1, 0)) };
        Ok(self.claim(&*session, memory, one).await?.claimed)
    }

    /// Claims all but suspects among the turns. Suspects go first, or they would wait behind a backlog without end; they run one
    /// at a time.
    async fn claim_in_order(&self, session: &dyn StoreSession, memory: &Memory, due: Due) -> Result<Round> {
        let free = self.free();
        let suspects = due.activity_suspects || due.in_session;
        let on_trial = self.activities.suspects() == Suspects::OnTrial;
        let alone = Wanted {
            turns: 0,
            activities: usize::from(suspects && !on_trial).min(free.1),
            lanes: [
                due.activity_suspects.then_some(Lane::Plain),
                None,
                due.in_session.then_some(Lane::InSession),
            ],
            isolated: true,
        };
        let mut claimed = self.claim(session, memory, alone).await?.claimed;
        let free = self.free();
        let wanted = Wanted {
            turns: if due.turns { free.0 } else { 0 },
            activities: free.1,
            lanes: [
                due.activities.then_some(Lane::Plain),
                due.tagged.then_some(Lane::Tagged),
                due.in_session.then_some(Lane::InSession),
            ],
            isolated: false,
        };
        let round = self.claim(session, memory, wanted).await?;
        claimed += round.claimed;
        Ok(Round { claimed, ..round })
    }

    /// After a claim without an answer: this node's rows that it does not know of were claimed and never started. What a
    /// server that is slow to notice claims later is left to the heartbeat.
    async fn release_unanswered(&self, session: &dyn StoreSession) -> Result<()> {
        let held = (self.keeper.held(Kind::Turn), self.keeper.held(Kind::Activity));
        session.release_unknown(&self.node(), &held.0, &held.1, Duration::ZERO).await?;
        Ok(())
    }

    fn free(&self) -> (usize, usize) {
        let takes_none = self.config.dispatch.worker_tag_filter.is_none();
        let activities = if takes_none { 0 } else { self.activities.free() };
        (self.turns.free().min(limits::CLAIM_BATCH), activities.min(limits::ACTIVITY_CLAIM_BATCH))
    }

    async fn claim(&self, session: &dyn StoreSession, memory: &Memory, wanted: Wanted) -> Result<Round> {
        let node = self.node();
        let asked_at = clock::now();
        let names = self.handlers.names();
        let exact = self.handlers.exact();
        let turns_wanted = wanted.turns > 0 && !names.is_empty();
        if !turns_wanted && !self.wants_activities(wanted) {
            return Ok(Round::default());
        }
        self.provider.counters().claims.add(1);
        let turns = async {
            if !turns_wanted {
                return Ok(Vec::new());
            }
            let request = self.turn_request(&node, wanted.turns, wanted.isolated);
            failpoint::hit("claim.turns.before");
            let claimed = session.claim_turns(&request, &names, &exact).await;
            failpoint::hit("claim.turns.after");
            claimed
        };
        let first = memory.turn_of_lanes.fetch_add(1, Ordering::Relaxed) % wanted.lanes.len();
        let activities = self.claim_activities(session, &node, wanted, first);
        let (turns, activities) = join(turns, activities).await;
        self.tell_if_slow(&memory.latency, clock::since(asked_at));
        // What one queue gave is held also when the other failed.
        let (mut turns, turns_failed) = split(turns);
        let (mut tasks, tasks_failed) = activities;
        let filled = |count: usize, of: usize| of > 0 && count == of;
        if turns_wanted && !wanted.isolated {
            self.turns.set_backlog(filled(turns.len(), wanted.turns));
        }
        if self.wants_activities(wanted) && !wanted.isolated {
            self.activities.set_backlog(filled(tasks.len(), wanted.activities));
        }
        let round = Round {
            claimed: turns.len() + tasks.len(),
            full: !wanted.isolated
                && (filled(turns.len(), wanted.turns) || filled(tasks.len(), wanted.activities)),
            ..Round::default()
        };
        self.provider.counters().turns_claimed.add(turns.len() as u64);
        self.provider.counters().activities_claimed.add(tasks.len() as u64);
        self.give_back_foreign(&mut turns);
        let fences = turns.iter().map(|claimed| claimed.fence).collect();
        let gone_turns = self.fenced_meanwhile(session, &node, Kind::Turn, fences, asked_at);
        let fences = tasks.iter().map(|claimed| claimed.fence).collect();
        let gone_tasks = self.fenced_meanwhile(session, &node, Kind::Activity, fences, asked_at);
        let isolated = wanted.isolated;
        let take_tasks = async {
            let gone = gone_tasks.await;
            tasks.retain(|claimed| !gone.contains(&claimed.fence));
            if !tasks.is_empty() {
                self.activities.take(ClaimedTasks {
                    tasks,
                    node: node.clone(),
                    isolated,
                    rowless: false,
                    asked_at,
                });
            }
        };
        let take_turns = async {
            let batch = ClaimedBatch { turns, node: node.clone(), isolated, asked_at };
            if batch.turns.is_empty() { Ok(()) } else { self.turns.take(session, batch, gone_turns).await }
        };
        let ((), taken) = join(take_tasks, take_turns).await;
        taken?;
        turns_failed.or(tasks_failed).map_or(Ok(round), Err)
    }

    fn wants_activities(&self, wanted: Wanted) -> bool {
        let lanes = wanted.lanes != [None; 3];
        wanted.activities > 0 && lanes && !self.handlers.activities.is_empty()
    }

    /// Claims from the wanted lanes, one after the other until the slots are taken.
    async fn claim_activities(
        &self,
        session: &dyn StoreSession,
        node: &NodeKey,
        wanted: Wanted,
        first: usize,
    ) -> (Vec<ClaimedActivity>, Option<Error>) {
        let mut tasks = Vec::new();
        if !self.wants_activities(wanted) {
            return (tasks, None);
        }
        let mut lanes = wanted.lanes;
        lanes.rotate_left(first);
        for lane in lanes.into_iter().flatten() {
            let left = wanted.activities.saturating_sub(tasks.len());
            if left == 0 {
                break;
            }
            let request = self.activity_request(node, left, wanted.isolated);
            let names = &self.handlers.activities;
            let takes = Terms {
                tags: &self.config.dispatch.worker_tag_filter,
                new_sessions: i64::try_from(self.sessions.room()).unwrap_or(i64::MAX),
                session_timeout_ms: ms(self.config.session.lock_timeout),
                spares_last: self.activities.suspects() != Suspects::None,
            };
            failpoint::hit("claim.activities.before");
            let claimed = session.claim_activities(&request, names, &takes, lane).await;
            failpoint::hit("claim.activities.after");
            match claimed {
                Ok(claimed) => tasks.extend(claimed),
                Err(error) => return (tasks, Some(error)),
            }
        }
        (tasks, None)
    }

    fn turn_request<'a>(&self, node: &'a NodeKey, limit: usize, isolated: bool) -> ClaimRequest<'a> {
        self.request(node, limit, isolated, self.config.lease.orchestrator_lock_timeout)
    }

    fn activity_request<'a>(&self, node: &'a NodeKey, limit: usize, isolated: bool) -> ClaimRequest<'a> {
        self.request(node, limit, isolated, self.config.lease.worker_lock_timeout)
    }

    fn request<'a>(
        &self,
        node: &'a NodeKey,
        limit: usize,
        isolated: bool,
        lease: Duration,
    ) -> ClaimRequest<'a> {
        let times = self.config.lease.renewal(lease);
        ClaimRequest {
            node,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            lock_timeout_ms: times.lock_timeout_ms,
            backoff_base_ms: times.backoff_base_ms,
            backoff_max_ms: times.backoff_max_ms,
            max_attempts: i32::try_from(self.config.lease.max_attempts).unwrap_or(i32::MAX),
            isolated,
            unowned_only: self.standing.claiming(Moment::now()) == Claiming::Unowned,
            replay: self.config.dispatch.replay_versions.range(),
        }
    }

    /// Has the bell rung for free slots while one kind has none. True when one became free since `before` the round, which did
    /// not ask for that kind then: that rang no bell.
    fn waits_for_slots(&self, before: (usize, usize), full: bool) -> bool {
        let now = self.free();
        let wants = full || [before.0, before.1, now.0, now.1].contains(&0);
        self.wake.set_wants_slots(wants);
        let after = self.free();
        before.0 == 0 && after.0 > 0 || before.1 == 0 && after.1 > 0
    }

    fn has_free_slot(&self) -> bool {
        self.turns.free() > 0 || self.activities.free() > 0
    }

    pub(super) fn node(&self) -> NodeKey {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Waits so long; for ever where there is nothing to wait for.
async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => pending().await,
    }
}

/// What a heartbeat finds for a claimer that wants to know.
async fn answer(wish: &Option<Wish<'_>>) -> Due {
    match wish {
        Some(wish) => wish.answer().await,
        None => pending().await,
    }
}

fn split<T>(claimed: Result<Vec<T>>) -> (Vec<T>, Option<Error>) {
    match claimed {
        Ok(rows) => (rows, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}
