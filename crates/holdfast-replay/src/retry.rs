//! Retry policies: how often, and after which delay, a failed activity is tried again.

use serde::{Deserialize, Serialize};

/// How the delay grows from try to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// Doubles each time.
    #[default]
    Exponential,
    /// Grows by the base each time.
    Linear,
    /// Stays the same.
    Fixed,
}

/// When and how often an activity is tried again. All fields are optional on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryPolicy {
    /// Tries in all, the first included; at least 1.
    pub max_attempts: u32,
    /// Shape of the delay.
    pub backoff: Backoff,
    /// Delay before the second try, in ms.
    pub base_delay_ms: u64,
    /// Longest delay, in ms.
    pub max_delay_ms: u64,
    /// Share of the delay that is random, 0 to 100.
    pub jitter_percent: u8,
    /// Time limit of one try, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Time limit over all tries and delays, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// Error names that are not tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

impl Default for RetryPolicy {
    /// Three tries, exponential from 1 s up to 60 s, a quarter of each delay random, no time limit.
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: Backoff::Exponential,
            base_delay_ms: 1_000,
            max_delay_ms: 60_000,
            jitter_percent: 25,
            timeout_ms: None,
            total_timeout_ms: None,
            non_retryable: Vec::new(),
        }
    }
}
