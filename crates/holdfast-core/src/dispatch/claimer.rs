//! The claimer: one task of a runtime that feeds all its slots, and gives back what will not run here.
//!
//! It claims what the free slots can take, at once again while more is due, and otherwise sleeps until a hint, the next
//! known due time or the poll interval.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, watch};

use crate::{
    activity::{ActivityRunner, ClaimedTasks},
    clock::Moment,
    config::{DispatchConfig, EngineConfig},
    dispatch::{Handlers, pace::Pace},
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Keeper, Kind, Return, Returned, Returns},
    limits,
    liveness::{Claiming, Standing},
    pool::{CallerClass, Session},
    provider::Provider,
    store::{
        Fence, NodeKey, activity, node,
        turn::{self, ClaimRequest},
    },
    telemetry::{Backoff, Level, RunCounters},
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
    pub(crate) returns: Arc<Returns>,
    pub(crate) turns: Arc<TurnRunner>,
    pub(crate) activities: Arc<ActivityRunner>,
    pub(crate) wake: Arc<Notify>,
}

/// What one round brought.
#[derive(Debug, Default)]
struct Round {
    claimed: usize,
    /// A claim came back full: more is due.
    full: bool,
    /// Until the next row is due.
    next_due: Option<Duration>,
}

/// What the claimer remembers from round to round.
#[derive(Debug, Default)]
struct Memory {
    /// The last look for suspects.
    suspects: Option<Instant>,
    /// A round failed: a claim of it may have been carried out.
    unanswered: bool,
}

