//! Whether something that should move stands still: the JavaScript loop, or a part of the engine. Told `now`.
//!
//! Invariant: only time in which the watcher itself was running counts, so a process that was stopped or a machine that
//! slept is not taken for a loop that hangs.

use std::time::{Duration, Instant};

/// How the JavaScript loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoopState {
    /// It turns, or is not watched.
    #[default]
    Healthy,
    /// It stands still: nothing is claimed for it, its leases are kept.
    Stalled,
    /// It stands still for too long: its leases are given up.
    Hung,
}

impl LoopState {
    /// The word of the public interface.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Stalled => "stalled",
            Self::Hung => "hung",
        }
    }
}

/// How long a count of signs of life has not changed.
#[derive(Debug)]
pub(crate) struct Stillness {
    /// A longer time between two looks is not counted beyond this.
    longest_step: Duration,
    last_look: Option<Instant>,
    count: u64,
    still: Duration,
}

impl Stillness {
    /// For a watcher that looks about this often.
    pub(crate) fn new(tick: Duration) -> Self {
        Self { longest_step: 4 * tick, last_look: None, count: 0, still: Duration::ZERO }
    }

    /// How long the count has stood still at this look.
    pub(crate) fn look(&mut self, now: Instant, count: u64) -> Duration {
        let step = self.last_look.map_or(Duration::ZERO, |last| now.duration_since(last));
        self.still =
            if count == self.count { self.still + step.min(self.longest_step) } else { Duration::ZERO };
        self.count = count;
        self.last_look = Some(now);
        self.still
    }
}

/// A change of the loop's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) to: LoopState,
    /// For how long it has stood still; of a loop that turns again, for how long it had.
    pub(crate) still: Duration,
}

/// The watchdog of the JavaScript loop. A time of zero turns its state off.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stall: Duration,
    hang: Duration,
    stillness: Stillness,
    /// For how long the loop stood still at the last look that was not healthy.
    longest: Duration,
    state: LoopState,
}

impl Watchdog {
    pub(crate) fn new(stall: Duration, hang: Duration, tick: Duration) -> Self {
        Self {
            stall,
            hang,
            stillness: Stillness::new(tick),
            longest: Duration::ZERO,
            state: LoopState::Healthy,
        }
    }

    /// A look at the loop's count of signs of life; zero means that it has not given any yet.
    pub(crate) fn look(&mut self, now: Instant, count: u64) -> Option<Change> {
        let still = self.stillness.look(now, count);
        let over = |limit: Duration| count > 0 && !limit.is_zero() && still >= limit;
        let to = if over(self.hang) {
            LoopState::Hung
        } else if over(self.stall) {
            LoopState::Stalled
        } else {
            LoopState::Healthy
        };
        let change = (to != self.state)
            .then(|| Change { to, still: if to == LoopState::Healthy { self.longest } else { still } });
        self.state = to;
        self.longest = if to == LoopState::Healthy { Duration::ZERO } else { still };
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watchdog(stall: u32, hang: u32) -> Watchdog {
        Watchdog::new(stall * SECOND, hang * SECOND, SECOND)
    }

    /// Looks once a second; gives the changes with their second.
    fn looks(
        dog: &mut Watchdog,
        start: Instant,
        seconds: std::ops::Range<u32>,
        count: u64,
    ) -> Vec<(u32, LoopState)> {
        let look = |second: u32| dog.look(start + second * SECOND, count).map(|change| (second, change.to));
        seconds.filter_map(look).collect()
    }

    #[test]
    fn a_loop_that_stands_still_stalls_then_hangs_then_comes_back() {
        let start = Instant::now();
        let mut dog = watchdog(5, 20);
        let seen = looks(&mut dog, start, 0..40, 1);
        assert_eq!(seen, [(5, LoopState::Stalled), (20, LoopState::Hung)]);
        let back = dog.look(start + 40 * SECOND, 2).expect("a change");
        assert_eq!(back, Change { to: LoopState::Healthy, still: 39 * SECOND });
        assert_eq!(dog.look(start + 41 * SECOND, 3), None);
    }

    #[test]
    fn zero_turns_a_state_off() {
        let start = Instant::now();
        assert_eq!(looks(&mut watchdog(0, 20), start, 0..30, 1), [(20, LoopState::Hung)]);
        assert_eq!(looks(&mut watchdog(5, 0), start, 0..300, 1), [(5, LoopState::Stalled)]);
        assert_eq!(looks(&mut watchdog(0, 0), start, 0..300, 1), []);
    }

    #[test]
    fn a_process_that_was_stopped_is_not_taken_for_a_loop_that_hangs() {
        let start = Instant::now();
        let mut dog = watchdog(5, 20);
        dog.look(start, 1);
        assert_eq!(dog.look(start + 600 * SECOND, 1), None, "the watcher did not run either");
    }

    #[test]
    fn a_loop_without_a_first_sign_of_life_is_not_judged() {
        assert_eq!(looks(&mut watchdog(5, 20), Instant::now(), 0..60, 0), []);
    }
}
