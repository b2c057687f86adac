//! The liveness thread: one session, one thread, one loop of heartbeats and renewals.
//!
//! It registers the node before anything is claimed and says goodbye after the last item is settled, or when its runtime
//! was dropped. When the session is lost it opens another; when the node row is gone the node was declared dead: it
//! registers again with a new epoch.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::{oneshot, watch};

use crate::{
    config::{EngineConfig, ms},
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Keeper, Kind},
    limits,
    liveness::Pulse,
    pool::{Session, SessionPurpose},
    provider::Provider,
    store::{
        Fence, NodeKey, activity, node,
        node::{Heartbeat, HeartbeatTimes},
        turn::{self, RenewRequest},
    },
    telemetry::Backoff,
};

/// What the liveness thread tells the runtime. Calls are short and never wait.
pub(crate) trait LivenessEvents: Send + Sync {
    /// A lease is not this node's any more.
    fn lost(&self, kind: Kind, fence: Fence);
    /// The node row was gone: live frames cannot be trusted any more.
    fn declared_dead(&self);
    /// Others' work was released, or own claims came back: there may be something to claim.
    fn released(&self);
}

/// The running thread.
pub(crate) struct Liveness {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// Resolves when the thread has said goodbye.
    ended: Option<oneshot::Receiver<()>>,
}

impl Liveness {
    /// Starts the thread; returns once the node is registered.
    pub(crate) async fn start(
        provider: Arc<Provider>,
        config: EngineConfig,
        keeper: Arc<Keeper>,
        node: Arc<Mutex<NodeKey>>,
        events: Arc<dyn LivenessEvents>,
    ) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let (registered, registration) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let body = Body { provider, config, keeper, node, events, session: None };
        let thread = std::thread::Builder::new()
            .name("holdfast-liveness".to_owned())
            .spawn(move || run_thread(body, stopped, registered, ending))
            .map_err(|error| Error::new(ErrorKind::Internal, "start the liveness thread").caused_by(error))?;
        let dead =
            || Error::new(ErrorKind::Internal, "the liveness thread ended before it registered the node");
        registration.await.unwrap_or_else(|_| Err(dead()))?;
        Ok(Self { stop, thread: Some(thread), ended: Some(ended) })
    }

    /// Says goodbye and ends the thread; waits at most `limit`.
    pub(crate) async fn stop(&mut self, limit: Duration) {
        // A thread that is gone already needs no signal.
        let _ = self.stop.send(true);
        if let Some(ended) = self.ended.take()
            && tokio::time::timeout(limit, ended).await.is_ok()
            && let Some(thread) = self.thread.take()
        {
            // The loop has ended, so this does not wait; a panic was logged by the hook.
            let _ = thread.join();
        }
    }
}

fn run_thread(
    body: Body,
    stopped: watch::Receiver<bool>,
    registered: oneshot::Sender<Result<()>>,
    ending: oneshot::Sender<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(body.run(stopped, registered)),
        Err(error) => {
            let error = Error::new(ErrorKind::Internal, "start the liveness runtime").caused_by(error);
            // The starter waits for this answer.
            let _ = registered.send(Err(error));
        }
    }
    // The stopper may have given up waiting.
    let _ = ending.send(());
}

struct Body {
    provider: Arc<Provider>,
    config: EngineConfig,
    keeper: Arc<Keeper>,
    node: Arc<Mutex<NodeKey>>,
    events: Arc<dyn LivenessEvents>,
    session: Option<Session>,
}

