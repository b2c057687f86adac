//! Activities in progress: from their claim until they are settled.
//!
//! Invariant: at most one flight for each task, so no task runs twice in one process.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use holdfast_replay::Payload;
use tokio::task::AbortHandle;

use crate::{
    activity::{job::TryLimits, rowless::Place},
    clock,
    lease::Adoption,
    limits,
    store::{
        ActivityKey, Fence, NodeKey,
        activity::{Beat, ClaimedActivity},
    },
};

/// Those in progress that may have killed a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspects {
    /// There is none.
    None,
    /// All of them have run for long without killing this one: another may run beside them, unless it is its last delivery.
    Proven,
    /// One is on trial, or has its last delivery: it is alone.
    OnTrial,
}

/// One activity in progress.
#[derive(Debug)]
pub(crate) struct Flight {
    /// As claimed; the fence changes when the task is adopted under a new lease.
    pub(crate) claimed: ClaimedActivity,
    /// Where it is written down.
    pub(super) place: Place,
    /// Node and epoch that hold the lease.
    pub(crate) node: NodeKey,
    /// Claimed alone.
    pub(crate) isolated: bool,
    /// This is its last delivery: should the process die, it ends as poisoned.
    pub(crate) is_last: bool,
    /// When its body began.
    pub(crate) began: Option<Instant>,
    /// When its claim arrived: its time on the database's clock goes on from there.
    pub(crate) since: Instant,
    /// When its try is given up.
    pub(crate) limits: TryLimits,
    /// Its time limit, or the grace period after an abort.
    pub(crate) limit: Option<AbortHandle>,
    /// The end of its patience with a silent body.
    pub(crate) silence: Option<AbortHandle>,
    /// The end of its trial.
    pub(crate) trial_over: Option<AbortHandle>,
    /// Why its try has failed, once a time limit has passed.
    pub(crate) timed_out: Option<Payload>,
    /// What its body told last and is not known to be stored.
    pub(crate) heartbeat: Option<Payload>,
    /// That is newer than what the last write took.
    pub(crate) has_news: bool,
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
            place: Place::Row,
            node,
            isolated,
            is_last: false,
            began: None,
            since: clock::now(),
            limits,
            limit: None,
            silence: None,
            trial_over: None,
            timed_out: None,
            heartbeat: None,
            has_news: false,
            settling: false,
            refused: false,
            waiting: None,
        }
    }

    /// How long it is watched alone: longer with each delivery, so that what kills its process late takes few others with it.
    pub(super) fn trial(&self) -> Duration {
        let doublings = u32::try_from(self.claimed.deliveries - 2).unwrap_or(0).min(16);
        limits::SUSPECT_TRIAL * (1 << doublings)
    }

    fn on_trial(&self, now: Instant) -> bool {
        let ran = self.began.map(|began| now.saturating_duration_since(began));
        self.is_last || ran.is_none_or(|ran| ran < self.trial())
    }

    /// It ends, or is being settled: neither its time limit nor its silence matters any more.
    pub(super) fn stop_timers(&mut self) {
        for timer in [self.limit.take(), self.silence.take(), self.trial_over.take()].into_iter().flatten() {
            timer.abort();
        }
    }
}

/// All activities in progress of one runtime.
#[derive(Debug, Default)]
pub(crate) struct ActivityTable {
    flights: BTreeMap<u32, Box<Flight>>,
    handles: HashMap<ActivityKey, u32>,
    last_handle: u32,
}

impl ActivityTable {
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// How the tasks in progress stand that were claimed alone.
    pub(crate) fn suspects(&self, now: Instant) -> Suspects {
        let alone = self.flights.values().filter(|flight| flight.isolated);
        alone.fold(Suspects::None, |all, flight| match all {
            Suspects::OnTrial => Suspects::OnTrial,
            _ if flight.on_trial(now) => Suspects::OnTrial,
            _ => Suspects::Proven,
        })
    }

