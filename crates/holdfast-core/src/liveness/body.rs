//! The loop of one node: heartbeats, renewals, sweeps, and what their answers ask for.
//!
//! Invariants: one call is on the session at a time, a heartbeat before everything else and never for longer than its
//! limit; a sweep is done in batches between heartbeats, so that a long one makes no heartbeat late. When the session is
//! lost another is opened; when the node row is gone the node was declared dead: it registers again with a new epoch and
//! frees what the old one owns. The node says goodbye when the loop is stopped, or its runtime was dropped.
//! length: the steps of one loop, which share the session and its limits.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    clock::{self, Moment},
    config::ms,
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::Kind,
    limits,
    liveness::{
        Outage, Pulse, tell,
        thread::{LivenessEvents, Node},
    },
    store::{
        ActivityKey, Fence, NodeKey, StoreSession,
        node::{Along, Heartbeat, HeartbeatTimes, NodeTimes, Recovery},
        turn::RenewRequest,
    },
    telemetry::Backoff,
};

pub(super) struct Body {
    node: Node,
    events: Arc<dyn LivenessEvents>,
    session: Option<Box<dyn StoreSession>>,
    /// Tries to open one that took too long, in a row.
    late_opens: u32,
    pulse: Pulse,
    outage: Outage,
    /// Leases of nodes that are gone are left to be freed.
    sweeping: bool,
    /// Batches of old message keys that are left of this sweep.
    key_batches: usize,
}

impl Body {
    pub(super) fn new(node: Node, events: Arc<dyn LivenessEvents>) -> Self {
        let (interval, stale_after) = node.config.liveness.times();
        let troubled = node.provider.store().was_troubled();
        Self {
            events,
            session: None,
            late_opens: 0,
            pulse: Pulse::new(interval, stale_after, clock::now()),
            outage: Outage::new(interval, troubled),
            sweeping: false,
            key_batches: 0,
            node,
        }
    }

    /// Registers the node under a new epoch.
    pub(super) async fn register(&mut self) -> Result<()> {
        let id = self.lock_key().id.clone();
        let liveness = &self.node.config.liveness;
        let times = NodeTimes {
            interval_ms: ms(liveness.heartbeat_interval),
            stale_after_ms: ms(liveness.stale_after),
        };
        let sent = Moment::now();
        let session = self.session().await?;
        failpoint::hit("node.register.before");
        let key = session.register(&id, times).await?;
        failpoint::hit("node.register.after");
        *self.lock_key() = key;
        self.heard(sent);
        Ok(())
    }

    /// Runs until it is stopped, then says goodbye. Dropped half way the node goes stale.
    pub(super) async fn run(&mut self, stopped: &mut watch::Receiver<bool>) {
        let interval = self.node.config.liveness.heartbeat_interval;
        // From a blink to a whole interval: a lost session is opened again well before the node looks stale.
        let mut backoff = Backoff::new(interval / 20, interval);
        while !is_stopped(stopped) {
            let pause = match self.step().await {
                Ok(()) => {
                    backoff.reset();
                    self.next_step().saturating_duration_since(clock::now())
                }
                Err(error) => {
                    tracing::debug!(error = %error.full_text(), "heartbeat or renewal failed");
                    self.session = None;
                    self.node.standing.failed(Moment::now());
                    backoff.next_delay()
                }
            };
            tokio::select! {
                biased;
                // A lease shorter than a round trip must not turn the loop into a spin.
                () = tokio::time::sleep(pause.max(Duration::from_millis(1))) => {}
                _ = stopped.changed() => {}
            }
        }
        self.goodbye().await;
    }

    /// The loop panicked: what was on the session is not known.
    pub(super) fn restarted(&mut self) {
        self.session = None;
        self.outage.failed();
        self.node.provider.counters().parts_restarted.add(1);
    }

    fn next_step(&self) -> Instant {
        if self.node.standing.stuck().is_some() {
            return clock::now() + self.node.config.watch_interval();
        }
        if self.sweeping || self.key_batches > 0 {
            return clock::now();
        }
        let next = self.pulse.next().min(self.node.sessions.next_sweep());
        self.renewal_due().map_or(next, |renewal| renewal.min(next))
    }

