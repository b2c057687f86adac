//! A clock that runs on while the machine sleeps, for everything that others decide meanwhile: leases, heartbeats, fences.
//!
//! `std::time::Instant` stands still during a suspend on Linux, so a node that slept for an hour would take its last
//! heartbeat for a fresh one. It never goes backwards and says nothing about the time of day.

use std::time::Duration;

/// A reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        Self(reading())
    }

    /// Time since an earlier reading; zero when it is a later one.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment so much later.
    #[must_use]
    pub(crate) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

/// `CLOCK_BOOTTIME`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reading() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Elsewhere the standard library's clock, counted from the first reading; on Windows it runs during a suspend too.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reading() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward_only() {
        let first = Moment::now();
        let second = Moment::now();
        assert!(second >= first);
        assert_eq!(first.since(first.plus(Duration::from_secs(1))), Duration::ZERO);
        assert_eq!(first.plus(Duration::from_secs(1)).since(first), Duration::from_secs(1));
    }
}
