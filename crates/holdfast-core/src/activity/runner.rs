//! Runs activities: claimed tasks in, jobs out, results in, commits out.
//!
//! Retries are decided here, by the task's own policy, and cost no turn. An abort is a signal: the body may still finish,
//! and its result is settled if its lease stands.
//!
//! length: the whole way of one task, each step of it a few lines; what can stand alone is in the files beside it.

use std::{
    collections::{BTreeSet, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_replay::{MessageBody, Payload};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    activity::{
        flight::{ActivityTable, Flight, Suspects},
        job::{self, ended, job, limits, retry_or_end},
        rowless::Place,
        tell,
    },
    clock,
    commit::Committer,
    crossing::{ActivityResult, Outbox},
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Keeper, Kind, Return, Returns, TakesResults},
    provider::Provider,
    session::SessionBook,
    store::{
        Fence, NodeKey,
        activity::ClaimedActivity,
        commit::{ActivityCommit, ActivityEnd, ActivityOutcome, CommitItem, CommitOutcome},
    },
    telemetry::{FailureClass, RunCounters, error_payload},
};

/// A task that has ended, before it is handed in.
pub(crate) struct Ended {
    pub(crate) h: u32,
    pub(super) commit: ActivityCommit,
    /// How long it was under way.
    pub(super) ran: Duration,
}

/// Tasks that were claimed together.
pub(crate) struct ClaimedTasks {
    pub(crate) tasks: Vec<ClaimedActivity>,
    pub(crate) node: NodeKey,
    pub(crate) isolated: bool,
    /// They have no rows: their lease is their turn's.
    pub(crate) rowless: bool,
    /// Before the claim was sent.
    pub(crate) asked_at: Instant,
}

/// Why a claimed task ends before its body starts.
enum Ending {
    Poisoned,
    Late,
    Corrupt,
}

/// Limits that hold for every activity of a runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityLimits {
    pub(crate) slots: usize,
    /// A lease, in ms.
    pub(crate) lease_ms: i64,
    /// How long a task runs without a row at most.
    pub(crate) kept: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Duration,
    /// Deliveries of one task.
    pub(crate) max_attempts: i32,
}

/// The activities of one runtime.
pub(crate) struct ActivityRunner {
    pub(super) provider: Arc<Provider>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) returns: Arc<Returns>,
    pub(super) outbox: Arc<Outbox>,
    counters: Arc<RunCounters>,
    pub(super) limits: ActivityLimits,
    sessions: Arc<SessionBook>,
    table: Mutex<ActivityTable>,
    /// Slots kept for tasks that are about to be queued by turns of this process.
    reserved: AtomicUsize,
    backlog: AtomicBool,
    pub(super) results: OnceLock<Weak<dyn TakesResults>>,
    /// Names of activities that ran too long without a row when they ran last; they are registered, so there are few.
    pub(super) slow: Mutex<BTreeSet<String>>,
    /// One sleeping task for each activity with a time limit or in its grace period; slots bound them.
    pub(super) timers: Mutex<JoinSet<()>>,
    /// Rings when a body told something that is not stored yet.
    pub(super) beats: Notify,
}

impl ActivityRunner {
    pub(crate) fn new(
        provider: Arc<Provider>,
        keeper: Arc<Keeper>,
        returns: Arc<Returns>,
        outbox: Arc<Outbox>,
        counters: Arc<RunCounters>,
        sessions: Arc<SessionBook>,
        limits: ActivityLimits,
    ) -> Self {
        Self {
            provider,
            keeper,
            returns,
            outbox,
            counters,
            sessions,
            limits,
            table: Mutex::default(),
            reserved: AtomicUsize::new(0),
            backlog: AtomicBool::new(false),
            results: OnceLock::new(),
            slow: Mutex::default(),
            timers: Mutex::new(JoinSet::new()),
            beats: Notify::new(),
        }
    }

    /// Slots that are free and not kept for tasks that are about to be queued.
    pub(crate) fn free(&self) -> usize {
        let taken = self.lock().len() + self.reserved.load(Ordering::Acquire);
        self.limits.slots.saturating_sub(taken)
    }

    /// Keeps a slot for a task of a turn of this process, if one is free; while older work waits in the queue never more
    /// than every second one.
    pub(crate) fn reserve(&self) -> bool {
        let free = self.limits.slots.saturating_sub(self.lock().len());
        let most = if self.backlog.load(Ordering::Acquire) { free / 2 } else { free };
        let keep = |kept: usize| (kept < most).then_some(kept + 1);
        self.reserved.fetch_update(Ordering::AcqRel, Ordering::Acquire, keep).is_ok()
    }

