//! What a pool tells about itself.

use std::time::Duration;

/// A pool's numbers at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStats {
    /// The URL without credentials.
    pub url: String,
    /// Sessions at most.
    pub max: usize,
    /// Sessions open: in use, being opened, or idle.
    pub total: usize,
    /// Sessions unused.
    pub idle: usize,
    /// Callers waiting.
    pub waiting: usize,
    /// Sessions handed out since the pool was made.
    pub acquires: u64,
    /// Half of the last 512 callers had their session within this time.
    pub acquire_wait_p50: Duration,
    /// 95 of 100 of them did.
    pub acquire_wait_p95: Duration,
    /// Callers refused because too many waited or they waited too long.
    pub saturation_rejections: u64,
    /// Refusals by a server that has no session left.
    pub capacity_rejections: u64,
    /// Callers refused because the breaker was open.
    pub breaker_rejections: u64,
    /// Whether the breaker is open now.
    pub breaker_open: bool,
    /// Sessions that could not be opened, or were lost in use.
    pub connection_errors: u64,
    /// Statements the server refused.
    pub query_errors: u64,
    /// Operations run again, each time counted.
    pub retries: u64,
    /// The most sessions open at once.
    pub peak_total: usize,
    /// The most callers waiting at once.
    pub peak_waiting: usize,
}
