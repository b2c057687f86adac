//! Does the chores of all nodes: throws away what was kept long enough (standalone activities that have ended, instances that
//! have ended, messages for instances that were never started) and looks for work that nobody can run.
//!
//! A chore is one node's at a time; rows that somebody else has locked are passed over. Every statement is short and other callers of the pool come first. Dropped half way nothing is half-done.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    config::RetentionConfig,
    engine::{
        sweep_pace::{Round, SweepPace},
        unserved,
    },
    error::Result,
    limits,
    manage::Manager,
    pool::{CallerClass, Loan},
    provider::Provider,
    store::{
        manage::Position,
        standalone,
        sweep::{self, Chore, Dropped, Taken},
    },
    telemetry::{self, Backoff, Level},
};

/// Between two batches.
const BREATH: Duration = Duration::from_millis(10);

/// The sweeper of one runtime.
pub(super) struct Sweeper {
    provider: Arc<Provider>,
    retention: RetentionConfig,
    pace: SweepPace,
    /// How far the walk through ended instances came.
    ended: Option<Position>,
    /// The same for turn rows.
    unknown: Option<String>,
    stop: Option<watch::Receiver<bool>>,
}

impl Sweeper {
    pub(super) fn new(provider: Arc<Provider>, retention: RetentionConfig) -> Self {
        let pace = SweepPace::new(retention.unknown_instance_retention);
        Self { provider, retention, pace, ended: None, unknown: None, stop: None }
    }

    /// Sweeps until `stop` says so.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.stop = Some(stop.clone());
        let mut backoff = Backoff::new(limits::SWEEP_EVERY, limits::SWEEP_RETRY_MAX);
        // Runtimes that were started together do not sweep together.
        let mut pause = (limits::SWEEP_EVERY / 10).mul_f64(telemetry::unit());
        while !*stop.borrow() {
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => {}
                _ = stop.changed() => return,
            }
            pause = match self.round().await {
                Ok(round) => {
                    backoff.reset();
                    self.pace.after(round);
                    self.pace.every().mul_f64(0.5 + telemetry::unit())
                }
                Err(error) => {
                    tracing::debug!(error = %error.full_text(), "a sweep failed and is tried again");
                    backoff.next_delay()
                }
            };
        }
    }

    async fn round(&mut self) -> Result<Round> {
        let mut wanted = vec![Chore::Jobs, Chore::Unserved];
        wanted.extend(self.retention.retention.map(|_| Chore::Ended));
        if self.unknown.is_some() || self.pace.walk_due(Instant::now()) {
            wanted.push(Chore::Unknown);
        }
        let taken = self.claim(&wanted).await?;
        let mut busy = false;
        if taken.chores.contains(&Chore::Unserved) {
            busy |= unserved::look(&self.provider).await? > 0;
        }
        if taken.chores.contains(&Chore::Jobs) {
            busy = true;
            while self.standalone().await? && !self.is_stopped() {
                tokio::time::sleep(BREATH).await;
            }
        }
        if let Some(before_ms) = taken.before(Chore::Unknown, self.retention.unknown_instance_retention) {
            busy |= self.drop_unknown(before_ms).await?;
        }
        let retention = self.retention.retention.unwrap_or(Duration::MAX);
        if let Some(before_ms) = taken.before(Chore::Ended, retention) {
            busy |= self.expire(before_ms).await?;
        }
        Ok(match (busy, taken.some) {
            (true, _) => Round::Busy,
            (false, true) => Round::Quiet,
            (false, false) => Round::Refused,
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| *stop.borrow())
    }

    /// Deletes one batch of standalone activities; whether there is more.
    async fn standalone(&self) -> Result<bool> {
        let statements = self.provider.statements();
        let sweep =
            |session: Loan| async move { standalone::sweep(&session, statements, limits::SWEEP_BATCH).await };
        let deleted = self.provider.pool().run(CallerClass::Ordinary, sweep).await?;
        Ok(i64::try_from(deleted).is_ok_and(|deleted| deleted >= limits::SWEEP_BATCH))
    }

    /// What is this node's to do for all; in one statement, because every node asks again and again.
    async fn claim(&self, wanted: &[Chore]) -> Result<Taken> {
        let session = self.provider.pool().acquire(CallerClass::Ordinary).await?;
        sweep::claim(&session, self.provider.statements(), wanted, self.pace.every()).await
    }

    /// One stretch of the turn rows; whether it dropped something, or there are more.
    async fn drop_unknown(&mut self, before_ms: i64) -> Result<bool> {
        let statements = self.provider.statements();
        let session = self.provider.pool().acquire(CallerClass::Ordinary).await?;
        let found = sweep::unknown(&session, statements, self.unknown.as_deref(), before_ms).await?;
        for batch in found.instances.chunks(usize::try_from(limits::SWEEP_BATCH).unwrap_or(1)) {
            self.tell_dropped(&sweep::drop_unknown(&session, statements, batch, before_ms).await?);
        }
        if found.end.is_none() {
            self.pace.walked(Instant::now());
        }
        self.unknown = found.end;
        Ok(self.unknown.is_some() || !found.instances.is_empty())
    }

    fn tell_dropped(&self, dropped: &Dropped) {
        let Dropped { messages, instances, example } = dropped;
        if *messages == 0 {
            return;
        }
        self.provider.counters().unknown_dropped.add(messages.unsigned_abs());
        let text = format!(
            "{messages} messages for {instances} instances that were never started were dropped: nobody started them within unknownInstanceRetentionMs"
        );
        let fields = serde_json::json!({ "messages": messages, "instances": instances, "instance": example });
        self.provider.events().emit("messages-dropped", Level::Warn, text, fields);
    }

    /// Deletes trees for a while; the next sweep goes on where this one ends. Whether it deleted something, or there are more.
    async fn expire(&mut self, before_ms: i64) -> Result<bool> {
        let (began, manager) = (Instant::now(), Manager::new(Arc::clone(&self.provider)));
        let mut busy = false;
        loop {
            let go_on = || began.elapsed() < limits::EXPIRE_FOR && !self.is_stopped();
            let (deleted, place) = manager.expire(before_ms, self.ended.clone(), go_on).await?;
            self.ended = place;
            if deleted.instances > 0 {
                busy = true;
                self.provider.counters().expired.add(deleted.instances.unsigned_abs());
                let text = format!(
                    "{} instances that ended longer ago than retentionMs were deleted",
                    deleted.instances
                );
                let fields = serde_json::json!({ "instances": deleted.instances, "events": deleted.events });
                self.provider.events().emit("instances-expired", Level::Info, text, fields);
            }
            if self.ended.is_none() || began.elapsed() >= limits::EXPIRE_FOR || self.is_stopped() {
                return Ok(busy || self.ended.is_some());
            }
            tokio::time::sleep(BREATH).await;
        }
    }
}
