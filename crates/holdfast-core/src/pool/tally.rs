//! What a pool counts: how long callers waited, who was refused, what failed, and the highest marks.
//!
//! A session is counted from the moment it is being opened until it is dropped. Counting never waits.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::telemetry::Counter;

/// Waits remembered: enough that a p95 rests on 25 values, few enough to follow the last seconds of a busy pool.
const WAITS: usize = 512;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) acquires: Counter,
    pub(super) saturation_rejections: Counter,
    pub(super) capacity_rejections: Counter,
    pub(super) breaker_rejections: Counter,
    pub(super) connection_errors: Counter,
    pub(super) query_errors: Counter,
    pub(super) retries: Counter,
    open: AtomicUsize,
    peak_open: AtomicUsize,
    peak_waiting: AtomicUsize,
    waits: Mutex<VecDeque<Duration>>,
}

impl Tally {
    /// A caller has its session after this time.
    pub(super) fn acquired(&self, waited: Duration) {
        self.acquires.add(1);
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() == WAITS {
            waits.pop_front();
        }
        waits.push_back(waited);
    }

    /// The median and the 95th percentile of the last waits; zero while there are none.
    pub(super) fn waits(&self) -> (Duration, Duration) {
        let mut waits: Vec<Duration> =
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        waits.sort_unstable();
        (percentile(&waits, 50), percentile(&waits, 95))
    }

    pub(super) fn session_opens(&self) {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak_open.fetch_max(open, Ordering::Relaxed);
    }

    pub(super) fn session_closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// This many callers wait.
    pub(super) fn waiting(&self, callers: usize) {
        self.peak_waiting.fetch_max(callers, Ordering::Relaxed);
    }

    /// Sessions open, and the most there were.
    pub(super) fn open(&self) -> (usize, usize) {
        (self.open.load(Ordering::Relaxed), self.peak_open.load(Ordering::Relaxed))
    }

    pub(super) fn peak_waiting(&self) -> usize {
        self.peak_waiting.load(Ordering::Relaxed)
    }
}

/// The nearest rank: the smallest value that at least `percent` of all do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_as_percentiles_of_the_last_512() {
        let tally = Tally::default();
        assert_eq!(tally.waits(), (Duration::ZERO, Duration::ZERO));
        tally.acquired(Duration::from_millis(7));
        assert_eq!(tally.waits(), (Duration::from_millis(7), Duration::from_millis(7)));
        for _ in 0..1_000 {
            tally.acquired(Duration::from_secs(9));
        }
        for ms in 1..=512 {
            tally.acquired(Duration::from_millis(ms));
        }
        assert_eq!(tally.waits(), (Duration::from_millis(256), Duration::from_millis(487)));
        assert_eq!(tally.acquires.get(), 1_513);
    }

    #[test]
    fn the_highest_marks_stay() {
        let tally = Tally::default();
        for _ in 0..3 {
            tally.session_opens();
        }
        tally.session_closed();
        tally.waiting(5);
        tally.waiting(2);
        assert_eq!((tally.open(), tally.peak_waiting()), ((2, 3), 5));
    }
}