    /// A claim of a task that is still in progress here.
    pub(crate) fn adopt(&mut self, claimed: &ClaimedActivity, node: &NodeKey) -> Option<Adoption> {
        let flight = self.flights.get_mut(self.handles.get(&claimed.key)?)?;
        if flight.settling || flight.claimed.attempt != claimed.attempt {
            return Some(Adoption::Waits { ended: flight.waiting.replace(claimed.fence) });
        }
        if let Place::Moving(_) = flight.place {
            return Some(Adoption::Waits { ended: flight.waiting.replace(claimed.fence) });
        }
        let ended = std::mem::replace(&mut flight.claimed.fence, claimed.fence);
        flight.place = Place::Row;
        flight.node = node.clone();
        Some(Adoption::GoesOn { ended })
    }

    pub(crate) fn insert(&mut self, flight: Flight) -> u32 {
        self.last_handle = self.last_handle.wrapping_add(1).max(1);
        self.handles.insert(flight.claimed.key.clone(), self.last_handle);
        self.flights.insert(self.last_handle, Box::new(flight));
        self.last_handle
    }

    pub(crate) fn get_mut(&mut self, h: u32) -> Option<&mut Flight> {
        self.flights.get_mut(&h).map(|flight| &mut **flight)
    }

    /// Handle of the task that holds a lease.
    pub(crate) fn by_fence(&self, fence: Fence) -> Option<u32> {
        self.flights.iter().find(|(_, flight)| flight.claimed.fence == fence).map(|(h, _)| *h)
    }

    /// Handle and lease of a task whose body runs, and whether that is its turn's.
    pub(crate) fn by_key(&self, key: &ActivityKey) -> Option<(u32, Fence, bool)> {
        let h = *self.handles.get(key)?;
        let flight = self.flights.get(&h)?;
        let rowless = matches!(flight.place, Place::Rowless);
        (!flight.settling).then_some((h, flight.claimed.fence, rowless))
    }

    /// Handle of a task.
    pub(super) fn handle(&self, key: &ActivityKey) -> Option<u32> {
        self.handles.get(key).copied()
    }

    /// A task.
    pub(super) fn of_key(&mut self, key: &ActivityKey) -> Option<&mut Flight> {
        self.get_mut(self.handle(key)?)
    }

    /// Whether a task is about to get its row.
    pub(super) fn is_moving(&self, h: u32) -> bool {
        self.flights.get(&h).is_some_and(|flight| matches!(flight.place, Place::Moving(_)))
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
        for timer in [&flight.limit, &flight.silence, &flight.trial_over].into_iter().flatten() {
            timer.abort();
        }
        Some(*flight)
    }

    /// All activities in progress.
    pub(crate) fn flights(&self) -> impl Iterator<Item = (u32, &Flight)> {
        self.flights.iter().map(|(h, flight)| (*h, &**flight))
    }

    /// What was told since the last write. It stays until it is known to be stored: what ends meanwhile takes it along.
    pub(crate) fn take_beats(&mut self) -> Vec<Beat> {
        let running = self
            .flights
            .values_mut()
            .filter(|flight| flight.has_news && !flight.settling && matches!(flight.place, Place::Row));
        let taken = running.filter_map(|flight| {
            flight.has_news = false;
            let details = flight.heartbeat.clone()?;
            Some(Beat { key: flight.claimed.key.clone(), fence: flight.claimed.fence, details })
        });
        taken.collect()
    }

    /// The outcome of a write: which of the beats were stored. Whether there is one to be stored again.
    pub(crate) fn wrote_beats(&mut self, beats: &[Beat], stored: &[Fence]) -> bool {
        let mut again = false;
        for beat in beats {
            let flight = self.handles.get(&beat.key).and_then(|h| self.flights.get_mut(h));
            let Some(flight) = flight.filter(|flight| flight.claimed.fence == beat.fence) else { continue };
            if !stored.contains(&beat.fence) {
                flight.has_news = true;
                again = true;
            } else if !flight.has_news {
                flight.heartbeat = None;
            }
        }
        again
    }

