//! Leases that end without a result go back in batches, beside the claims: neither waits for the other.
//!
//! It never decides why: the runners collect leases with their reasons.

use std::{
    collections::{BTreeSet, HashSet},
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};

use futures_util::future::BoxFuture;

use crate::{
    dispatch::Claimer,
    error::Result,
    failpoint,
    lease::{Kind, Return, Returned},
    pool::CallerClass,
    store::{Fence, turn::ClaimedTurn},
};

/// What a claimer gives back beside its rounds; dropped half way it is collected still.
#[derive(Default)]
pub(super) struct Giving(Option<BoxFuture<'static, ()>>);

impl Giving {
    /// Begins to give back what is collected, unless it is at it.
    pub(super) fn begin(&mut self, claimer: &Arc<Claimer>) {
        if self.0.is_some() || claimer.returns.fences().is_empty() {
            return;
        }
        let claimer = Arc::clone(claimer);
        self.0 = Some(Box::pin(async move {
            if let Err(error) = claimer.give_back().await {
                // A row that somebody else has locked must not keep the others from being claimed.
                tracing::debug!(error = %error.full_text(), "leases were not given back; tried again");
            }
        }));
    }

    /// Goes on with it while `work` runs.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if self.0.as_mut().is_some_and(|giving| giving.as_mut().poll(cx).is_ready()) {
                self.0 = None;
            }
            work.as_mut().poll(cx)
        })
        .await
    }
}

impl Claimer {
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
                self.returns.given_back();
                self.provider.hints().released(returned.len() as u64);
                Ok(())
            }
            Err(error) => {
                self.returns.put_back();
                Err(error)
            }
        }
    }

    /// How new a history is whose lease was cut off, a claim does not ask: what this node does not replay is left to others.
    pub(super) fn give_back_foreign(&self, turns: &mut Vec<ClaimedTurn>) {
        let replay = self.config.dispatch.replay_versions.range();
        let newer = |version: i64| !(replay.min..=replay.max).contains(&version);
        let foreign =
            |claimed: &mut ClaimedTurn| claimed.cut_off && claimed.replay_version.is_some_and(newer);
        for claimed in turns.extract_if(.., foreign) {
            let delay = self.returns.delay(Kind::Turn, &claimed.name);
            self.returns.push(Kind::Turn, claimed.fence, Return::unregistered(delay));
        }
    }

    /// A round that panicked may hold leases of work that never was in progress.
    pub(super) fn return_orphans(&self) {
        let mut known: HashSet<Fence> = self.turns.fences().into_iter().collect();
        known.extend(self.activities.fences());
        known.extend(self.returns.fences());
        for kind in [Kind::Turn, Kind::Activity] {
            for fence in self.keeper.held(kind).into_iter().filter(|fence| !known.contains(fence)) {
                self.returns.push(kind, fence, Return::Stopped);
            }
        }
    }

    async fn release(&self, returned: &[Returned]) -> Result<()> {
        let session = self.provider.store().acquire(CallerClass::Critical).await?;
        let node = self.node();
        let fences = |kind: Kind, why: Return| -> Vec<Fence> {
            let wanted = returned.iter().filter(|lease| lease.kind == kind && lease.why == why);
            wanted.map(|lease| lease.fence).collect()
        };
        let (turns, tasks) =
            (fences(Kind::Turn, Return::Unstarted), fences(Kind::Activity, Return::Unstarted));
        session.release_turns(&node, &turns, 0).await?;
        session.release_activities(&node, &tasks, 0).await?;
        let delays: BTreeSet<u64> = returned.iter().filter_map(|lease| lease.why.delay()).collect();
        for delay in delays {
            let why = Return::Unregistered(delay);
            let (turns, tasks) = (fences(Kind::Turn, why), fences(Kind::Activity, why));
            let delay = i64::try_from(delay).unwrap_or(i64::MAX);
            session.release_turns(&node, &turns, delay).await?;
            session.release_activities(&node, &tasks, delay).await?;
        }
        for (why, at_once) in [(Return::Stopped, true), (Return::Abandoned, false)] {
            let (turns, tasks) = (fences(Kind::Turn, why), fences(Kind::Activity, why));
            session.abandon_turns(&node, &turns, at_once).await?;
            session.abandon_activities(&node, &tasks, at_once).await?;
        }
        session.cut_off_turns(&node, &fences(Kind::Turn, Return::CutOff)).await?;
        Ok(())
    }
}
