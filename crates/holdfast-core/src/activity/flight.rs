//! Activities in progress: from their claim until they are settled.
//!
//! Invariant: at most one flight for each task, so no task runs twice in one process.

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use holdfast_replay::Payload;
use tokio::task::AbortHandle;

use crate::{
    activity::job::TryLimits,
    clock,
    lease::Adoption,
    store::{
        ActivityKey, Fence, NodeKey,
        activity::{Beat, ClaimedActivity},
    },
};

/// One activity in progress.
#[derive(Debug)]
pub(crate) struct Flight {
    /// As claimed; the fence changes when the task is adopted under a new lease.
    pub(crate) claimed: ClaimedActivity,
    /// Node and epoch that hold the lease.
    pub(crate) node: NodeKey,
    /// Claimed alone.
    pub(crate) isolated: bool,
    /// When its claim arrived: its time on the database's clock goes on from there.
    pub(crate) since: Instant,
    /// When its try is given up.
    pub(crate) limits: TryLimits,
    /// Its time limit, or the grace period after an abort.
    pub(crate) limit: Option<AbortHandle>,
    /// The end of its patience with a silent body.
    pub(crate) silence: Option<AbortHandle>,
    /// Why its try has failed, once a time limit has passed.
    pub(crate) timed_out: Option<Payload>,
    /// What its body told last and is not stored yet.
    pub(crate) heartbeat: Option<Payload>,
    /// Its result is being committed.
    pub(crate) settling: bool,
    /// A commit of it was refused before.
    pub(crate) refused: bool,
    /// A lease that was claimed while this task was being settled; it goes back once that is known.
    pub(crate) waiting: Option<Fence>,
}

impl Flight {
    /// A task that was claimed at this moment.
    pub(super) fn new(claimed: ClaimedActivity, node: NodeKey, isolated: bool, limits: TryLimits) -> Self {
        Self {
            claimed,
            node,
            isolated,
            since: clock::now(),
            limits,
            limit: None,
            silence: None,
            timed_out: None,
            heartbeat: None,
            settling: false,
            refused: false,
            waiting: None,
        }
    }

    /// It ends, or is being settled: neither its time limit nor its silence matters any more.
    pub(super) fn stop_timers(&mut self) {
        for timer in [self.limit.take(), self.silence.take()].into_iter().flatten() {
            timer.abort();
        }
    }
}

/// All activities in progress of one runtime.
#[derive(Debug, Default)]
pub(crate) struct ActivityTable {
    flights: BTreeMap<u32, Flight>,
    handles: HashMap<ActivityKey, u32>,
    last_handle: u32,
}

impl ActivityTable {
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Whether a task that was claimed alone is in progress.
    pub(crate) fn isolated(&self) -> bool {
        self.flights.values().any(|flight| flight.isolated)
    }

    /// A claim of a task that is still in progress here.
    pub(crate) fn adopt(&mut self, claimed: &ClaimedActivity, node: &NodeKey) -> Option<Adoption> {
        let flight = self.flights.get_mut(self.handles.get(&claimed.key)?)?;
        if flight.settling || flight.claimed.attempt != claimed.attempt {
            return Some(Adoption::Waits { ended: flight.waiting.replace(claimed.fence) });
        }
        let ended = std::mem::replace(&mut flight.claimed.fence, claimed.fence);
        flight.node = node.clone();
        Some(Adoption::GoesOn { ended })
    }

    pub(crate) fn insert(&mut self, flight: Flight) -> u32 {
        self.last_handle = self.last_handle.wrapping_add(1).max(1);
        self.handles.insert(flight.claimed.key.clone(), self.last_handle);
        self.flights.insert(self.last_handle, flight);
        self.last_handle
    }

    pub(crate) fn get_mut(&mut self, h: u32) -> Option<&mut Flight> {
        self.flights.get_mut(&h)
    }

    /// Handle of the task that holds a lease.
    pub(crate) fn by_fence(&self, fence: Fence) -> Option<u32> {
        self.flights.iter().find(|(_, flight)| flight.claimed.fence == fence).map(|(h, _)| *h)
    }

    /// Handle and lease of a task whose body runs.
    pub(crate) fn by_key(&self, key: &ActivityKey) -> Option<(u32, Fence)> {
        let h = *self.handles.get(key)?;
        let flight = self.flights.get(&h)?;
        (!flight.settling).then_some((h, flight.claimed.fence))
    }

    /// Whether the flight still holds this lease.
    pub(crate) fn holds(&self, h: u32, fence: Fence) -> bool {
        self.flights.get(&h).is_some_and(|flight| flight.claimed.fence == fence)
    }

    /// Whether a body runs: it is in progress and its result is not being committed.
    pub(crate) fn runs(&self, h: u32) -> bool {
        self.flights.get(&h).is_some_and(|flight| !flight.settling)
    }

    pub(crate) fn remove(&mut self, h: u32) -> Option<Flight> {
        let flight = self.flights.remove(&h)?;
        self.handles.remove(&flight.claimed.key);
        for timer in [&flight.limit, &flight.silence].into_iter().flatten() {
            timer.abort();
        }
        Some(flight)
    }

    /// All activities in progress.
    pub(crate) fn flights(&self) -> impl Iterator<Item = (u32, &Flight)> {
        self.flights.iter().map(|(h, flight)| (*h, flight))
    }

    /// What was told and is not stored yet. What is being settled takes its own along.
    pub(crate) fn take_beats(&mut self) -> Vec<Beat> {
        let running = self.flights.values_mut().filter(|flight| !flight.settling);
        let taken = running.filter_map(|flight| {
            let details = flight.heartbeat.take()?;
            Some(Beat { key: flight.claimed.key.clone(), fence: flight.claimed.fence, details })
        });
        taken.collect()
    }

    /// Beats that could not be stored, unless something was told meanwhile; whether there is one to be stored again.
    pub(crate) fn put_back_beats(&mut self, beats: impl IntoIterator<Item = Beat>) -> bool {
        let mut again = false;
        for beat in beats {
            let flight = self.handles.get(&beat.key).and_then(|h| self.flights.get_mut(h));
            if let Some(flight) = flight.filter(|flight| flight.claimed.fence == beat.fence) {
                flight.heartbeat.get_or_insert(beat.details);
                again = true;
            }
        }
        again
    }

    /// Handles in progress.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.flights.keys().copied().collect()
    }
}
