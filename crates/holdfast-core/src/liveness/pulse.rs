//! When the next heartbeat is due, and when leases are looked through for owners that are gone. Told `now`.

use std::time::{Duration, Instant};

/// The rhythm of one node.
#[derive(Debug)]
pub(crate) struct Pulse {
    interval: Duration,
    stale_after: Duration,
    next: Instant,
    last_sweep: Option<Instant>,
}

impl Pulse {
    pub(crate) fn new(interval: Duration, stale_after: Duration, now: Instant) -> Self {
        Self { interval, stale_after, next: now, last_sweep: None }
    }

    /// When the next heartbeat is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// A heartbeat is being sent. The rate is fixed; beats that were missed are not made up for.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.next += self.interval;
        if self.next <= now {
            self.next = now + self.interval;
        }
    }

    /// The heartbeat failed: the next one does not wait for its turn, a node that can be heard again is to be heard at once.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.next = now;
    }

    /// Whether every lease is to be checked for a live owner: at start, and again every stale age.
    pub(crate) fn sweep_due(&mut self, now: Instant) -> bool {
        let due = self.last_sweep.is_none_or(|last| now.duration_since(last) >= self.stale_after);
        if due {
            self.last_sweep = Some(now);
        }
        due
    }

    /// A sweep did not get to its end: it is due again.
    pub(crate) fn sweep_failed(&mut self) {
        self.last_sweep = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pulse(now: Instant) -> Pulse {
        Pulse::new(5 * SECOND, 30 * SECOND, now)
    }

    #[test]
    fn the_rate_is_fixed_and_missed_beats_are_not_made_up_for() {
        let start = Instant::now();
        let mut pulse = pulse(start);
        pulse.sent(start + SECOND);
        assert_eq!(pulse.next(), start + 5 * SECOND);
        pulse.sent(start + 23 * SECOND);
        assert_eq!(pulse.next(), start + 28 * SECOND);
    }

    #[test]
    fn a_failed_heartbeat_is_tried_again_without_waiting_for_its_turn() {
        let start = Instant::now();
        let mut pulse = pulse(start);
        pulse.sent(start);
        pulse.failed(start + SECOND);
        assert_eq!(pulse.next(), start + SECOND);
    }

    #[test]
    fn a_sweep_is_due_at_start_and_every_stale_age() {
        let start = Instant::now();
        let mut pulse = pulse(start);
        assert!(pulse.sweep_due(start));
        assert!(!pulse.sweep_due(start + 29 * SECOND));
        assert!(pulse.sweep_due(start + 30 * SECOND));
    }
}