impl Claimer {
    /// Claims until `stop` says so. Dropped half way it may hold rows that nobody here knows of: the heartbeat, or the
    /// goodbye, frees them.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        let mut memory = Memory::default();
        let DispatchConfig { poll_interval, long_poll_timeout, .. } = self.config.dispatch;
        let mut pace = Pace::new(poll_interval, long_poll_timeout.min(limits::POLL_WITHOUT_LISTENER));
        while !*stop.borrow() {
            match self.round(&mut memory).await {
                Ok(round) => {
                    backoff.reset();
                    if round.full && self.has_free_slot() {
                        continue;
                    }
                    tokio::select! {
                        () = self.wake.notified() => {}
                        () = tokio::time::sleep(pace.after(round.claimed, round.next_due)) => {}
                        _ = stop.changed() => {}
                    }
                }
                Err(error) => {
                    self.provider.counters().claims_failed.add(1);
                    self.counters.provider_errors.add(1);
                    let text = format!("a claim failed and is tried again: {}", error.full_text());
                    let fields = serde_json::json!({ "code": error.kind().code() });
                    self.provider.events().emit("claim-failed", Level::Warn, text, fields);
                    memory.unanswered = true;
                    if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::CircuitOpen) {
                        self.standing.failed(Moment::now());
                    }
                    // No hint cuts this short: giving back what the failed round claimed rings the bell.
                    tokio::select! {
                        () = tokio::time::sleep(backoff.next_delay()) => {}
                        _ = stop.changed() => {}
                    }
                }
            }
        }
    }

    /// Gives back collected leases; what could not be given back stays collected.
    pub(crate) async fn give_back(&self) -> Result<()> {
        let returned = self.returns.take();
        if returned.is_empty() {
            return Ok(());
        }
        failpoint::hit("release.before");
        let outcome = self.release(&returned).await;
        failpoint::hit("release.after");
        match outcome {
            Ok(()) => {
                for lease in &returned {
                    self.keeper.let_go(lease.kind, lease.fence);
                }
                self.provider.wakes().work();
                Ok(())
            }
            Err(error) => {
                self.returns.put_back(returned);
                Err(error)
            }
        }
    }

    async fn release(&self, returned: &[Returned]) -> Result<()> {
        let session = self.provider.pool().acquire(CallerClass::Critical).await?;
        let statements = self.provider.statements();
        let node = self.node();
        let fences = |kind: Kind, why: Return| -> Vec<Fence> {
            let wanted = returned.iter().filter(|lease| lease.kind == kind && lease.why == why);
            wanted.map(|lease| lease.fence).collect()
        };
        let (turns, tasks) =
            (fences(Kind::Turn, Return::Unstarted), fences(Kind::Activity, Return::Unstarted));
        turn::release(&session, statements, &node, &turns, 0).await?;
        activity::release(&session, statements, &node, &tasks, 0).await?;
        for (why, at_once) in [(Return::Stopped, true), (Return::Abandoned, false)] {
            let (turns, tasks) = (fences(Kind::Turn, why), fences(Kind::Activity, why));
            turn::abandon(&session, statements, &node, &turns, at_once).await?;
            activity::abandon(&session, statements, &node, &tasks, at_once).await?;
        }
        Ok(())
    }

    async fn round(&self, memory: &mut Memory) -> Result<Round> {
        if let Err(error) = self.give_back().await {
            // A row that somebody else has locked must not keep the others from being claimed.
            tracing::debug!(error = %error.full_text(), "leases were not given back; tried again");
        }
        if self.free() == (0, 0) {
            return Ok(Round::default());
        }
        let session = self.provider.pool().acquire(CallerClass::Ordinary).await?;
        if memory.unanswered {
            self.release_unanswered(&session).await?;
            memory.unanswered = false;
        }
        // Suspects are few and come after the others, but not behind a backlog without end.
        let overdue = memory.suspects.is_none_or(|last| last.elapsed() >= limits::SUSPECTS_EVERY);
        let mut claimed = 0;
        if overdue {
            claimed += self.claim_suspects(&session, memory).await?;
        }
        let mut round = self.claim(&session, self.free(), false).await?;
        if !round.full && !overdue {
            claimed += self.claim_suspects(&session, memory).await?;
        }
        round.claimed += claimed;
        if round.claimed == 0 {
            let due = turn::next_due(&session, self.provider.statements()).await?;
            round.next_due = due.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        }
        Ok(round)
    }

    /// Suspects run one of each kind at a time.
    async fn claim_suspects(&self, session: &Session, memory: &mut Memory) -> Result<usize> {
        memory.suspects = Some(Instant::now());
        let alone = (usize::from(!self.turns.isolated()), usize::from(!self.activities.isolated()));
        let free = self.free();
        Ok(self.claim(session, (alone.0.min(free.0), alone.1.min(free.1)), true).await?.claimed)
    }

    /// After a claim without an answer: this node's rows that it does not know of were claimed and never started. What a
    /// server that is slow to notice claims later is left to the heartbeat.
    async fn release_unanswered(&self, session: &Session) -> Result<()> {
        let held = (self.keeper.held(Kind::Turn), self.keeper.held(Kind::Activity));
        let statements = self.provider.statements();
        node::release_unknown(session, statements, &self.node(), &held.0, &held.1, Duration::ZERO).await?;
        Ok(())
    }

    fn free(&self) -> (usize, usize) {
        (self.turns.free().min(limits::CLAIM_BATCH), self.activities.free().min(limits::CLAIM_BATCH))
    }

    async fn claim(&self, session: &Session, free: (usize, usize), isolated: bool) -> Result<Round> {
        let node = self.node();
        let statements = self.provider.statements();
        let asked_at = Instant::now();
        let names = self.handlers.names();
        let exact = self.handlers.exact();
        let wanted = (free.0 > 0 && !names.is_empty(), free.1 > 0 && !self.handlers.activities.is_empty());
        if wanted == (false, false) {
            return Ok(Round::default());
        }
        self.provider.counters().claims.add(1);
        let turns = async {
            let request = self.turn_request(&node, free.0, isolated);
            if !wanted.0 {
                return Ok(Vec::new());
            }
            failpoint::hit("claim.turns.before");
            let claimed = turn::claim(session, statements, &request, &names, &exact).await;
            failpoint::hit("claim.turns.after");
            claimed
        };
        let activities = async {
            let request = self.activity_request(&node, free.1, isolated);
            if !wanted.1 {
                return Ok(Vec::new());
            }
            failpoint::hit("claim.activities.before");
            let claimed = activity::claim(session, statements, &request, &self.handlers.activities).await;
            failpoint::hit("claim.activities.after");
            claimed
        };
        let (turns, activities) = futures_util::future::join(turns, activities).await;
        // What one queue gave is held also when the other failed.
        let (mut turns, turns_failed) = split(turns);
        let (mut tasks, tasks_failed) = split(activities);
        let round = Round {
            claimed: turns.len() + tasks.len(),
            full: !isolated && (free.0 > 0 && turns.len() == free.0 || free.1 > 0 && tasks.len() == free.1),
            next_due: None,
        };
        self.provider.counters().turns_claimed.add(turns.len() as u64);
        self.provider.counters().activities_claimed.add(tasks.len() as u64);
        let fences = turns.iter().map(|claimed| claimed.fence).collect();
        let gone = self.fenced_meanwhile(session, &node, Kind::Turn, fences, asked_at).await;
        turns.retain(|claimed| !gone.contains(&claimed.fence));
        let fences = tasks.iter().map(|claimed| claimed.fence).collect();
        let gone = self.fenced_meanwhile(session, &node, Kind::Activity, fences, asked_at).await;
        tasks.retain(|claimed| !gone.contains(&claimed.fence));
        if !tasks.is_empty() {
            self.activities.take(ClaimedTasks { tasks, node: node.clone(), isolated, asked_at });
        }
        if !turns.is_empty() {
            self.turns.take(session, ClaimedBatch { turns, node, isolated, asked_at }).await?;
        }
        turns_failed.or(tasks_failed).map_or(Ok(round), Err)
    }

    /// A reply that came late is followed by one renewal; returns what was fenced by then and is not started. Correctness
    /// rests on the fences, so a look that fails changes nothing.
    async fn fenced_meanwhile(
        &self,
        session: &Session,
        node: &NodeKey,
        kind: Kind,
        fences: Vec<Fence>,
        asked_at: Instant,
    ) -> Vec<Fence> {
        let lease = match kind {
            Kind::Turn => self.config.lease.orchestrator_lock_timeout,
            Kind::Activity => self.config.lease.worker_lock_timeout,
        };
        if fences.is_empty() || asked_at.elapsed() * 5 <= lease {
            return Vec::new();
        }
        let statements = self.provider.statements();
        let times = self.config.lease.renewal(lease);
        let renewed = match kind {
            Kind::Turn => turn::renew(session, statements, node, &fences, &times).await,
            Kind::Activity => activity::renew(session, statements, node, &fences, &times).await,
        };
        let Ok(renewed) = renewed else { return Vec::new() };
        // What a renewal leaves out may only be locked at this moment.
        let left_out: Vec<Fence> = fences.into_iter().filter(|fence| !renewed.contains(fence)).collect();
        let gone = match kind {
            Kind::Turn => turn::gone(session, statements, node, &left_out).await,
            Kind::Activity => activity::gone(session, statements, node, &left_out).await,
        };
        gone.unwrap_or_default()
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
        }
    }

    fn has_free_slot(&self) -> bool {
        self.turns.free() > 0 || self.activities.free() > 0
    }

    fn node(&self) -> NodeKey {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn split<T>(claimed: Result<Vec<T>>) -> (Vec<T>, Option<Error>) {
    match claimed {
        Ok(rows) => (rows, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}
