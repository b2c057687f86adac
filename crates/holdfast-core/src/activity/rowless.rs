//! Activities without a row: short ones of a turn that was committed here, under that turn's own lease.
//!
//! Their ends go to the next turn like any other. One that runs longer than the lease is kept gets its row with the commit that
//! ends the lease; what becomes of it meanwhile waits for that row. It never decides how long a lease is kept.

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    activity::{ActivityRunner, Ended, flight::Flight, runner::failure},
    clock,
    crossing::AbortReason,
    lease::{Kind, Return, TakesResults},
    store::{
        ActivityKey, NodeKey,
        activity::ClaimedActivity,
        commit::{ActivityCommit, ActivityOutcome, BelatedActivity, HandedTask, NewActivity},
    },
};

/// Where a task in progress is written down.
#[derive(Debug)]
pub(crate) enum Place {
    /// It has a row, with a lease of its own.
    Row,
    /// It has none: its lease is its turn's.
    Rowless,
    /// It is about to get its row; what became of it meanwhile waits for that.
    Moving(Option<Parked>),
}

/// What became of a task that is about to get its row.
#[derive(Debug)]
pub(crate) enum Parked {
    /// It ended a try.
    Ended(Box<ActivityCommit>),
    /// It goes back.
    Returned(Return),
}

impl ActivityRunner {
    /// Tasks without a row get one, under a lease of so many ms. Those that have ended already are among them: their ends are
    /// not handed in yet.
    pub(crate) fn move_out(&self, keys: Vec<ActivityKey>, lease_ms: i64) -> Vec<BelatedActivity> {
        let mut table = self.lock();
        let rows = keys.iter().filter_map(|key| {
            let flight = table.of_key(key).filter(|flight| matches!(flight.place, Place::Rowless))?;
            flight.place = Place::Moving(None);
            if clock::since(flight.since) >= self.limits.kept / 2 {
                self.slow().insert(flight.claimed.name.clone());
            }
            flight.has_news = false;
            let heartbeat = flight.heartbeat.as_ref().map(|told| told.as_str().to_owned());
            let task = NewActivity { lease_ms: Some(lease_ms), ..task(&flight.claimed) };
            Some(BelatedActivity {
                task,
                attempt: flight.claimed.attempt,
                deliveries: 0,
                delay_ms: 0,
                heartbeat,
                isolated: false,
            })
        });
        rows.collect()
    }

    /// How long a task was under way that ends with a result.
    pub(super) fn note_time(&self, h: u32) -> Duration {
        let mut table = self.lock();
        let Some(flight) = table.get_mut(h) else { return Duration::ZERO };
        let ran = clock::since(flight.since);
        if ran < self.limits.kept / 2 {
            self.slow().remove(&flight.claimed.name);
        }
        ran
    }

    /// Whether an activity of this name ran too long without a row when it ran last.
    pub(crate) fn is_slow(&self, name: &str) -> bool {
        self.slow().contains(name)
    }

    fn slow(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// They have their rows; those without a lease are not this node's any more.
    pub(crate) fn moved(
        self: &Arc<Self>,
        keys: Vec<ActivityKey>,
        handed: &[HandedTask],
        node: &NodeKey,
        asked_at: Instant,
    ) {
        for key in keys {
            let Some(lease) = handed.iter().find(|handed| handed.event == key.event) else {
                self.lose_one(&key);
                continue;
            };
            let mut table = self.lock();
            let Some(h) = table.handle(&key) else {
                // It was let go meanwhile.
                self.returns.push(Kind::Activity, lease.fence, Return::Stopped);
                continue;
            };
            let Some(flight) = table.get_mut(h) else { continue };
            let Place::Moving(parked) = std::mem::replace(&mut flight.place, Place::Row) else { continue };
            self.keeper.hold(Kind::Activity, lease.fence, asked_at);
            flight.claimed.fence = lease.fence;
            flight.node = node.clone();
            let news = flight.has_news;
            drop(table);
            match parked {
                None if news => self.beats.notify_one(),
                None => {}
                Some(Parked::Ended(commit)) => self.hand_in_of_row(h, *commit),
                Some(Parked::Returned(why)) => self.goes(h, why),
            }
        }
    }

    /// Their lease is not this node's any more.
    pub(crate) fn lose(self: &Arc<Self>, keys: Vec<ActivityKey>) {
        for key in keys {
            self.lose_one(&key);
        }
    }

    fn lose_one(self: &Arc<Self>, key: &ActivityKey) {
        let (h, fence, over) = {
            let mut table = self.lock();
            let Some(h) = table.handle(key) else { return };
            let Some(flight) = table.get_mut(h).filter(|flight| !matches!(flight.place, Place::Row)) else {
                return;
            };
            let place = std::mem::replace(&mut flight.place, Place::Rowless);
            (h, flight.claimed.fence, flight.settling || matches!(place, Place::Moving(Some(_))))
        };
        // What became of one that has ended is nobody's either.
        if over {
            self.take_out(h);
        } else {
            self.stop(h, fence, AbortReason::Lost);
        }
    }

    /// The body of a task ends without a result: its lease goes back.
    pub(super) fn goes(self: &Arc<Self>, h: u32, why: Return) {
        let rowless = {
            let mut table = self.lock();
            let Some(flight) = table.get_mut(h) else { return };
            match &mut flight.place {
                Place::Row => None,
                Place::Moving(parked) => {
                    *parked = Some(Parked::Returned(why));
                    return;
                }
                Place::Rowless => {
                    let row = returned(flight, why, self.limits.lease_ms);
                    Some((flight.claimed.key.clone(), row))
                }
            }
        };
        let Some((key, row)) = rowless else {
            if let Some(flight) = self.take_out(h) {
                self.returns.push(Kind::Activity, flight.claimed.fence, why);
            }
            return;
        };
        let taker = self.taker();
        if taker.as_ref().is_some_and(|taker| taker.goes_back(&key, row)) {
            self.take_out(h);
            if let Some(taker) = taker {
                taker.settle_kept(&key.instance);
            }
        } else if self.lock().is_moving(h) {
            self.goes(h, why);
        } else {
            self.take_out(h);
        }
    }

    /// Hands in the ends of tasks of one instance that ran without a row, which no turn is about to use.
    pub(super) fn hand_in_rowless(self: &Arc<Self>, ended: Vec<Ended>) {
        let Some(taker) = self.taker() else { return };
        let Some(first) = ended.first().map(|one| one.commit.key.clone()) else { return };
        let (results, others): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|one| matches!(one.commit.outcome, ActivityOutcome::Ended(_)));
        let events: Vec<i32> = results.iter().map(|one| one.commit.key.event).collect();
        let told = taker.tells(&first.instance, first.execution, &events);
        for Ended { h, commit, .. } in results {
            if told.contains(&commit.key.event) {
                self.commit(h, commit, false);
            } else {
                self.without_turn(h, commit);
            }
        }
        for Ended { h, commit, .. } in others {
            self.retry_rowless(&*taker, h, commit);
        }
        taker.settle_kept(&first.instance);
    }

