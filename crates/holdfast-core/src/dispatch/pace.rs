//! How long the claimer sleeps between two rounds: short after work, longer the longer there is none.
//!
//! Invariant: no sleep is shorter than the poll interval or longer than the bound, unless the interval is the longer one.

use std::time::Duration;

/// The pace of one claimer.
#[derive(Debug)]
pub(super) struct Pace {
    shortest: Duration,
    longest: Duration,
    idle: Duration,
}

impl Pace {
    pub(super) fn new(poll_interval: Duration, bound: Duration) -> Self {
        // Whoever asks for fewer claims than the bound makes gets fewer.
        Self { shortest: poll_interval, longest: bound.max(poll_interval), idle: poll_interval }
    }

    /// No sleep is longer from here on.
    pub(super) fn bound(&mut self, bound: Duration) {
        self.longest = bound.max(self.shortest);
    }

    /// The sleep after a round that claimed so many rows and saw the next one due in `next_due`.
    pub(super) fn after(&mut self, claimed: usize, next_due: Option<Duration>) -> Duration {
        let idle = if claimed > 0 { self.shortest } else { self.idle * 2 };
        self.idle = idle.min(self.longest);
        next_due.map_or(self.idle, |due| due.max(self.shortest).min(self.idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_idle_claimer_slows_down_to_its_bound_and_starts_anew_with_work() {
        let mut pace = Pace::new(100 * MS, 500 * MS);
        let sleeps: Vec<_> = (0..4).map(|_| pace.after(0, None)).collect();
        assert_eq!(sleeps, [200 * MS, 400 * MS, 500 * MS, 500 * MS]);
        assert_eq!(pace.after(3, None), 100 * MS);
    }

    #[test]
    fn what_is_due_soon_is_not_slept_over() {
        let mut pace = Pace::new(100 * MS, 1000 * MS);
        pace.after(0, None);
        assert_eq!(pace.after(0, Some(250 * MS)), 250 * MS);
        assert_eq!(pace.after(0, Some(MS)), 100 * MS, "never below the poll interval");
    }

    #[test]
    fn a_poll_interval_above_the_bound_wins() {
        let mut pace = Pace::new(5000 * MS, 1000 * MS);
        assert_eq!(pace.after(0, Some(MS)), 5000 * MS);
        assert_eq!(pace.after(0, None), 5000 * MS);
    }

    #[test]
    fn an_idle_minute_costs_few_looks() {
        for (bound_ms, most) in [(1_000, 64), (5_000, 17)] {
            let mut pace = Pace::new(100 * MS, bound_ms * MS);
            let (mut looks, mut slept) = (0, Duration::ZERO);
            while slept < Duration::from_secs(60) {
                slept += pace.after(0, None);
                looks += 1;
            }
            // With a heartbeat every 5 s a listening node stays below 0.6 transactions a second.
            assert!(looks <= most, "{looks} looks with a bound of {bound_ms} ms");
        }
    }
}
