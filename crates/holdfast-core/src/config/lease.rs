//! Leases and poison.

use std::time::Duration;

use super::rule::{self, invalid};
use crate::{error::Result, lease::BUFFER_APPLIES_FROM, store::turn::RenewRequest};

/// Leases and poison.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseConfig {
    /// Lease of a turn. At least 1 ms. Default: 5 s.
    pub orchestrator_lock_timeout: Duration,
    /// For turn leases of 15 s and more: renewed this long before the end; less than the lease. Default: 2 s.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// Lease of an activity. At least 1 ms. Default: 30 s.
    pub worker_lock_timeout: Duration,
    /// For activity leases of 15 s and more: renewed this long before the end; less than the lease. Default: 5 s.
    pub worker_lock_renewal_buffer: Duration,
    /// How long an activity runs under the lease of its turn before it gets a row; at most a quarter of that lease. 0: at once.
    /// Default: 250 ms.
    pub activity_row_delay: Duration,
    /// Deliveries of one item before it is poisoned; at least 1. Default: 10.
    pub max_attempts: u32,
    /// Added to the lease of the second delivery; doubles from there. Default: 1 s.
    pub retry_backoff_base: Duration,
    /// Longest time added to a lease. Default: 60 s.
    pub retry_backoff_max: Duration,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            orchestrator_lock_timeout: Duration::from_secs(5),
            orchestrator_lock_renewal_buffer: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(30),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            activity_row_delay: Duration::from_millis(250),
            max_attempts: 10,
            retry_backoff_base: Duration::from_secs(1),
            retry_backoff_max: Duration::from_secs(60),
        }
    }
}

/// Shorter than this no lease goes on.
const LEAST_KEPT: Duration = Duration::from_millis(10);

impl LeaseConfig {
    /// How long the lease of a turn goes on for activities without a row; zero when none does. Below [`LEAST_KEPT`] it would cost more
    /// than it saves.
    pub fn kept(&self) -> Duration {
        let kept = self.activity_row_delay.min(self.orchestrator_lock_timeout / 4);
        if kept < LEAST_KEPT { Duration::ZERO } else { kept }
    }

    /// Lengths of one lease as the store wants them.
    pub fn renewal(&self, lease: Duration) -> RenewRequest {
        RenewRequest {
            lock_timeout_ms: ms(lease),
            backoff_base_ms: ms(self.retry_backoff_base),
            backoff_max_ms: ms(self.retry_backoff_max),
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        leased(
            ["orchestratorLockTimeoutMs", "orchestratorLockRenewalBufferMs"],
            self.orchestrator_lock_timeout,
            self.orchestrator_lock_renewal_buffer,
        )?;
        leased(
            ["workerLockTimeoutMs", "workerLockRenewalBufferMs"],
            self.worker_lock_timeout,
            self.worker_lock_renewal_buffer,
        )?;
        rule::bounded("activityRowDelayMs", self.activity_row_delay)?;
        if self.max_attempts == 0 {
            return Err(invalid("maxAttempts", 0, "at least 1"));
        }
        rule::ordered(
            "retryBackoffBaseMs",
            self.retry_backoff_base,
            "retryBackoffMaxMs",
            self.retry_backoff_max,
        )
    }
}

/// A lease and its renewal buffer, options of these names.
pub(super) fn leased(options: [&str; 2], timeout: Duration, buffer: Duration) -> Result<()> {
    let [timeout_option, buffer_option] = options;
    rule::positive(timeout_option, timeout)?;
    rule::bounded(buffer_option, buffer)?;
    if timeout >= BUFFER_APPLIES_FROM && buffer >= timeout {
        let rule = format!(
            "less than {timeout_option} ({}) when that is {} or more",
            timeout.as_millis(),
            BUFFER_APPLIES_FROM.as_millis()
        );
        return Err(invalid(buffer_option, buffer.as_millis(), rule));
    }
    Ok(())
}

/// Whole ms, as the store counts.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
