//! How long claims take, told when that nears a lease: a claim that takes as long as its lease loses what it took.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Claims that are looked at: enough for a p99.
const SAMPLES: usize = 300;

/// Fewer say little.
const ENOUGH: usize = 20;

/// Claims that say how long one takes at this time: a claim that finds nothing is often faster.
const LATELY: usize = 8;

/// Between two warnings.
const QUIET: Duration = Duration::from_secs(60);

/// How long the last claims of one claimer took.
#[derive(Debug, Default)]
pub(super) struct ClaimLatency {
    last: VecDeque<Duration>,
    told_at: Option<Instant>,
}

impl ClaimLatency {
    /// How long claims take at this time.
    pub(super) fn lately(&self) -> Duration {
        self.last.iter().rev().take(LATELY).max().copied().unwrap_or_default()
    }

    /// One claim took so long. The p99 of the last ones when it is above half of the lease, once a minute at most.
    pub(super) fn record(&mut self, took: Duration, lease: Duration, now: Instant) -> Option<Duration> {
        if self.last.len() == SAMPLES {
            self.last.pop_front();
        }
        self.last.push_back(took);
        // A claim that is fast changes nothing that was worth telling.
        let quiet = self.told_at.is_some_and(|at| now.saturating_duration_since(at) < QUIET);
        if took * 2 <= lease || quiet || self.last.len() < ENOUGH {
            return None;
        }
        let mut sorted: Vec<Duration> = self.last.iter().copied().collect();
        sorted.sort_unstable();
        let p99 = sorted[(sorted.len() - 1) * 99 / 100];
        if p99 * 2 <= lease {
            return None;
        }
        self.told_at = Some(now);
        Some(p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(5);

    fn tell(latency: &mut ClaimLatency, ms: u64, times: usize, now: Instant) -> usize {
        (0..times).filter(|_| latency.record(Duration::from_millis(ms), LEASE, now).is_some()).count()
    }

    #[test]
    fn slow_claims_are_told_once_a_minute() {
        let (mut latency, now) = (ClaimLatency::default(), Instant::now());
        assert_eq!(tell(&mut latency, 2600, ENOUGH - 1, now), 0, "too few");
        assert_eq!(tell(&mut latency, 2600, 100, now), 1);
        assert_eq!(tell(&mut latency, 2600, 1, now + QUIET), 1);
    }

    #[test]
    fn what_claims_take_lately_forgets_what_they_took_before() {
        let (mut latency, now) = (ClaimLatency::default(), Instant::now());
        assert_eq!(latency.lately(), Duration::ZERO);
        tell(&mut latency, 100, 1, now);
        tell(&mut latency, 1, LATELY - 1, now);
        assert_eq!(latency.lately(), Duration::from_millis(100));
        tell(&mut latency, 1, 1, now);
        assert_eq!(latency.lately(), Duration::from_millis(1));
    }

    #[test]
    fn a_rare_slow_claim_is_not() {
        let (mut latency, now) = (ClaimLatency::default(), Instant::now());
        assert_eq!(tell(&mut latency, 2500, 300, now), 0, "half of it is not above");
        assert_eq!(tell(&mut latency, 4000, 2, now), 0, "fewer than one in a hundred");
        assert_eq!(tell(&mut latency, 4000, 3, now), 1);
    }
}
