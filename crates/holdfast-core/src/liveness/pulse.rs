//! When the next heartbeat is due, and whether others may be recovered. Told `now`.

use std::time::{Duration, Instant};

/// The rhythm of one node.
#[derive(Debug)]
pub(crate) struct Pulse {
    interval: Duration,
    stale_after: Duration,
    next: Instant,
    /// Since when every heartbeat arrived in time; `None` right after a failure.
    clean_since: Option<Instant>,
    last_sent: Option<Instant>,
    last_sweep: Option<Instant>,
}

impl Pulse {
    pub(crate) fn new(interval: Duration, stale_after: Duration, now: Instant) -> Self {
        Self { interval, stale_after, next: now, clean_since: None, last_sent: None, last_sweep: None }
    }

    /// When the next heartbeat is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// A heartbeat is being sent. The rate is fixed; beats that were missed are not made up for.
    pub(crate) fn sent(&mut self, now: Instant) {
        if let Some(last) = self.last_sent
            && now.duration_since(last) > 2 * self.interval
        {
            self.clean_since = None;
        }
        self.last_sent = Some(now);
        self.next += self.interval;
        if self.next <= now {
            self.next = now + self.interval;
        }
    }

    /// The heartbeat sent at `sent` was answered.
    pub(crate) fn answered(&mut self, sent: Instant, now: Instant) {
        if now.duration_since(sent) > 2 * self.interval {
            self.clean_since = None;
        } else {
            self.clean_since.get_or_insert(sent);
        }
    }

    /// The heartbeat failed.
    pub(crate) fn failed(&mut self) {
        self.clean_since = None;
    }

    /// Whether others may be recovered: this node's own heartbeats were clean for a stale age, or it has no past yet and
    /// nothing failed so far.
    pub(crate) fn may_recover(&self, now: Instant) -> bool {
        match (self.last_sent, self.clean_since) {
            (None, _) => true,
            (Some(_), Some(since)) => now.duration_since(since) >= self.stale_after,
            (Some(_), None) => false,
        }
    }

    /// Whether every lease is to be checked for a live owner: at start, and again every stale age.
    pub(crate) fn sweep_due(&mut self, now: Instant) -> bool {
        let due = self.last_sweep.is_none_or(|last| now.duration_since(last) >= self.stale_after);
        if due {
            self.last_sweep = Some(now);
        }
        due
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
    fn a_failed_heartbeat_forbids_recovery_for_a_stale_age() {
        let start = Instant::now();
        let mut pulse = pulse(start);
        assert!(pulse.may_recover(start), "a fresh node recovers at start");
        pulse.sent(start);
        pulse.answered(start, start);
        pulse.failed();
        assert!(!pulse.may_recover(start + SECOND));
        let back = start + 5 * SECOND;
        pulse.sent(back);
        pulse.answered(back, back);
        assert!(!pulse.may_recover(back + 29 * SECOND));
        assert!(pulse.may_recover(back + 30 * SECOND));
    }

    #[test]
    fn a_gap_or_a_slow_round_trip_counts_as_a_failure() {
        let start = Instant::now();
        let mut pulse = pulse(start);
        pulse.sent(start);
        pulse.answered(start, start + 11 * SECOND);
        assert!(!pulse.may_recover(start + 100 * SECOND));
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
