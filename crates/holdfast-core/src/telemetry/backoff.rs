//! Growing pauses: half fixed, half random, so that many processes do not come back in step.

use std::time::Duration;

use crate::chance::unit;

/// A pause that doubles up to a cap.
#[derive(Debug)]
pub struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// Starts at `base`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: 0 }
    }

    /// The next pause.
    pub fn next_delay(&mut self) -> Duration {
        let step = self.base.saturating_mul(1 << self.failures.min(20)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + 0.5 * unit())
    }

    /// Success: starts anew.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_to_its_cap_and_starts_anew_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(400));
        for step in [100, 200, 400, 400] {
            let pause = backoff.next_delay().as_millis();
            assert!((step / 2..=step).contains(&pause), "{pause} within half of {step}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }
}