    /// Kept slots are free again.
    pub(crate) fn unreserve(&self, slots: usize) {
        self.reserved.fetch_sub(slots, Ordering::AcqRel);
    }

    /// So many tasks were taken without a claim.
    pub(crate) fn count_claimed(&self, tasks: usize) {
        self.provider.counters().activities_claimed.add(tasks as u64);
    }

    /// Whether the last claim left work of others in the queue.
    pub(crate) fn set_backlog(&self, backlog: bool) {
        self.backlog.store(backlog, Ordering::Release);
    }

    /// Activities in progress.
    pub(crate) fn running(&self) -> usize {
        self.lock().len()
    }

    /// How the activities in progress stand that may have killed a process.
    pub(crate) fn suspects(&self) -> Suspects {
        self.lock().suspects(clock::now())
    }

    /// Takes claimed tasks on their way to JavaScript.
    pub(crate) fn take(self: &Arc<Self>, batch: ClaimedTasks) {
        failpoint::hit("activity.start.before");
        self.counters.worker_items_fetched.add(batch.tasks.len() as u64);
        let rowless = batch.rowless;
        for (h, ending) in self.begin(batch) {
            if rowless {
                // Their turn is at it: what becomes of them is for it to hear later.
                let runner = Arc::clone(self);
                self.spawn(Duration::ZERO, move || runner.end_unstarted(h, ending));
            } else {
                self.end_unstarted(h, ending);
            }
        }
        failpoint::hit("activity.start.after");
    }

    fn end_unstarted(self: &Arc<Self>, h: u32, ending: Ending) {
        match ending {
            Ending::Poisoned => self.poison(h),
            Ending::Late => self.is_late(h),
            Ending::Corrupt => self.finish(h, ActivityResult::Failed(corrupt_input())),
        }
    }

    /// Puts tasks into the table and their jobs into the outbox while it holds the table's lock. So whoever finds a task in the
    /// table and tells it to stop finds its job in the outbox as well, or JavaScript has it. Returns those that end unstarted.
    fn begin(&self, batch: ClaimedTasks) -> Vec<(u32, Ending)> {
        let mut jobs = Vec::with_capacity(batch.tasks.len());
        let mut endings = Vec::new();
        let mut table = self.lock();
        for claimed in batch.tasks {
            if !batch.rowless {
                self.keeper.hold(Kind::Activity, claimed.fence, batch.asked_at);
            }
            if let Some(adoption) = table.adopt(&claimed, &batch.node) {
                if let Some(ended) = adoption.ended() {
                    self.keeper.let_go(Kind::Activity, ended);
                }
                continue;
            }
            let poisoned = claimed.poisoned;
            let limits = limits(&claimed, &self.limits);
            let is_late = limits.whole == Some(Duration::ZERO);
            let is_last = claimed.deliveries >= self.limits.max_attempts;
            let mut flight = Flight::new(claimed, batch.node.clone(), batch.isolated, limits);
            flight.is_last = is_last;
            if batch.rowless {
                flight.place = Place::Rowless;
            }
            if let Some(session) = &flight.claimed.session {
                self.sessions.begin(session, batch.asked_at);
            }
            let h = table.insert(flight);
            match table.get_mut(h).and_then(|flight| job(h, flight)) {
                Some(_) if poisoned => endings.push((h, Ending::Poisoned)),
                Some(_) if is_late => endings.push((h, Ending::Late)),
                Some(job) => jobs.push(job),
                None => endings.push((h, Ending::Corrupt)),
            }
        }
        self.outbox.push(Vec::new(), jobs);
        endings
    }

    /// JavaScript answered a job. What ends a task of an instance is added to `ended`, to be handed in with the other ends of
    /// its batch.
    pub(crate) fn answer(self: &Arc<Self>, h: u32, result: ActivityResult, ended: &mut Vec<Ended>) {
        failpoint::hit("activity.result.before");
        match result {
            ActivityResult::Completed(result) => {
                let outcome = |flight: &Flight| job::ended(flight, ActivityEnd::Completed(result));
                match self.settling(h, outcome) {
                    Some(commit) if matches!(commit.outcome, ActivityOutcome::Ended(_)) => {
                        let ran = self.note_time(h);
                        ended.push(Ended { h, commit, ran });
                    }
                    Some(commit) => self.hand_in(h, commit),
                    None => {}
                }
            }
            other => self.finish(h, other),
        }
        failpoint::hit("activity.result.after");
    }

