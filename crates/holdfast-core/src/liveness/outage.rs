//! Whether this node may declare others dead: its own past tells crashes from outages. Told `now`.
//!
//! Invariant: after a heartbeat that failed, came late or took too long nobody is recovered for a stale age, because
//! whoever was silent then may have met the same outage. It never looks at the database; what only the database knows (who
//! fell silent together, how long the server has been up) is checked in the recovery statement.

use std::time::Duration;

use crate::{clock::Moment, store::node::Recovery};

/// The guard of one node.
#[derive(Debug)]
pub(crate) struct Outage {
    /// A gap or a round trip above this counts as a failure.
    longest: Duration,
    stale_after: Duration,
    /// No heartbeat has failed since the node was started.
    fresh: bool,
    /// When the first was answered of the heartbeats that all arrived in time.
    clean_since: Option<Moment>,
    last_sent: Option<Moment>,
}

impl Outage {
    /// The guard of a node that starts; `troubled` when connecting has failed before it could.
    pub(crate) fn new(interval: Duration, stale_after: Duration, troubled: bool) -> Self {
        Self { longest: 2 * interval, stale_after, fresh: !troubled, clean_since: None, last_sent: None }
    }

    /// A heartbeat is being sent.
    pub(crate) fn sent(&mut self, now: Moment) {
        if self.last_sent.is_some_and(|last| now.since(last) > self.longest) {
            self.failed();
        }
        self.last_sent = Some(now);
    }

    /// The heartbeat sent at `sent` was answered.
    pub(crate) fn answered(&mut self, sent: Moment, now: Moment) {
        if now.since(sent) > self.longest {
            self.failed();
        } else {
            // Not from when it was sent: it may have waited for the end of the outage under way.
            self.clean_since.get_or_insert(now);
        }
    }

    /// The heartbeat failed.
    pub(crate) fn failed(&mut self) {
        self.clean_since = None;
        self.fresh = false;
    }

    /// Whom this node may recover with the heartbeat that it sends now.
    pub(crate) fn recovery(&self, now: Moment) -> Recovery {
        let gap = self.last_sent.is_some_and(|last| now.since(last) > self.longest);
        match self.clean_since {
            _ if gap => Recovery::Forbidden,
            Some(since) if now.since(since) >= self.stale_after => Recovery::Proven,
            _ if self.fresh => Recovery::Fresh,
            _ => Recovery::Forbidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn guard(troubled: bool) -> Outage {
        Outage::new(5 * SECOND, 30 * SECOND, troubled)
    }

    /// Heartbeats every 5 s from `from` to `to`, each answered at once.
    fn beats(guard: &mut Outage, start: Moment, from: u32, to: u32) {
        for second in (from..=to).step_by(5) {
            let now = start.plus(second * SECOND);
            guard.sent(now);
            guard.answered(now, now);
        }
    }

    #[test]
    fn a_fresh_node_judges_by_what_the_database_knows_until_it_has_a_past() {
        let start = Moment::now();
        let mut guard = guard(false);
        assert_eq!(guard.recovery(start), Recovery::Fresh);
        beats(&mut guard, start, 0, 25);
        assert_eq!(guard.recovery(start.plus(29 * SECOND)), Recovery::Fresh);
        beats(&mut guard, start, 30, 30);
        assert_eq!(guard.recovery(start.plus(30 * SECOND)), Recovery::Proven);
    }

    #[test]
    fn a_node_that_could_not_connect_at_first_waits_a_stale_age() {
        let start = Moment::now();
        let mut guard = guard(true);
        assert_eq!(guard.recovery(start), Recovery::Forbidden);
        beats(&mut guard, start, 0, 30);
        assert_eq!(guard.recovery(start.plus(29 * SECOND)), Recovery::Forbidden);
        assert_eq!(guard.recovery(start.plus(30 * SECOND)), Recovery::Proven);
    }

    #[test]
    fn a_failed_heartbeat_forbids_recovery_for_a_stale_age() {
        let start = Moment::now();
        let mut guard = guard(false);
        beats(&mut guard, start, 0, 40);
        assert_eq!(guard.recovery(start.plus(40 * SECOND)), Recovery::Proven);
        guard.sent(start.plus(45 * SECOND));
        guard.failed();
        assert_eq!(guard.recovery(start.plus(46 * SECOND)), Recovery::Forbidden);
        beats(&mut guard, start, 50, 80);
        assert_eq!(guard.recovery(start.plus(79 * SECOND)), Recovery::Forbidden);
        assert_eq!(guard.recovery(start.plus(80 * SECOND)), Recovery::Proven);
    }

    #[test]
    fn a_gap_counts_as_a_failure_before_the_heartbeat_that_ends_it() {
        let start = Moment::now();
        let mut guard = guard(false);
        beats(&mut guard, start, 0, 40);
        let late = start.plus(51 * SECOND);
        assert_eq!(guard.recovery(late), Recovery::Forbidden);
        guard.sent(late);
        guard.answered(late, late);
        assert_eq!(guard.recovery(late.plus(SECOND)), Recovery::Forbidden);
    }

    #[test]
    fn the_quiet_time_counts_from_the_answer_of_a_heartbeat_that_was_sent_within_the_outage() {
        let start = Moment::now();
        let mut guard = guard(true);
        guard.sent(start);
        guard.answered(start, start.plus(4 * SECOND));
        beats(&mut guard, start, 5, 30);
        assert_eq!(guard.recovery(start.plus(33 * SECOND)), Recovery::Forbidden);
        assert_eq!(guard.recovery(start.plus(34 * SECOND)), Recovery::Proven);
    }

    #[test]
    fn a_slow_round_trip_counts_as_a_failure() {
        let start = Moment::now();
        let mut guard = guard(false);
        guard.sent(start);
        guard.answered(start, start.plus(11 * SECOND));
        guard.sent(start.plus(12 * SECOND));
        assert_eq!(guard.recovery(start.plus(12 * SECOND)), Recovery::Forbidden);
    }
}
