//! How long an activity may take, and how long it may take to stop.

use std::time::Duration;

use super::rule;
use crate::error::Result;

/// Activities.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityConfig {
    /// Time limit of one try when the activity names none. At least 1 ms. Default: none.
    pub timeout: Option<Duration>,
    /// From the abort signal to giving up on the body. Default: 10 s.
    pub cancellation_grace_period: Duration,
}

impl Default for ActivityConfig {
    fn default() -> Self {
        Self { timeout: None, cancellation_grace_period: Duration::from_secs(10) }
    }
}

impl ActivityConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if let Some(timeout) = self.timeout {
            rule::positive("activityTimeoutMs", timeout)?;
        }
        rule::bounded("activityCancellationGracePeriodMs", self.cancellation_grace_period)
    }
}