    /// The next try gets its row with the end of the lease.
    fn retry_rowless(self: &Arc<Self>, taker: &dyn TakesResults, h: u32, commit: ActivityCommit) {
        let ActivityOutcome::Retry { delay_ms, attempt } = commit.outcome else { return };
        let row = self.lock().get_mut(h).map(|flight| BelatedActivity {
            task: task(&flight.claimed),
            attempt,
            deliveries: 0,
            delay_ms,
            heartbeat: commit.heartbeat.as_ref().map(|told| told.as_str().to_owned()),
            isolated: false,
        });
        if row.is_some_and(|row| taker.goes_back(&commit.key, row)) {
            self.count(failure(&commit.outcome));
            self.take_out(h);
        } else {
            self.without_turn(h, commit);
        }
    }

    /// The lease of a task's turn has ended, or is about to: its end waits for its row, or is nobody's.
    fn without_turn(self: &Arc<Self>, h: u32, commit: ActivityCommit) {
        let mut table = self.lock();
        let Some(flight) = table.get_mut(h) else { return };
        match &mut flight.place {
            Place::Moving(parked) => *parked = Some(Parked::Ended(Box::new(commit))),
            Place::Row => {
                drop(table);
                self.hand_in_of_row(h, commit);
            }
            Place::Rowless => {
                drop(table);
                self.take_out(h);
            }
        }
    }

    /// Hands in what a task became before it had the row that it has now.
    fn hand_in_of_row(self: &Arc<Self>, h: u32, commit: ActivityCommit) {
        let row = self.lock().get_mut(h).map(|flight| (flight.claimed.fence, flight.node.clone()));
        if let Some((fence, node)) = row {
            self.commit(h, ActivityCommit { fence, node, rowless: false, ..commit }, false);
        }
    }

    pub(super) fn taker(&self) -> Option<Arc<dyn TakesResults>> {
        self.results.get().and_then(std::sync::Weak::upgrade)
    }
}

/// The row of a task that goes back.
fn returned(flight: &Flight, why: Return, lease_ms: i64) -> BelatedActivity {
    let (deliveries, delay_ms) = match why {
        Return::Unstarted => (0, 0),
        Return::Stopped | Return::CutOff => (1, 0),
        Return::Unregistered(delay) => (0, i64::try_from(delay).unwrap_or(i64::MAX)),
        Return::Abandoned => (1, lease_ms),
    };
    BelatedActivity {
        task: task(&flight.claimed),
        attempt: flight.claimed.attempt,
        deliveries,
        delay_ms,
        heartbeat: flight.heartbeat.as_ref().map(|told| told.as_str().to_owned()),
        isolated: false,
    }
}

/// The task as its turn scheduled it.
fn task(claimed: &ClaimedActivity) -> NewActivity {
    NewActivity {
        event: claimed.key.event,
        name: claimed.name.clone(),
        input: claimed.input.clone(),
        retry: claimed.retry.clone(),
        timeout_ms: claimed.timeout_ms,
        tag: claimed.tag.clone(),
        session: claimed.session.clone(),
        lease_ms: None,
    }
}
