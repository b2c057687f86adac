//! When a lease is renewed. Pure arithmetic.

use std::time::Duration;

/// From this lease length on the renewal buffer counts; below it a lease is renewed at half its length.
pub const BUFFER_APPLIES_FROM: Duration = Duration::from_secs(15);

/// Lengths of one kind of lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    /// The lease.
    pub timeout: Duration,
    /// How long before the end it is renewed, for long leases.
    pub buffer: Duration,
}

impl LeaseTimes {
    /// From a stamp to the first try to renew: timeout − buffer for long leases, half of it for short ones, but never
    /// later than leaves room for two more tries.
    pub fn first_try(&self) -> Duration {
        let wanted = if self.timeout >= BUFFER_APPLIES_FROM {
            self.timeout.saturating_sub(self.buffer)
        } else {
            self.timeout / 2
        };
        wanted.min(self.timeout.saturating_sub(2 * self.later_tries()))
    }

    /// Between two tries after the first.
    pub fn later_tries(&self) -> Duration {
        self.timeout / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn first_try(timeout_ms: u64, buffer_ms: u64, expected_us: u128) {
        let times = LeaseTimes {
            timeout: Duration::from_millis(timeout_ms),
            buffer: Duration::from_millis(buffer_ms),
        };
        assert_eq!(times.first_try().as_micros(), expected_us);
    }

    #[test]
    fn a_long_lease_is_renewed_its_buffer_before_the_end() {
        first_try(60_000, 20_000, 40_000_000);
    }

    #[test]
    fn two_more_tries_fit_behind_a_small_buffer() {
        first_try(30_000, 5_000, 22_500_000);
        first_try(15_000, 0, 11_250_000);
    }

    #[test]
    fn a_short_lease_is_renewed_at_half_whatever_its_buffer() {
        first_try(5_000, 2_000, 2_500_000);
        first_try(14_999, 14_000, 7_499_500);
        first_try(1, 2_000, 500);
    }
}
