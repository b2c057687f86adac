//! Whether this node may declare others dead: its own past tells crashes from outages. Told `now`.
//!
//! Invariant: after a heartbeat that failed, came late or took too long nobody is recovered for a stale age of theirs, because
//! whoever was silent then may have met the same outage. It never looks at the database; what only the database knows (the
//! times of each node, who fell silent together, how long the server has been up) is checked in the recovery statement.

use std::time::Duration;

use crate::{clock::Moment, config::ms, store::node::Recovery};

/// The guard of one node.
#[derive(Debug)]
pub(crate) struct Outage {
    /// A gap or a round trip above this counts as a failure.
    longest: Duration,
    /// No heartbeat has failed since the node was started, and no outage of others was seen.
    fresh: bool,
    /// When the first was answered of the heartbeats that all arrived in time.
    clean_since: Option<Moment>,
    last_sent: Option<Moment>,
}

impl Outage {
    /// The guard of a node that starts; `troubled` when connecting has failed before it could.
    pub(crate) fn new(interval: Duration, troubled: bool) -> Self {
        Self { longest: 2 * interval, fresh: !troubled, clean_since: None, last_sent: None }
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

    /// Others fell silent together: this node lets its own past grow before it judges any of them, also the last one.
    pub(crate) fn seen_at_others(&mut self) {
        self.fresh = false;
    }

    /// Whom this node may recover with the heartbeat that it sends now.
    pub(crate) fn recovery(&self, now: Moment) -> Recovery {
        let gap = self.last_sent.is_some_and(|last| now.since(last) > self.longest);
        match self.clean_since {
            _ if gap => Recovery::Forbidden,
            None if !self.fresh => Recovery::Forbidden,
            since => Recovery::Allowed {
                clean_ms: since.map_or(0, |since| ms(now.since(since))),
                fresh: self.fresh,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn guard(troubled: bool) -> Outage {
        Outage::new(5 * SECOND, troubled)
    }

    fn allowed(clean_ms: i64, fresh: bool) -> Recovery {
        Recovery::Allowed { clean_ms, fresh }
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
    fn a_fresh_node_has_a_past_that_grows_from_its_first_answer() {
        let start = Moment::now();
        let mut guard = guard(false);
        assert_eq!(guard.recovery(start), allowed(0, true));
        beats(&mut guard, start, 0, 30);
        assert_eq!(guard.recovery(start.plus(30 * SECOND)), allowed(30_000, true));
    }

    #[test]
    fn a_node_that_could_not_connect_at_first_has_only_the_past_since_then() {
        let start = Moment::now();
        let mut guard = guard(true);
        assert_eq!(guard.recovery(start), Recovery::Forbidden);
        beats(&mut guard, start, 0, 30);
        assert_eq!(guard.recovery(start.plus(29 * SECOND)), allowed(29_000, false));
    }

    #[test]
    fn an_outage_of_others_leaves_a_fresh_node_its_past_and_nothing_more() {
        let start = Moment::now();
        let mut guard = guard(false);
        beats(&mut guard, start, 0, 5);
        guard.seen_at_others();
        assert_eq!(guard.recovery(start.plus(6 * SECOND)), allowed(6_000, false));
    }

    #[test]
    fn a_failed_heartbeat_ends_the_past() {
        let start = Moment::now();
        let mut guard = guard(false);
        beats(&mut guard, start, 0, 40);
        assert_eq!(guard.recovery(start.plus(40 * SECOND)), allowed(40_000, true));
        guard.sent(start.plus(45 * SECOND));
        guard.failed();
        assert_eq!(guard.recovery(start.plus(46 * SECOND)), Recovery::Forbidden);
        beats(&mut guard, start, 50, 80);
        assert_eq!(guard.recovery(start.plus(79 * SECOND)), allowed(29_000, false));
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
        assert_eq!(guard.recovery(late.plus(SECOND)), allowed(1_000, false));
    }

    #[test]
    fn the_quiet_time_counts_from_the_answer_of_a_heartbeat_that_was_sent_within_the_outage() {
        let start = Moment::now();
        let mut guard = guard(true);
        guard.sent(start);
        guard.answered(start, start.plus(4 * SECOND));
        beats(&mut guard, start, 5, 30);
        assert_eq!(guard.recovery(start.plus(33 * SECOND)), allowed(29_000, false));
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
