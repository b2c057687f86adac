//! Keeping the lease of a turn for activities without a row, and ending it. What goes on is in the table of kept leases.
//!
//! It never runs an activity.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    clock,
    lease::{Kind, Reserved, Return, TakesTasks},
    store::{
        ActivityKey,
        activity::ClaimedActivity,
        commit::{BelatedActivity, NewActivity, TurnCommit},
        replay_version,
        turn::ClaimedTurn,
    },
    turn::{Flight, Next, TurnRunner, commit::empty, kept::key, local::as_claimed},
};

/// Ends leases that go on for long enough, until `stop` says so; then all of them.
pub(crate) async fn end_kept(runner: Arc<TurnRunner>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let left = runner.lock().kept.until_over(clock::now());
        let pause = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => runner.kept.notified().await,
            }
        };
        tokio::select! {
            biased;
            () = pause => {}
            _ = stop.changed() => break,
        }
        let over = runner.lock().kept.take_over(clock::now());
        for instance in over {
            runner.settle_kept(&instance);
        }
    }
    runner.end_all_kept();
}

impl TurnRunner {
    /// Whether the lease of this turn goes on; then the activities that this node takes at once, which get no row.
    pub(super) fn keep_lease(
        &self,
        commit: &mut TurnCommit,
        taker: Option<&Arc<dyn TakesTasks>>,
    ) -> Vec<NewActivity> {
        let settles = commit.end.is_some()
            || commit.park.is_some()
            || commit.unparks
            || commit.poisoned
            || commit.events.is_empty()
            || !taker.is_some_and(|taker| taker.claims());
        if settles {
            return Vec::new();
        }
        let table = self.lock();
        let Some(flight) = table.by_instance(&commit.instance) else { return Vec::new() };
        let (since, ends) = table.kept.standing(&commit.instance).unwrap_or((flight.since, false));
        let settles = ends
            || !flight.leased
            || flight.refused
            || flight.claimed.cut_off
            || !is_ours(&flight.claimed)
            || clock::since(since) >= table.kept.lasts();
        // A timer is a message of its own: it would wait for the end of the lease.
        let lasts_ms = i64::try_from(table.kept.lasts().as_millis()).unwrap_or(i64::MAX);
        let end_ms = flight.claimed.now_ms.saturating_add(lasts_ms);
        let settles = settles || commit.timers.iter().any(|timer| timer.fire_at_ms < end_ms);
        let taken = commit.activities.iter().any(|task| task.lease_ms.is_some());
        let slow = |task: &NewActivity| {
            task.lease_ms.is_some() && taker.is_some_and(|taker| taker.is_slow(&task.name))
        };
        if settles
            || commit.activities.iter().any(slow)
            || !(taken || table.kept.open_after(commit).next().is_some())
        {
            return Vec::new();
        }
        commit.keeps = true;
        commit.activities.extract_if(.., |task| task.lease_ms.is_some()).collect()
    }

    /// Whether the instance of this turn is leased here again once it is settled: activities that end in a moment begin its next
    /// turn, and the one after that may keep the lease.
    pub(super) fn retake_lease(&self, commit: &mut TurnCommit, taker: Option<&Arc<dyn TakesTasks>>) {
        let begins = commit.activities.iter().any(|task| task.lease_ms.is_some());
        let settles = commit.end.is_none() && commit.park.is_none() && !commit.keeps && !commit.unparks;
        if !(begins && settles && taker.is_some_and(|taker| taker.claims())) {
            return;
        }
        let table = self.lock();
        let short = table.by_instance(&commit.instance).is_some_and(|flight| flight.short && !flight.refused);
        let slow = |task: &NewActivity| taker.is_some_and(|taker| taker.is_slow(&task.name));
        if short && !commit.activities.iter().any(slow) {
            commit.retake_ms = Some(self.lease_ms);
        }
    }

    /// A turn that settles its lease brings the rows of activities that have none.
    pub(super) fn bring_belated(&self, commit: &mut TurnCommit) {
        if commit.keeps {
            return;
        }
        let mut table = self.lock();
        let (instance, execution) = (commit.instance.as_str(), commit.execution);
        let open: Vec<ActivityKey> =
            table.kept.open_after(commit).map(|event| key(instance, execution, event)).collect();
        let back = table.kept.take(instance).map(|kept| kept.back).unwrap_or_default();
        let Some(flight) = table.flight_mut(instance) else { return };
        flight.belated.extend(back);
        if commit.end.is_some() {
            // They are cancelled with it.
            flight.belated.clear();
        } else if let Some(taker) = self.taker(false).filter(|_| !open.is_empty()) {
            flight.belated.extend(taker.move_out(open.clone()));
        }
        flight.moving.extend(open);
        let recorded = |event: i32| {
            let source = |source: Option<holdfast_replay::EventId>| {
                source.is_some_and(|source| source.0 == event.unsigned_abs())
            };
            commit.events.iter().any(|recorded| source(recorded.source))
        };
        let wanted = flight.belated.iter().filter(|row| !recorded(row.task.event));
        commit.belated = wanted.cloned().collect();
    }

