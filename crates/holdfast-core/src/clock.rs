//! A clock that runs on while the machine sleeps, for everything that others decide meanwhile: leases, heartbeats, fences.
//!
//! `std::time::Instant` stands still during a suspend on Linux, so a node that slept for an hour would take its last
//! heartbeat for a fresh one. It never goes backwards and says nothing about the time of day.
//!
//! What paces and waits asks [`now`], the clock that tokio's timers follow. So the simulation, where that one is virtual,
//! drives both.

use std::time::{Duration, Instant};

/// Now, by the clock of the timers.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Time since an earlier reading of it; zero when it is a later one.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// A reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        #[cfg(any(test, feature = "sim"))]
        if let Some(reading) = simulated::reading() {
            return Self(reading);
        }
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

#[cfg(any(test, feature = "sim"))]
pub(crate) mod simulated {
    //! The clock of a thread that simulates: tokio's, and what the machine of the simulated node slept beside it.

    use std::{
        cell::Cell,
        time::{Duration, Instant},
    };

    thread_local! {
        static BEGIN: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    }

    /// From here on moments of this thread are counted by tokio's clock from `begin` on, with `slept` beside; `None` gives
    /// them back to the machine.
    pub(crate) fn count_from(begin: Option<(Instant, Duration)>) {
        BEGIN.set(begin);
    }

    pub(super) fn reading() -> Option<Duration> {
        BEGIN.get().map(|(begin, slept)| super::since(begin) + slept)
    }
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

    #[tokio::test(start_paused = true)]
    async fn a_simulated_node_counts_the_time_of_the_timers_and_its_sleep() {
        simulated::count_from(Some((now(), Duration::ZERO)));
        let first = Moment::now();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(Moment::now().since(first), Duration::from_secs(3_600));
        simulated::count_from(Some((now(), Duration::from_secs(7_200))));
        assert_eq!(Moment::now().since(first), Duration::from_secs(7_200));
        simulated::count_from(None);
    }
}
