//! How long the sweeper pauses between two rounds, and when it walks through the turn rows again. Told what a round brought.
//!
//! Invariant: whoever has the chores and finds something to do goes on at the usual rate; every other round doubles the pause,
//! up to a bound.

use std::time::{Duration, Instant};

use crate::limits;

/// What a round brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Something was done, or there is more.
    Busy,
    /// The chores were this node's, and there was nothing to do.
    Quiet,
    /// Another node has them.
    Refused,
}

/// The pace of one sweeper.
#[derive(Debug)]
pub(super) struct SweepPace {
    every: Duration,
    walk_every: Duration,
    next_walk: Option<Instant>,
}

impl SweepPace {
    /// Messages are dropped after `retention`: the walks are no further apart than an eighth of it.
    pub(super) fn new(retention: Duration) -> Self {
        let walk_every = (retention / 8).clamp(limits::SWEEP_EVERY, limits::UNKNOWN_WALK_MAX);
        Self { every: limits::SWEEP_EVERY, walk_every, next_walk: None }
    }

    /// About how long it is from this round to the next.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// What comes after a round.
    pub(super) fn after(&mut self, round: Round) {
        self.every = match round {
            Round::Busy => limits::SWEEP_EVERY,
            Round::Quiet => (self.every * 2).min(limits::SWEEP_QUIET_MAX),
            // Whoever has the chores keeps them; the others ask less and less often.
            Round::Refused => (self.every * 2).min(limits::SWEEP_REFUSED_MAX),
        };
    }

    /// Whether the next walk begins.
    pub(super) fn walk_due(&self, now: Instant) -> bool {
        self.next_walk.is_none_or(|next| next <= now)
    }

    /// A walk came to its end.
    pub(super) fn walked(&mut self, now: Instant) {
        self.next_walk = Some(now + self.walk_every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rounds_without_work_become_rare_and_one_with_work_brings_the_usual_rate_back() {
        let mut pace = SweepPace::new(Duration::from_secs(86_400));
        let mut every = |round: Round| {
            pace.after(round);
            pace.every()
        };
        assert_eq!(every(Round::Busy), 10 * SECOND);
        assert_eq!([every(Round::Quiet), every(Round::Quiet)], [20 * SECOND, 30 * SECOND]);
        assert_eq!([every(Round::Refused), every(Round::Refused)], [60 * SECOND, 60 * SECOND]);
        assert_eq!(every(Round::Quiet), 30 * SECOND);
        assert_eq!(every(Round::Busy), 10 * SECOND);
    }

    #[test]
    fn a_walk_that_ended_is_not_begun_again_at_once() {
        let start = Instant::now();
        let mut pace = SweepPace::new(Duration::from_secs(86_400));
        assert!(pace.walk_due(start));
        pace.walked(start);
        assert!(!pace.walk_due(start + 299 * SECOND));
        assert!(pace.walk_due(start + 300 * SECOND));
    }

    #[test]
    fn walks_keep_up_with_a_short_retention() {
        let start = Instant::now();
        for (retention, next) in [(160 * SECOND, 20 * SECOND), (SECOND, 10 * SECOND)] {
            let mut pace = SweepPace::new(retention);
            pace.walked(start);
            assert!(!pace.walk_due(start + next - Duration::from_millis(1)));
            assert!(pace.walk_due(start + next));
        }
    }
}
