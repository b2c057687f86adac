//! How long a listener waits before it connects again. Told the chance, no I/O.
//!
//! Half of each delay is fixed and half random, so that processes that lost the same server do not come back in step; a
//! server without a session to spare is left alone for longer.

use std::time::Duration;

use crate::limits;

/// The delays of one listener.
#[derive(Debug, Default)]
pub(super) struct Reconnect {
    attempt: u32,
}

impl Reconnect {
    /// The delay after another failure; `chance` is from [0, 1).
    pub(super) fn next(&mut self, at_capacity: bool, chance: f64) -> Duration {
        let base = if at_capacity { limits::HUB_CAPACITY_BASE } else { limits::HUB_RECONNECT_BASE };
        let step = base.saturating_mul(1 << self.attempt.min(20)).min(limits::HUB_RECONNECT_MAX);
        self.attempt = self.attempt.saturating_add(1);
        step.mul_f64(0.5 + 0.5 * chance)
    }

    /// It listens: the next failure is the first again.
    pub(super) fn reset(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn reconnect_delays_double_from_250_ms_to_300_s_half_fixed_half_random_and_start_anew() {
        let (mut low, mut high) = (Reconnect::default(), Reconnect::default());
        for step in [250, 500, 1_000, 2_000] {
            assert_eq!(low.next(false, 0.0), step * MS / 2);
            assert_eq!(high.next(false, 0.5), step * MS * 3 / 4);
        }
        for _ in 0..40 {
            low.next(false, 0.0);
        }
        assert_eq!(low.next(false, 0.0), Duration::from_secs(150));
        low.reset();
        assert_eq!(low.next(false, 0.0), 125 * MS);
    }

    #[test]
    fn reconnect_delays_begin_at_30_s_when_the_database_is_full() {
        let mut delays = Reconnect::default();
        assert_eq!(delays.next(true, 0.0), Duration::from_secs(15));
        assert_eq!(delays.next(true, 0.0), Duration::from_secs(30));
    }
}
