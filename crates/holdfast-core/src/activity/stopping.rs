//! Telling bodies to stop: their time limit, a cancellation, a lost lease, the end of the runtime.
//!
//! A body is told once by the signal of its context and then has a grace period. After it the slot is free, whether the
//! body has ended or not, and a late answer is ignored.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use crate::{
    activity::{ActivityRunner, job::policy, tell},
    crossing::{AbortReason, ActivityResult},
    lease::{Kind, Return},
    store::{ActivityKey, Fence},
    telemetry::error_payload,
};

impl ActivityRunner {
    /// Tells every running body to stop.
    pub(crate) fn abort_all(&self, reason: AbortReason) {
        for h in self.lock().all() {
            self.outbox.abort(h, reason);
        }
    }

    /// Bodies that are still running when the runtime stops: their count stays.
    pub(crate) fn stop_all(&self) {
        let handles = self.lock().all();
        for h in handles {
            if let Some(flight) = self.take_out(h) {
                self.returns.push(Kind::Activity, flight.claimed.fence, Return::Stopped);
            }
        }
    }

    /// A lease is not this node's any more: the body is told, and its slot is free after the grace period at the latest.
    pub(crate) fn lost(self: &Arc<Self>, fence: Fence, reason: AbortReason) {
        if !self.keeper.let_go(Kind::Activity, fence) {
            return;
        }
        let Some(h) = self.lock().by_fence(fence) else { return };
        tell::lost(&self.provider, self.lock().get_mut(h).as_deref(), fence);
        self.stop(h, fence, reason);
    }

    /// A task was cancelled by this process: its lease is gone with its row. True: this runner goes on listening.
    pub(crate) fn gone(self: &Arc<Self>, key: &ActivityKey) -> bool {
        let running = self.lock().by_key(key);
        if let Some((h, fence)) = running
            && self.keeper.let_go(Kind::Activity, fence)
        {
            self.stop(h, fence, AbortReason::Cancelled);
        }
        true
    }

    fn stop(self: &Arc<Self>, h: u32, fence: Fence, reason: AbortReason) {
        if self.outbox.withdraw(h) {
            self.take_out(h);
            return;
        }
        self.outbox.abort(h, reason);
        let runner = Arc::clone(self);
        self.spawn_limit(h, self.limits.grace, move || {
            // The body may go on under a newer lease.
            let held = runner.lock().holds(h, fence);
            if held {
                runner.take_out(h);
            }
        });
    }

    /// After `limit` the body is told to stop, and after the grace period its try has failed; at once where the policy says
    /// that this is final.
    pub(super) fn start_limit(self: &Arc<Self>, h: u32, limit: Duration) {
        let runner = Arc::clone(self);
        self.spawn_limit(h, limit, move || {
            let error = error_payload(
                "TimeoutError",
                "TIMEOUT",
                &format!("timeout: activity timed out after {} ms", limit.as_millis()),
            );
            if runner.outbox.withdraw(h) {
                runner.finish(h, ActivityResult::Failed(error));
                return;
            }
            runner.outbox.abort(h, AbortReason::Timeout);
            let at_once = runner
                .lock()
                .get_mut(h)
                .and_then(|flight| policy(&flight.claimed))
                .is_some_and(|policy| policy.final_timeout);
            if at_once {
                runner.finish(h, ActivityResult::Failed(error));
                return;
            }
            let again = Arc::clone(&runner);
            runner
                .spawn_limit(h, runner.limits.grace, move || again.finish(h, ActivityResult::Failed(error)));
        });
    }

    fn spawn_limit(&self, h: u32, after: Duration, then: impl FnOnce() + Send + 'static) {
        let handle = {
            let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
            while timers.try_join_next().is_some() {}
            timers.spawn(async move {
                tokio::time::sleep(after).await;
                then();
            })
        };
        match self.lock().get_mut(h) {
            Some(flight) => {
                if let Some(old) = flight.limit.replace(handle) {
                    old.abort();
                }
            }
            None => handle.abort(),
        }
    }
}