    /// Hands in the ends of one batch of answers. Those of an instance whose frame is here go to its next turn as well, and
    /// wait for it a moment, to be committed together.
    pub(crate) fn hand_in_all(self: &Arc<Self>, ended: Vec<Ended>) {
        let taker = self.taker();
        let mut groups: Vec<Vec<Ended>> = Vec::new();
        let mut places: HashMap<(String, i64), usize> = HashMap::new();
        for one in ended {
            let key = &one.commit.key;
            let place = places.entry((key.instance.clone(), key.execution)).or_insert(groups.len());
            match groups.get_mut(*place) {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
        for group in groups {
            let rides = taker.as_ref().is_some_and(|taker| {
                let results = group.iter().filter_map(|one| match &one.commit.outcome {
                    ActivityOutcome::Ended(body) => Some((one.commit.key.event, body.clone())),
                    _ => None,
                });
                let key = &group[0].commit.key;
                let ran = group.iter().map(|one| one.ran).max().unwrap_or_default();
                taker.take(&key.instance, key.execution, results.collect(), ran)
            });
            let (rowless, others): (Vec<_>, Vec<_>) =
                group.into_iter().partition(|one| one.commit.rowless && !rides);
            let key = others.first().filter(|_| !rides).map(|one| one.commit.key.clone());
            for Ended { h, commit, .. } in others {
                self.commit(h, commit, rides);
            }
            if let (Some(key), Some(taker)) = (key, &taker) {
                // What goes through the inbox waits for the end of a lease that goes on.
                taker.tells(&key.instance, key.execution, &[]);
                taker.settle_kept(&key.instance);
            }
            self.hand_in_rowless(rowless);
        }
    }

    /// From here on results go to the next turns of this process first.
    pub(crate) fn results_to(&self, taker: Weak<dyn TakesResults>) {
        // It is told once, at the start.
        let _ = self.results.set(taker);
    }

    /// The answer of a job cannot be understood: its try has failed.
    pub(crate) fn unreadable(self: &Arc<Self>, h: u32, error: &Error) {
        let payload = error_payload("InfrastructureError", error.kind().code(), &error.text_without_data());
        self.finish(h, ActivityResult::Failed(payload));
    }

    fn poison(self: &Arc<Self>, h: u32) {
        let Some(text) = self.lock().get_mut(h).map(|flight| tell::poisoned(&self.provider, flight)) else {
            return;
        };
        let error = error_payload("PoisonError", "POISONED", &text);
        self.submit(h, |flight| ended(flight, ActivityEnd::Poisoned(error)));
    }

    pub(super) fn finish(self: &Arc<Self>, h: u32, result: ActivityResult) {
        match result {
            ActivityResult::Completed(result) => {
                self.submit(h, |flight| ended(flight, ActivityEnd::Completed(result)));
            }
            // What fails after its time limit has failed because of it.
            ActivityResult::Failed(error) => {
                self.submit(h, |flight| retry_or_end(flight, flight.timed_out.clone().unwrap_or(error)))
            }
            ActivityResult::Unregistered => {
                let delay = {
                    let mut table = self.lock();
                    let Some(flight) = table.get_mut(h).filter(|flight| !flight.settling) else { return };
                    let delay = self.returns.delay(Kind::Activity, &flight.claimed.name);
                    tell::unregistered(&self.provider, flight, delay);
                    delay
                };
                self.goes(h, Return::unregistered(delay));
                self.provider.wakes().work();
            }
            ActivityResult::Abandoned => {
                let runs = self.lock().runs(h);
                if runs {
                    self.goes(h, Return::Stopped);
                    self.provider.wakes().work();
                }
            }
        }
    }

    fn submit(self: &Arc<Self>, h: u32, outcome: impl FnOnce(&Flight) -> ActivityOutcome) {
        if let Some(commit) = self.settling(h, outcome) {
            self.hand_in(h, commit);
        }
    }

    /// Hands in what became of a task alone.
    fn hand_in(self: &Arc<Self>, h: u32, commit: ActivityCommit) {
        if commit.rowless {
            self.hand_in_rowless(vec![Ended { h, commit, ran: Duration::ZERO }]);
        } else {
            self.commit(h, commit, false);
        }
    }

    /// What is written of a task that ends now; none when it has ended.
    fn settling(&self, h: u32, outcome: impl FnOnce(&Flight) -> ActivityOutcome) -> Option<ActivityCommit> {
        let mut table = self.lock();
        let Some(flight) = table.get_mut(h).filter(|flight| !flight.settling) else {
            self.provider.counters().unknown_answers.add(1);
            return None;
        };
        flight.settling = true;
        flight.stop_timers();
        Some(ActivityCommit {
            key: flight.claimed.key.clone(),
            fence: flight.claimed.fence,
            node: flight.node.clone(),
            outcome: outcome(flight),
            rides: false,
            rowless: !matches!(flight.place, Place::Row),
            heartbeat: flight.heartbeat.take(),
        })
    }

    /// Gives a result to the committer; one that `rides` waits a moment for the turn that uses it.
    pub(super) fn commit(self: &Arc<Self>, h: u32, commit: ActivityCommit, rides: bool) {
        let commit = ActivityCommit { rides, ..commit };
        let fence = commit.fence;
        let failed = failure(&commit.outcome);
        let runner = Arc::clone(self);
        failpoint::hit("activity.submit.before");
        let committer = self.provider.committer();
        let settle = if rides { Committer::settle_riding } else { Committer::settle };
        settle(
            committer,
            CommitItem::Activity(commit),
            Box::new(move |outcome| {
                let settled = AssertUnwindSafe(|| {
                    if matches!(outcome, Ok(CommitOutcome::Done { .. })) {
                        runner.count(failed);
                    }
                    Arc::clone(&runner).settled(h, fence, outcome);
                });
                if catch_unwind(settled).is_err() {
                    runner.dismiss(h, fence);
                }
            }),
        );
        failpoint::hit("activity.submit.after");
    }

    fn settled(self: Arc<Self>, h: u32, fence: Fence, outcome: Result<CommitOutcome>) {
        failpoint::hit("activity.settled.before");
        let refusal = match outcome {
            Ok(CommitOutcome::Done { .. }) => {
                self.provider.counters().activities_settled.add(1);
                None
            }
            Ok(outcome) => {
                if self.keeper.let_go(Kind::Activity, fence) {
                    let told = if outcome == CommitOutcome::Overtaken { tell::overtaken } else { tell::lost };
                    told(&self.provider, self.lock().get_mut(h).as_deref(), fence);
                }
                None
            }
            Err(error) => Some(error),
        };
        match refusal {
            Some(error) if error.kind() != ErrorKind::Closed && !self.waits(h) => self.refused(h, &error),
            _ => {
                self.keeper.let_go(Kind::Activity, fence);
                self.take_out(h);
            }
        }
        failpoint::hit("activity.settled.after");
    }

    pub(super) fn count(&self, failed: Option<FailureClass>) {
        let counter = match failed {
            None => &self.counters.activity_success,
            Some(FailureClass::Application) => &self.counters.activity_app_errors,
            Some(FailureClass::Infrastructure) => &self.counters.activity_infra_errors,
            Some(FailureClass::Configuration) => &self.counters.activity_config_errors,
            Some(FailureClass::Poison) => &self.counters.activity_poison,
        };
        counter.add(1);
    }

    /// Whether a newer lease of this task waits: its outcome is not this one's business any more.
    fn waits(&self, h: u32) -> bool {
        self.lock().get_mut(h).is_some_and(|flight| flight.waiting.is_some())
    }

    /// The server refused the result: the activity fails with the reason, once; if that is refused as well the lease goes
    /// back and its count grows until the task is poisoned.
    fn refused(self: &Arc<Self>, h: u32, error: &Error) {
        let again = {
            let mut table = self.lock();
            let Some(flight) = table.get_mut(h) else { return };
            flight.settling = false;
            self.counters.provider_errors.add(1);
            !std::mem::replace(&mut flight.refused, true)
        };
        if again {
            let payload =
                error_payload("InfrastructureError", error.kind().code(), &error.text_without_data());
            self.submit(h, |flight| ended(flight, ActivityEnd::Failed(payload)));
        } else {
            self.goes(h, Return::Abandoned);
        }
    }

    /// Takes a flight out of the table; a lease that waited for its end goes back unstarted.
    pub(super) fn take_out(&self, h: u32) -> Option<Flight> {
        let mut flight = self.lock().remove(h)?;
        flight.stop_timers();
        if let Some(session) = &flight.claimed.session {
            self.sessions.end(session);
        }
        if let Some(waiting) = flight.waiting {
            self.returns.push(Kind::Activity, waiting, Return::Unstarted);
        }
        Some(flight)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ActivityTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn corrupt_input() -> Payload {
    error_payload("CorruptInputError", "CORRUPT", "the stored input is not JSON")
}

/// How a try failed, if it did.
pub(super) fn failure(outcome: &ActivityOutcome) -> Option<FailureClass> {
    match outcome {
        ActivityOutcome::Retry { .. } => Some(FailureClass::Application),
        ActivityOutcome::Ended(MessageBody::ActivityFailed { error, .. }) => {
            Some(FailureClass::of(error.as_str()))
        }
        ActivityOutcome::StandaloneEnded(ActivityEnd::Failed(error) | ActivityEnd::Poisoned(error)) => {
            Some(FailureClass::of(error.as_str()))
        }
        ActivityOutcome::Ended(_) | ActivityOutcome::StandaloneEnded(ActivityEnd::Completed(_)) => None,
    }
}