    /// Activities whose results are about to go through the inbox: those that run under a lease of this node, which ends now.
    pub(crate) fn tells(&self, instance: &str, execution: i64, events: &[i32]) -> Vec<i32> {
        let mut table = self.lock();
        let kept = table.kept.leases.get_mut(instance).filter(|kept| kept.execution == execution);
        let Some(kept) = kept else { return Vec::new() };
        kept.ends = true;
        events.iter().copied().filter(|event| kept.open.contains(event)).collect()
    }

    /// An activity ended without a result: it gets its row when the lease ends, which is now. False: there is no such lease.
    pub(crate) fn goes_back(&self, key: &ActivityKey, row: BelatedActivity) -> bool {
        let mut table = self.lock();
        let kept = table.kept.leases.get_mut(&key.instance).filter(|kept| kept.execution == key.execution);
        let Some(kept) = kept.filter(|kept| kept.open.contains(&key.event)) else { return false };
        kept.open.remove(&key.event);
        kept.back.push(row);
        kept.ends = true;
        true
    }

    /// Settles the lease of an instance, unless a turn is in progress, which does.
    pub(crate) fn settle_kept(self: &Arc<Self>, instance: &str) {
        let (commit, execution) = {
            let mut table = self.lock();
            let Some(next) = table.kept.leases.get_mut(instance).and_then(|kept| kept.next.take()) else {
                return;
            };
            let Next { claimed, node, version, .. } = *next;
            let (frame, execution) = match table.take_frame(instance) {
                Some(live) => (live.frame, Some(live.execution)),
                None => (table.new_frame(), None),
            };
            let commit = empty(&claimed, &node, &version);
            table.insert(Flight::new(claimed, node, version, frame));
            (commit, execution)
        };
        self.submit(commit, execution, Reserved::default(), Vec::new());
    }

    /// Settles every such lease.
    pub(crate) fn end_all_kept(self: &Arc<Self>) {
        let idle = self.lock().kept.idle();
        for instance in idle {
            self.settle_kept(&instance);
        }
    }

    /// A turn is over here without a commit. Where activities run under its lease that is settled, else it goes back.
    pub(super) fn let_go(self: &Arc<Self>, flight: Flight, why: Return) {
        let Flight { claimed, node, version, since, settles_since, moving, .. } = flight;
        let instance = claimed.instance.clone();
        self.lose(moving);
        // Its commit may be written, and its lease go on.
        let why = if settles_since.is_some() { Return::CutOff } else { why };
        let is_kept = {
            let mut table = self.lock();
            match table.kept.leases.get_mut(&instance) {
                Some(kept) => {
                    kept.ends = true;
                    kept.next = Some(Box::new(Next { claimed, node, version, since }));
                    true
                }
                None => {
                    self.returns.push(Kind::Turn, claimed.fence, why);
                    false
                }
            }
        };
        if is_kept {
            self.settle_kept(&instance);
        }
    }

    /// A turn was not written, and activities may run under its lease: whoever claims it next finds them.
    pub(super) fn cut_off(&self, flight: &Flight) {
        let open = self.lock().kept.remove(&flight.claimed.instance);
        let open = open.map(|(_, open)| open).unwrap_or_default();
        self.returns.push(Kind::Turn, flight.claimed.fence, Return::CutOff);
        self.lose(open.into_iter().chain(flight.moving.iter().cloned()).collect());
    }

    /// The lease that these ran under is not this node's any more.
    pub(super) fn lose(&self, keys: Vec<ActivityKey>) {
        if let Some(taker) = self.taker(false).filter(|_| !keys.is_empty()) {
            taker.lose(keys);
        }
    }
}

/// Whether the row of a turn tells what this version of the package writes: a kept lease does not change it.
fn is_ours(claimed: &ClaimedTurn) -> bool {
    claimed.history_len == 0 || claimed.replay_version == Some(replay_version::current())
}

/// The activities of a turn that run under its lease, as claims would have brought them.
pub(super) fn rowless(flight: &Flight, tasks: Vec<NewActivity>, now_ms: i64) -> Vec<ClaimedActivity> {
    let Flight { claimed, version, .. } = flight;
    let orchestration = (claimed.name.as_str(), version.as_str());
    let tasks = tasks.into_iter().map(|task| {
        let key = key(&claimed.instance, claimed.execution, task.event);
        as_claimed(key, claimed.fence, task, orchestration, now_ms)
    });
    tasks.collect()
}