impl Body {
    async fn run(mut self, mut stopped: watch::Receiver<bool>, registered: oneshot::Sender<Result<()>>) {
        let outcome = self.register().await;
        let failed = outcome.is_err();
        // The starter waits for this answer.
        let _ = registered.send(outcome);
        if failed {
            return;
        }
        let interval = self.config.liveness.heartbeat_interval;
        let mut pulse = Pulse::new(interval, self.config.liveness.stale_after, Instant::now());
        // From a blink to a whole interval: a lost session is opened again well before the node looks stale.
        let mut backoff = Backoff::new(interval / 20, interval);
        while !is_stopped(&stopped) {
            let now = Instant::now();
            let outcome =
                if pulse.next() <= now { self.beat(&mut pulse).await } else { self.renew(now).await };
            match outcome {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    tracing::debug!(error = %error.full_text(), "heartbeat or renewal failed");
                    self.session = None;
                    tokio::select! {
                        () = tokio::time::sleep(backoff.next_delay()) => {}
                        _ = stopped.changed() => {}
                    }
                    continue;
                }
            }
            let next = self.keeper.next_due().map_or(pulse.next(), |renewal| renewal.min(pulse.next()));
            // A lease shorter than a round trip must not turn the loop into a spin.
            let next = next.max(Instant::now() + Duration::from_millis(1));
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                _ = stopped.changed() => {}
            }
        }
        self.goodbye().await;
    }

    async fn register(&mut self) -> Result<()> {
        let id = self.lock_node().id.clone();
        let statements = Arc::clone(self.provider.statements());
        let session = self.session().await?;
        failpoint::hit("node.register.before");
        let key = node::register(session, &statements, &id).await?;
        failpoint::hit("node.register.after");
        *self.lock_node() = key;
        Ok(())
    }

    async fn beat(&mut self, pulse: &mut Pulse) -> Result<()> {
        let sent = Instant::now();
        let times = HeartbeatTimes {
            stale_after_ms: ms(self.config.liveness.stale_after),
            predecessor_stale_ms: self
                .config
                .liveness
                .worker_node_id
                .is_some()
                .then(|| ms(3 * self.config.liveness.heartbeat_interval)),
            claim_limit_ms: ms(limits::CLAIM_LIMIT),
            may_recover: pulse.may_recover(sent),
        };
        let sweep = times.may_recover && pulse.sweep_due(sent);
        pulse.sent(sent);
        match self.send_heartbeat(times, sweep).await {
            Ok(answer) => {
                pulse.answered(sent, Instant::now());
                self.provider.counters().heartbeats.add(1);
                self.heed(answer).await
            }
            Err(error) => {
                pulse.failed();
                self.provider.counters().heartbeats_failed.add(1);
                Err(error)
            }
        }
    }

    async fn send_heartbeat(&mut self, times: HeartbeatTimes, sweep: bool) -> Result<Heartbeat> {
        let limit = self.limit();
        let (turns, activities) = (self.keeper.held(Kind::Turn), self.keeper.held(Kind::Activity));
        let key = self.lock_node().clone();
        let statements = Arc::clone(self.provider.statements());
        let exchange = async {
            let session = self.session().await?;
            failpoint::hit("heartbeat.before");
            let answer = node::heartbeat(session, &statements, &key, &turns, &activities, times, sweep).await;
            failpoint::hit("heartbeat.after");
            answer
        };
        match tokio::time::timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(ErrorKind::Timeout, "heartbeat: no answer within its limit")),
        }
    }

    async fn heed(&mut self, answer: Heartbeat) -> Result<()> {
        for fence in answer.gone_turns {
            self.events.lost(Kind::Turn, fence);
        }
        for fence in answer.gone_activities {
            self.events.lost(Kind::Activity, fence);
        }
        let counters = self.provider.counters();
        counters.nodes_recovered.add(answer.recovered_nodes.len() as u64);
        counters.leases_recovered.add(answer.recovered_leases);
        for id in &answer.recovered_nodes {
            tracing::info!(node = %id, "recovered the work of a dead node");
        }
        if answer.recovered_leases > 0 || answer.released > 0 {
            self.events.released();
        }
        if !answer.alive {
            tracing::warn!("this node was declared dead and registers again");
            self.events.declared_dead();
            self.register().await?;
        }
        Ok(())
    }

    /// Longest wait for one answer: an interval, so that nothing keeps the next heartbeat waiting; a second at least, or a
    /// test's short interval would take every slow answer for a failure.
    fn limit(&self) -> Duration {
        self.config.liveness.heartbeat_interval.max(Duration::from_secs(1))
    }

    async fn renew(&mut self, now: Instant) -> Result<()> {
        match tokio::time::timeout(self.limit(), self.renew_due(now)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::new(ErrorKind::Timeout, "renew leases: no answer within its limit")),
        }
    }

    async fn renew_due(&mut self, now: Instant) -> Result<()> {
        let lease = &self.config.lease;
        let turns = lease.renewal(lease.orchestrator_lock_timeout);
        let activities = lease.renewal(lease.worker_lock_timeout);
        self.renew_kind(Kind::Turn, now, turns).await?;
        self.renew_kind(Kind::Activity, now, activities).await
    }

    async fn renew_kind(&mut self, kind: Kind, now: Instant, request: RenewRequest) -> Result<()> {
        let due = self.keeper.due(kind, now);
        if due.is_empty() {
            return Ok(());
        }
        let key = self.lock_node().clone();
        let statements = Arc::clone(self.provider.statements());
        let session = self.session().await?;
        failpoint::hit("renew.before");
        let renewed = match kind {
            Kind::Turn => turn::renew(session, &statements, &key, &due, &request).await,
            Kind::Activity => activity::renew(session, &statements, &key, &due, &request).await,
        };
        failpoint::hit("renew.after");
        self.keeper.renewed(kind, &renewed?, now);
        Ok(())
    }

    async fn goodbye(&mut self) {
        let key = self.lock_node().clone();
        let statements = Arc::clone(self.provider.statements());
        let limit = self.config.liveness.heartbeat_interval.min(Duration::from_secs(2));
        let farewell = async {
            let session = self.session().await?;
            failpoint::hit("goodbye.before");
            node::goodbye(session, &statements, &key).await?;
            failpoint::hit("goodbye.after");
            Ok::<(), Error>(())
        };
        if !matches!(tokio::time::timeout(limit, farewell).await, Ok(Ok(()))) {
            tracing::debug!("no goodbye: the others will find this node stale");
        }
    }

    async fn session(&mut self) -> Result<&Session> {
        if self.session.as_ref().is_none_or(Session::is_broken) {
            self.session = Some(self.provider.pool().open_session(SessionPurpose::Liveness).await?);
        }
        self.session
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the liveness session was just opened"))
    }

    fn lock_node(&self) -> MutexGuard<'_, NodeKey> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner)
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
