//! What is thrown away, and when.

use std::time::Duration;

use super::rule;
use crate::error::Result;

/// What is thrown away, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionConfig {
    /// Instances that ended longer ago than this are pruned. At least 1 ms. Default: none, they are kept.
    pub retention: Option<Duration>,
    /// Messages to an instance that does not exist are kept this long. At least 1 ms. Default: 1 day.
    pub unknown_instance_retention: Duration,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { retention: None, unknown_instance_retention: Duration::from_secs(86_400) }
    }
}

impl RetentionConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if let Some(retention) = self.retention {
            rule::positive("retentionMs", retention)?;
        }
        rule::positive("unknownInstanceRetentionMs", self.unknown_instance_retention)
    }
}
