//! Sessions: activities that belong to one node.

use std::time::Duration;

use super::{
    LeaseConfig,
    lease::leased,
    rule::{self, invalid},
};
use crate::{error::Result, lease::LeaseTimes};

/// A session without work is given up after this long, unless an option or long leases of activities say otherwise.
const IDLE: Duration = Duration::from_secs(300);

/// Sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionConfig {
    /// Lease of a session. At least 1 ms. Default: 30 s.
    pub lock_timeout: Duration,
    /// For session leases of 15 s and more: renewed this long before the end; less than the lease. Default: 5 s.
    pub lock_renewal_buffer: Duration,
    /// A session without work for this long is given up; must be longer than the time between two renewals of an
    /// activity's lease. Default: 5 min, or twice that time when it is longer.
    pub idle_timeout: Option<Duration>,
    /// Time between two sweeps of ended sessions. At least 1 ms. Default: 5 min.
    pub cleanup_interval: Duration,
    /// Sessions held here at once; 0 takes none. Default: 10.
    pub max_sessions: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_secs(30),
            lock_renewal_buffer: Duration::from_secs(5),
            idle_timeout: None,
            cleanup_interval: Duration::from_secs(300),
            max_sessions: 10,
        }
    }
}

impl SessionConfig {
    /// The lease of a session.
    pub fn times(&self) -> LeaseTimes {
        LeaseTimes { timeout: self.lock_timeout, buffer: self.lock_renewal_buffer }
    }

    /// The idle timeout in force.
    pub fn idle(&self, lease: &LeaseConfig) -> Duration {
        self.idle_timeout.unwrap_or_else(|| IDLE.max(2 * renewed_every(lease)))
    }

    pub(super) fn validate(&self, lease: &LeaseConfig) -> Result<()> {
        leased(
            ["sessionLockTimeoutMs", "sessionLockRenewalBufferMs"],
            self.lock_timeout,
            self.lock_renewal_buffer,
        )?;
        let interval = renewed_every(lease);
        let idle = self.idle(lease);
        rule::positive("sessionIdleTimeoutMs", idle)?;
        if idle <= interval {
            let rule = format!(
                "longer than the time between two renewals of an activity's lease ({}, from workerLockTimeoutMs)",
                interval.as_millis()
            );
            return Err(invalid("sessionIdleTimeoutMs", idle.as_millis(), rule));
        }
        rule::positive("sessionCleanupIntervalMs", self.cleanup_interval)?;
        rule::within("maxSessionsPerRuntime", self.max_sessions, 0, 100_000)
    }
}

/// Time between two renewals of an activity's lease.
fn renewed_every(lease: &LeaseConfig) -> Duration {
    LeaseTimes { timeout: lease.worker_lock_timeout, buffer: lease.worker_lock_renewal_buffer }.first_try()
}