    fn renewal_due(&self) -> Option<Instant> {
        let leases = self.node.keeper.next_due();
        leases.into_iter().chain(self.node.sessions.next_due()).min()
    }

    async fn step(&mut self) -> Result<()> {
        let now = clock::now();
        if self.node.standing.stuck().is_some() {
            // Others are to take over what this node holds.
            return Ok(());
        }
        if self.pulse.next() <= now {
            return self.beat().await;
        }
        if self.renewal_due().is_some_and(|due| due <= now) {
            return self.renew(now).await;
        }
        if self.sweeping {
            self.sweep().await;
        }
        if self.node.sessions.sweep_due(now) {
            self.sweep_sessions().await;
        } else if self.key_batches > 0 {
            self.forget_keys().await;
        }
        Ok(())
    }

    async fn beat(&mut self) -> Result<()> {
        let (now, sent) = (clock::now(), Moment::now());
        let recovery = self.outage.recovery(sent);
        if recovery != Recovery::Forbidden && self.pulse.sweep_due(now) {
            self.sweeping = true;
        }
        self.pulse.sent(now);
        self.outage.sent(sent);
        match self.send_heartbeat(recovery).await {
            Ok(answer) => {
                self.outage.answered(sent, Moment::now());
                if answer.outage {
                    self.outage.seen_at_others();
                }
                if answer.alive {
                    self.heard(sent);
                }
                self.node.provider.counters().heartbeats.add(1);
                self.heed(answer).await
            }
            Err(error) => {
                self.outage.failed();
                self.pulse.failed(clock::now());
                self.node.provider.counters().heartbeats_failed.add(1);
                tell::heartbeat_failed(self.node.provider.events(), &self.lock_key().id, &error);
                Err(error)
            }
        }
    }