    /// Handles in progress.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.flights.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn claimed(instance: &str, deliveries: i32) -> ClaimedActivity {
        ClaimedActivity {
            key: ActivityKey { instance: instance.to_owned(), execution: 1, event: 2 },
            fence: Fence(i64::from(deliveries)),
            deliveries,
            poisoned: false,
            attempt: 1,
            name: "work".to_owned(),
            input: "1".to_owned(),
            retry: None,
            heartbeat: None,
            timeout_ms: None,
            tag: None,
            session: None,
            orchestration_name: None,
            orchestration_version: None,
            scheduled_at_ms: 0,
            now_ms: 0,
        }
    }

    fn suspect(table: &mut ActivityTable, instance: &str, deliveries: i32, began: Option<Instant>) -> u32 {
        let node = NodeKey { id: "a".to_owned(), epoch: 1 };
        let mut flight = Flight::new(claimed(instance, deliveries), node, true, TryLimits::default());
        flight.began = began;
        table.insert(flight)
    }

    #[test]
    fn a_suspect_is_alone_until_it_has_run_for_its_trial() {
        let now = Instant::now();
        let mut table = ActivityTable::default();
        assert_eq!(table.suspects(now), Suspects::None);
        let h = suspect(&mut table, "one", 2, None);
        assert_eq!(table.suspects(now + 100 * SECOND), Suspects::OnTrial, "its body has not begun");
        table.get_mut(h).expect("in progress").began = Some(now);
        assert_eq!(table.suspects(now + 9 * SECOND), Suspects::OnTrial);
        assert_eq!(table.suspects(now + 10 * SECOND), Suspects::Proven);
        suspect(&mut table, "two", 2, Some(now + 10 * SECOND));
        assert_eq!(table.suspects(now + 10 * SECOND), Suspects::OnTrial, "the next one");
    }

    #[test]
    fn the_trial_doubles_with_each_delivery_and_the_last_one_never_ends() {
        let now = Instant::now();
        let mut table = ActivityTable::default();
        let h = suspect(&mut table, "one", 5, Some(now));
        assert_eq!(table.suspects(now + 79 * SECOND), Suspects::OnTrial);
        assert_eq!(table.suspects(now + 80 * SECOND), Suspects::Proven);
        table.get_mut(h).expect("in progress").is_last = true;
        assert_eq!(table.suspects(now + 100_000 * SECOND), Suspects::OnTrial);
    }

    #[test]
    fn what_was_told_stays_until_it_is_stored() {
        let mut table = ActivityTable::default();
        let h = suspect(&mut table, "one", 1, None);
        let tell = |table: &mut ActivityTable, text: &str| {
            let flight = table.get_mut(h).expect("in progress");
            flight.heartbeat = Payload::from_text(text.to_owned());
            flight.has_news = true;
        };
        let told = |table: &mut ActivityTable| {
            table.get_mut(h).and_then(|flight| flight.heartbeat.as_ref().map(|text| text.as_str().to_owned()))
        };
        tell(&mut table, "1");
        let beats = table.take_beats();
        assert_eq!((beats.len(), told(&mut table).as_deref()), (1, Some("1")), "an end takes it along");
        tell(&mut table, "2");
        assert!(!table.wrote_beats(&beats, &[Fence(1)]));
        assert_eq!(told(&mut table).as_deref(), Some("2"), "the newer one is not stored");
        let beats = table.take_beats();
        assert!(table.wrote_beats(&beats, &[]), "the row was locked");
        let beats = table.take_beats();
        assert!(!table.wrote_beats(&beats, &[Fence(1)]));
        assert_eq!((table.take_beats().len(), told(&mut table)), (0, None));
    }
}
