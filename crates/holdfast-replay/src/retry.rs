//! Retry policies: how often, and after which delay, a failed activity is tried again.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Payload;

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
    /// A try that runs out of time ends the activity at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub final_timeout: bool,
    /// Longest time between two heartbeats of one try, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
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
            final_timeout: false,
            heartbeat_timeout_ms: None,
            total_timeout_ms: None,
            non_retryable: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// Delay after the failed try number `failed_attempt` (from 1), in ms. `unit` in [0, 1) is the caller's chance.
    ///
    /// The random share lies below the computed delay, so the cap holds with it.
    pub fn delay_ms(&self, failed_attempt: u32, unit: f64) -> u64 {
        let failed_attempt = failed_attempt.max(1);
        let grown = match self.backoff {
            Backoff::Fixed => self.base_delay_ms,
            Backoff::Linear => self.base_delay_ms.saturating_mul(u64::from(failed_attempt)),
            // 2^64 times anything but 0 is over every cap, and `saturating_pow` stops there.
            Backoff::Exponential => {
                self.base_delay_ms.saturating_mul(2u64.saturating_pow(failed_attempt - 1))
            }
        };
        let delay = grown.min(self.max_delay_ms);
        let percent = u128::from(self.jitter_percent.min(100));
        let share = u64::try_from(u128::from(delay) * percent / 100).unwrap_or(delay);
        let unit = if unit.is_finite() { unit.clamp(0.0, 1.0) } else { 0.0 };
        // Float to integer conversion saturates; the share bounds what rounding adds.
        let random = ((share as f64 * unit) as u64).min(share);
        delay - share + random
    }

    /// Delay before the next try after the failed try number `failed_attempt` (from 1), or `None` to give up.
    /// `elapsed_ms` is the time since the first try began.
    ///
    /// It gives up when the tries are used up, when the error says `"retryable": false` or has a name that is not
    /// to be tried again, and when the next try would begin at or after the end of the total time limit.
    pub fn decide(&self, failed_attempt: u32, error: &Payload, elapsed_ms: u64, unit: f64) -> Option<u64> {
        if failed_attempt >= self.max_attempts || self.is_final(error) {
            return None;
        }
        let delay = self.delay_ms(failed_attempt, unit);
        match self.total_timeout_ms {
            Some(total) if elapsed_ms.saturating_add(delay) >= total => None,
            _ => Some(delay),
        }
    }

    /// Whether the error itself says that trying again cannot help.
    fn is_final(&self, error: &Payload) -> bool {
        /// The two fields of an error that matter here, each as raw text: a name that Rust cannot hold (a lone
        /// surrogate) must not hide the other.
        #[derive(Deserialize)]
        struct Seen<'a> {
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            retryable: Option<&'a RawValue>,
        }
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(error.as_str()) else { return false };
        let name = seen.name.and_then(|name| serde_json::from_str::<String>(name.get()).ok());
        seen.retryable.is_some_and(|retryable| retryable.get() == "false")
            || name.is_some_and(|name| {
                self.non_retryable.contains(&name) || (self.final_timeout && name == "TimeoutError")
            })
    }
}