    async fn send_heartbeat(&mut self, recovery: Recovery) -> Result<Heartbeat> {
        let is_new = self.session.is_none();
        self.open().await?;
        let limit = self.limit();
        let times = self.times(recovery);
        let (turns, activities) = (self.node.keeper.held(Kind::Turn), self.node.keeper.held(Kind::Activity));
        let key = self.lock_key().clone();
        let hints = Arc::clone(&self.node.hints);
        let proof = hints.begin_proof();
        let channel = proof.as_deref();
        // The first on a session takes nothing along: who waits there for a statement to be understood was heard before.
        let wished = if is_new { None } else { self.node.along.wished() };
        let look = wished.as_ref().map(|wished| wished.order.by(&key));
        let exchange = async {
            let session = self.session().await?;
            failpoint::hit("heartbeat.before");
            let held = (turns.as_slice(), activities.as_slice());
            let along = Along { proof_channel: channel, look: look.as_ref() };
            let answer = session.heartbeat(&key, held, times, along).await;
            failpoint::hit("heartbeat.after");
            answer
        };
        let answer = match tokio::time::timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(ErrorKind::Timeout, "heartbeat: no answer within its limit")),
        };
        if channel.is_some() {
            hints.end_proof(answer.is_ok());
        }
        if let (Some(wished), Ok(Heartbeat { alive: true, due: Some(due), .. })) = (&wished, &answer) {
            self.node.provider.counters().looks_along.add(1);
            self.node.along.bring(wished, *due);
        }
        answer
    }

    fn times(&self, recovery: Recovery) -> HeartbeatTimes {
        HeartbeatTimes {
            explicit: self.node.config.liveness.worker_node_id.is_some(),
            claim_limit_ms: ms(limits::CLAIM_LIMIT),
            recovery,
        }
    }

    async fn heed(&mut self, answer: Heartbeat) -> Result<()> {
        // Before single leases are lost: what runs is handed back and not cancelled.
        if !answer.alive {
            tell::declared_dead(self.node.provider.events(), &self.lock_key().id);
            self.node.provider.counters().declared_dead.add(1);
            self.events.declared_dead();
        }
        for fence in answer.gone_turns {
            self.events.lost_turn(fence);
        }
        self.tell_gone(&answer.gone_activities).await;
        self.node.provider.counters().nodes_recovered.add(answer.recovered_nodes.len() as u64);
        for id in &answer.recovered_nodes {
            tell::recovered(self.node.provider.events(), id);
            self.sweeping = true;
        }
        if answer.released > 0 {
            self.events.released(answer.released);
        }
        if !answer.alive {
            self.begin_again().await?;
        }
        self.look_for_cancels().await;
        Ok(())
    }

    /// Says of each activity whose lease is gone whether somebody else has it. Without an answer it counts as taken: a body
    /// that is told so goes back to the queue, and fails nothing.
    async fn tell_gone(&mut self, gone: &[Fence]) {
        let task = |fence: &Fence| self.events.task_of(*fence).map(|key| (*fence, key));
        let running: Vec<(Fence, ActivityKey)> = gone.iter().filter_map(task).collect();
        let mut taken = Some(Vec::new());
        if !running.is_empty() {
            let limit = self.limit();
            let asked = async { self.session().await?.taken(&running).await };
            taken = tokio::time::timeout(limit, asked).await.ok().and_then(Result::ok);
            if taken.is_none() {
                self.session = None;
            }
        }
        for fence in gone {
            self.events.lost_activity(*fence, taken.as_ref().is_none_or(|taken| taken.contains(fence)));
        }
    }

    /// A turn whose code runs a step for long would hear of a request to cancel when the step ends, which may be never.
    async fn look_for_cancels(&mut self) {
        let long = self.events.long_turns(self.node.config.liveness.heartbeat_interval);
        if long.is_empty() {
            return;
        }
        let limit = self.limit();
        let asked = async { self.session().await?.cancels(&long).await };
        match tokio::time::timeout(limit, asked).await.ok().and_then(Result::ok) {
            Some(cancels) => {
                for (instance, message) in cancels {
                    self.events.cancel_asked(&instance, message.id);
                }
            }
            None => self.session = None,
        }
    }

    /// What the gate held back goes on. A fence may have come and gone between two looks of the watch: nobody else knows of it.
    fn heard(&self, sent: Moment) {
        if self.node.standing.heard(sent) {
            self.events.may_go_on();
        }
    }

    /// A new epoch; what the old one still owns is free at once. Its late writes stand as long as nobody took the row.
    async fn begin_again(&mut self) -> Result<()> {
        let old = self.lock_key().clone();
        self.register().await?;
        let limit = self.limit();
        let session = self.session().await?;
        match tokio::time::timeout(limit, session.goodbye(&old)).await {
            Ok(outcome) => outcome?,
            // The sweeps free it.
            Err(_) => self.session = None,
        }
        self.events.released(u64::MAX);
        Ok(())
    }

    /// Longest wait for one answer: an interval, so that nothing keeps the next heartbeat waiting; a second at least, or a
    /// test's short interval would take every slow answer for a failure.
    fn limit(&self) -> Duration {
        self.node.config.liveness.heartbeat_interval.max(Duration::from_secs(1))
    }

    /// One batch of a sweep. One that fails says nothing about this node; it begins again with the next heartbeat.
    async fn sweep(&mut self) {
        let limit = self.limit();
        let batch = async {
            let session = self.session().await?;
            session.sweep().await
        };
        match tokio::time::timeout(limit, batch).await {
            Ok(Ok(swept)) => {
                self.sweeping = swept.more;
                self.node.provider.counters().leases_recovered.add(swept.freed);
                if swept.freed > 0 {
                    self.events.released(swept.freed);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(error = %error.full_text(), "a sweep failed");
                self.postpone_sweep();
            }
            Err(_) => self.postpone_sweep(),
        }
    }

    /// Ended sessions are waste, no more: one sweep that fails is left to the next.
    async fn sweep_sessions(&mut self) {
        let limit = self.limit();
        let batch = async { self.session().await?.sweep_sessions().await };
        let swept = tokio::time::timeout(limit, batch).await;
        self.threw_away(swept.ok());
        self.key_batches = limits::MESSAGE_KEY_BATCHES;
    }

    /// One batch of old keys of messages: waste as well.
    async fn forget_keys(&mut self) {
        let limit = self.limit();
        let batch = async { self.session().await?.forget_message_keys().await };
        let forgotten = tokio::time::timeout(limit, batch).await;
        let full = matches!(forgotten, Ok(Ok(count)) if count as i64 >= limits::MESSAGE_KEYS_BATCH);
        self.key_batches = if full { self.key_batches - 1 } else { 0 };
        self.threw_away(forgotten.ok());
    }

    /// After a failure, or without an answer, the session is opened anew.
    fn threw_away(&mut self, outcome: Option<Result<usize>>) {
        match outcome {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error.full_text(), "waste was not removed");
                self.session = None;
            }
            None => self.session = None,
        }
    }

    fn postpone_sweep(&mut self) {
        self.session = None;
        self.sweeping = false;
        self.pulse.sweep_failed();
    }

    async fn renew(&mut self, now: Instant) -> Result<()> {
        match tokio::time::timeout(self.limit(), self.renew_due(now)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::new(ErrorKind::Timeout, "renew leases: no answer within its limit")),
        }
    }

    async fn renew_due(&mut self, now: Instant) -> Result<()> {
        let lease = &self.node.config.lease;
        let turns = lease.renewal(lease.orchestrator_lock_timeout);
        let activities = lease.renewal(lease.worker_lock_timeout);
        self.renew_kind(Kind::Turn, now, turns).await?;
        self.renew_kind(Kind::Activity, now, activities).await?;
        self.renew_sessions(now).await
    }

    async fn renew_sessions(&mut self, now: Instant) -> Result<()> {
        let Some(in_use) = self.node.sessions.due(now) else { return Ok(()) };
        let config = &self.node.config;
        let (timeout, idle) = (ms(config.session.lock_timeout), ms(config.session.idle(&config.lease)));
        let key = self.lock_key().clone();
        let session = self.session().await?;
        let found = session.renew_sessions(&key, &in_use, timeout, idle).await?;
        self.node.sessions.renewed(found, now);
        Ok(())
    }

    async fn renew_kind(&mut self, kind: Kind, now: Instant, request: RenewRequest) -> Result<()> {
        let due = self.node.keeper.due(kind, now);
        if due.is_empty() {
            return Ok(());
        }
        let key = self.lock_key().clone();
        let session = self.session().await?;
        failpoint::hit("renew.before");
        let renewed = match kind {
            Kind::Turn => session.renew_turns(&key, &due, &request).await,
            Kind::Activity => session.renew_activities(&key, &due, &request).await,
        };
        failpoint::hit("renew.after");
        self.node.keeper.renewed(kind, &renewed?, now);
        Ok(())
    }

    async fn goodbye(&mut self) {
        let key = self.lock_key().clone();
        let limit = self.node.config.liveness.heartbeat_interval.min(Duration::from_secs(2));
        let farewell = async {
            let session = self.session().await?;
            failpoint::hit("goodbye.before");
            session.goodbye(&key).await?;
            failpoint::hit("goodbye.after");
            Ok::<(), Error>(())
        };
        if !matches!(tokio::time::timeout(limit, farewell).await, Ok(Ok(()))) {
            tracing::debug!("no goodbye: the others will find this node stale");
        }
    }

    /// Opens the session when there is none. That is no part of the heartbeat: it takes several replies, and where each comes
    /// late it would never end within the limit of one. Each try that was too short is followed by one of twice the time.
    async fn open(&mut self) -> Result<()> {
        let limit = self.limit().saturating_mul(2_u32.saturating_pow(self.late_opens));
        match tokio::time::timeout(limit, self.session()).await {
            Ok(opened) => {
                opened?;
                self.late_opens = 0;
                Ok(())
            }
            Err(_) => {
                self.late_opens += 1;
                Err(Error::new(ErrorKind::Timeout, "heartbeat: no session within its limit"))
            }
        }
    }

    async fn session(&mut self) -> Result<&dyn StoreSession> {
        if self.session.as_ref().is_none_or(|session| session.is_broken()) {
            self.session = Some(self.node.provider.store().open_liveness().await?);
        }
        self.session
            .as_deref()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the liveness session was just opened"))
    }

    fn lock_key(&self) -> MutexGuard<'_, NodeKey> {
        self.node.key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Told to stop, or left alone by a runtime that was dropped without a stop.
fn is_stopped(stopped: &watch::Receiver<bool>) -> bool {
    *stopped.borrow() || stopped.has_changed().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_was_dropped_stops_its_thread() {
        let (stop, stopped) = watch::channel(false);
        assert!(!is_stopped(&stopped));
        drop(stop);
        assert!(is_stopped(&stopped));
    }
}
