//! Telling bodies to stop: their time limit, a cancellation, a lost lease, the end of the runtime.
//!
//! A body is told once by the signal of its context and then has a grace period. After it the slot is free, whether the
//! body has ended or not, and a late answer is ignored.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use holdfast_replay::Payload;
use tokio::task::AbortHandle;

use crate::{
    activity::{ActivityRunner, flight::Flight, job::TryLimits, rowless::Place, tell},
    clock,
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
            // One without a row goes back with its turn; one that is about to get it is freed by the goodbye.
            if let Some(flight) = self.take_out(h)
                && matches!(flight.place, Place::Row)
            {
                self.returns.push(Kind::Activity, flight.claimed.fence, Return::Stopped);
            }
        }
    }

    /// A lease is not this node's any more: the body is told, and its slot is free after the grace period at the latest.
    /// A commit that is on its way ends the lease itself, and says so when it came too late; so does what gives it back.
    pub(crate) fn lost(self: &Arc<Self>, fence: Fence, reason: AbortReason) {
        let held_by = self.lock().by_fence(fence);
        let ends_here =
            held_by.is_some_and(|h| !self.lock().runs(h)) || self.returns.has(Kind::Activity, fence);
        if ends_here || !self.keeper.let_go(Kind::Activity, fence) {
            return;
        }
        let Some(h) = held_by else { return };
        if reason != AbortReason::Cancelled {
            tell::lost(&self.provider, self.lock().get_mut(h).as_deref(), fence);
        }
        self.stop(h, fence, reason);
    }

    /// The task that runs under a lease.
    pub(crate) fn task_of(&self, fence: Fence) -> Option<ActivityKey> {
        let mut table = self.lock();
        let h = table.by_fence(fence)?;
        table.get_mut(h).map(|flight| flight.claimed.key.clone())
    }

    /// A task was cancelled by this process: its lease is gone with its row. True: this runner goes on listening.
    pub(crate) fn gone(self: &Arc<Self>, key: &ActivityKey) -> bool {
        let running = self.lock().by_key(key);
        if let Some((h, fence, rowless)) = running
            && (rowless || self.keeper.let_go(Kind::Activity, fence))
        {
            self.stop(h, fence, AbortReason::Cancelled);
        }
        true
    }

    pub(super) fn stop(self: &Arc<Self>, h: u32, fence: Fence, reason: AbortReason) {
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

    /// The bodies of these start now, and their time limits with them.
    pub(crate) fn started(self: &Arc<Self>, handles: &[u32]) {
        for h in handles {
            let mut trial = None;
            let limits = self.lock().get_mut(*h).map(|flight| {
                flight.began = Some(clock::now());
                trial = (flight.isolated && !flight.is_last).then(|| flight.trial());
                flight.limits.clone()
            });
            if let Some(trial) = trial {
                // The next suspect may be claimed then, and no hint comes of it.
                let runner = Arc::clone(self);
                let timer = self.spawn(trial, move || runner.provider.wakes().work());
                self.put_timer(*h, timer, |flight| &mut flight.trial_over);
            }
            let Some(TryLimits { whole, silence, .. }) = limits else { continue };
            if let Some(whole) = whole {
                let (runner, h) = (Arc::clone(self), *h);
                self.spawn_limit(h, whole, move || runner.time_is_over(h));
            }
            if let Some(silence) = silence {
                self.watch_silence(*h, silence);
            }
        }
    }

    /// A body that tells nothing for this long has failed.
    pub(super) fn watch_silence(self: &Arc<Self>, h: u32, silence: Duration) {
        let runner = Arc::clone(self);
        let timer = self.spawn(silence, move || {
            runner.time_out(h, &format!("no heartbeat came for {} ms", silence.as_millis()));
        });
        self.put_timer(h, timer, |flight| &mut flight.silence);
    }

    /// The limit over all tries of a task passed before this one started.
    pub(super) fn is_late(self: &Arc<Self>, h: u32) {
        let error = timeout_error("the time limit over all its tries passed before this one started");
        self.finish(h, ActivityResult::Failed(error));
    }

    /// The time limit of a task has passed.
    fn time_is_over(self: &Arc<Self>, h: u32) {
        let Some(limits) = self.lock().get_mut(h).map(|flight| flight.limits.clone()) else { return };
        let ms = limits.whole.unwrap_or_default().as_millis();
        let why = if limits.is_rest {
            "the time limit over all its tries passed".to_owned()
        } else {
            format!("its time limit of {ms} ms passed")
        };
        self.time_out(h, &why);
    }

    /// A try has failed for want of time: its body is told to stop, and after the grace period its slot is free; at once where
    /// the policy says so.
    fn time_out(self: &Arc<Self>, h: u32, why: &str) {
        let error = timeout_error(why);
        let at_once;
        {
            let mut table = self.lock();
            let Some(flight) = table.get_mut(h).filter(|flight| !flight.settling) else { return };
            if flight.timed_out.is_some() {
                return;
            }
            flight.timed_out = Some(error.clone());
            at_once = flight.limits.at_once;
        }
        self.outbox.abort(h, AbortReason::Timeout);
        if at_once {
            self.finish(h, ActivityResult::Failed(error));
            return;
        }
        let runner = Arc::clone(self);
        self.spawn_limit(h, self.limits.grace, move || runner.finish(h, ActivityResult::Failed(error)));
    }

    fn spawn_limit(&self, h: u32, after: Duration, then: impl FnOnce() + Send + 'static) {
        let timer = self.spawn(after, then);
        self.put_timer(h, timer, |flight| &mut flight.limit);
    }

    pub(super) fn spawn(&self, after: Duration, then: impl FnOnce() + Send + 'static) -> AbortHandle {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        while timers.try_join_next().is_some() {}
        timers.spawn(async move {
            tokio::time::sleep(after).await;
            then();
        })
    }

    /// A timer takes the place of the one before; without its task it is not wanted.
    fn put_timer(
        &self,
        h: u32,
        timer: AbortHandle,
        place: impl FnOnce(&mut Flight) -> &mut Option<AbortHandle>,
    ) {
        match self.lock().get_mut(h) {
            Some(flight) => {
                if let Some(old) = place(flight).replace(timer) {
                    old.abort();
                }
            }
            None => timer.abort(),
        }
    }
}

fn timeout_error(why: &str) -> Payload {
    error_payload("TimeoutError", "TIMEOUT", &format!("timeout: activity timed out: {why}"))
}
