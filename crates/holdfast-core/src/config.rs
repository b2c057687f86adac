//! Options of the engine: one struct for each room, their sum, and the rules across them.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    store::{TagFilter, turn::RenewRequest},
};

/// All options of one runtime.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// Slots and polling.
    pub dispatch: DispatchConfig,
    /// Leases and poison.
    pub lease: LeaseConfig,
    /// Node row and recovery.
    pub liveness: LivenessConfig,
    /// Live frames.
    pub cache: CacheConfig,
    /// Activities.
    pub activity: ActivityConfig,
}

/// Slots and polling.
#[derive(Debug, Clone)]
pub struct DispatchConfig {
    /// Turns in progress at once; 0 runs none here. Default: 2 × cores, at least 4.
    pub orchestration_concurrency: usize,
    /// Activities in progress at once; 0 runs none here. Default: 4 × cores, at least 8.
    pub worker_concurrency: usize,
    /// Shortest time between two empty claims. At least 1 ms. Default: 100 ms.
    pub poll_interval: Duration,
    /// Longest sleep when idle. Without a listener, work of other processes is looked for every second all the same (see
    /// `limits::POLL_WITHOUT_LISTENER`); a longer `poll_interval` wins over both. Default: 5 s.
    pub long_poll_timeout: Duration,
    /// Which activities are taken, by tag: 1 to 5 tags of 1 to 256 bytes where it names some. A tagged activity that no
    /// live node takes waits. Default: those without a tag.
    pub worker_tag_filter: TagFilter,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            orchestration_concurrency: (2 * cores).max(4),
            worker_concurrency: (4 * cores).max(8),
            poll_interval: Duration::from_millis(100),
            long_poll_timeout: Duration::from_millis(5000),
            worker_tag_filter: TagFilter::default_only(),
        }
    }
}

/// Leases and poison.
#[derive(Debug, Clone)]
pub struct LeaseConfig {
    /// Lease of a turn. Default: 5 s.
    pub orchestrator_lock_timeout: Duration,
    /// For turn leases of 15 s and more: renewed this long before the end. Default: 2 s.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// Lease of an activity. Default: 30 s.
    pub worker_lock_timeout: Duration,
    /// For activity leases of 15 s and more: renewed this long before the end. Default: 5 s.
    pub worker_lock_renewal_buffer: Duration,
    /// Deliveries of one item before it is poisoned. Default: 10.
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
            max_attempts: 10,
            retry_backoff_base: Duration::from_secs(1),
            retry_backoff_max: Duration::from_secs(60),
        }
    }
}

impl LeaseConfig {
    /// Lengths of one lease as the store wants them.
    pub fn renewal(&self, lease: Duration) -> RenewRequest {
        RenewRequest {
            lock_timeout_ms: ms(lease),
            backoff_base_ms: ms(self.retry_backoff_base),
            backoff_max_ms: ms(self.retry_backoff_max),
        }
    }
}

/// Whole ms, as the store counts.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Node row and recovery.
#[derive(Debug, Clone)]
pub struct LivenessConfig {
    /// Time between two heartbeats. Default: 5 s.
    pub heartbeat_interval: Duration,
    /// A node without a heartbeat for this long is dead. Default: 30 s.
    pub stale_after: Duration,
    /// Stable identity, 1 to 512 bytes; without it host name and process id. Default: none.
    pub worker_node_id: Option<String>,
}

impl LivenessConfig {
    /// Interval and stale age.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        (self.heartbeat_interval, self.stale_after)
    }
}

impl Default for LivenessConfig {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            worker_node_id: None,
        }
    }
}

/// Live frames kept between turns.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// Frames kept; 0 replays every turn. Default: 1000.
    pub sticky_cache_size: usize,
    /// Bytes of encoded history behind the kept frames. Default: 64 MiB.
    pub sticky_cache_bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { sticky_cache_size: 1000, sticky_cache_bytes: 64 * 1024 * 1024 }
    }
}

/// Activities.
#[derive(Debug, Clone)]
pub struct ActivityConfig {
    /// Time limit of one try when the activity names none. Default: none.
    pub timeout: Option<Duration>,
    /// From the abort signal to giving up on the body. Default: 10 s.
    pub cancellation_grace_period: Duration,
}

impl Default for ActivityConfig {
    fn default() -> Self {
        Self { timeout: None, cancellation_grace_period: Duration::from_secs(10) }
    }
}

impl EngineConfig {
    /// Checks every rule; the error names the option as JavaScript spells it.
    pub fn validate(&self) -> Result<()> {
        at_least_one_ms("dispatcherPollIntervalMs", self.dispatch.poll_interval)?;
        at_least_one_ms("orchestratorLockTimeoutMs", self.lease.orchestrator_lock_timeout)?;
        at_least_one_ms("workerLockTimeoutMs", self.lease.worker_lock_timeout)?;
        at_least_one_ms("heartbeatIntervalMs", self.liveness.heartbeat_interval)?;
        buffer_below(
            "orchestratorLockRenewalBufferMs",
            self.lease.orchestrator_lock_renewal_buffer,
            self.lease.orchestrator_lock_timeout,
        )?;
        buffer_below(
            "workerLockRenewalBufferMs",
            self.lease.worker_lock_renewal_buffer,
            self.lease.worker_lock_timeout,
        )?;
        check_tags(&self.dispatch.worker_tag_filter)?;
        if self.lease.max_attempts == 0 {
            return Err(invalid("maxAttempts must be at least 1, got 0"));
        }
        if self.liveness.stale_after < 4 * self.liveness.heartbeat_interval {
            return Err(invalid(format!(
                "staleAfterMs ({} ms) must be at least 4 × heartbeatIntervalMs ({} ms)",
                self.liveness.stale_after.as_millis(),
                self.liveness.heartbeat_interval.as_millis()
            )));
        }
        if let Some(id) = &self.liveness.worker_node_id
            && (id.is_empty() || id.len() > limits::MAX_NODE_ID_BYTES || id.contains('\0'))
        {
            let most = limits::MAX_NODE_ID_BYTES;
            return Err(invalid(format!("workerNodeId must be a text of 1 to {most} bytes without NUL")));
        }
        Ok(())
    }
}

fn at_least_one_ms(option: &str, value: Duration) -> Result<()> {
    if value.as_millis() == 0 {
        return Err(invalid(format!("{option} must be at least 1 ms")));
    }
    Ok(())
}

fn check_tags(filter: &TagFilter) -> Result<()> {
    let bad = |tag: &String| tag.is_empty() || tag.len() > limits::MAX_TAG_BYTES || tag.contains('\0');
    if filter.tags.len() > limits::MAX_TAGS || filter.tags.iter().any(bad) {
        let (most, bytes) = (limits::MAX_TAGS, limits::MAX_TAG_BYTES);
        return Err(invalid(format!(
            "workerTagFilter takes 1 to {most} tags of 1 to {bytes} bytes without NUL"
        )));
    }
    Ok(())
}

fn buffer_below(option: &str, buffer: Duration, timeout: Duration) -> Result<()> {
    if timeout >= crate::lease::BUFFER_APPLIES_FROM && buffer >= timeout {
        return Err(invalid(format!(
            "{option} ({} ms) must be less than its lease ({} ms)",
            buffer.as_millis(),
            timeout.as_millis()
        )));
    }
    Ok(())
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(change: impl FnOnce(&mut EngineConfig), option: &str) {
        let mut config = EngineConfig::default();
        change(&mut config);
        let error = config.validate().expect_err("a broken rule is refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(option), "{error} names {option}");
    }

    #[test]
    fn the_defaults_are_valid() {
        EngineConfig::default().validate().expect("defaults hold every rule");
    }

    #[test]
    fn a_broken_rule_names_its_option() {
        refused(|c| c.dispatch.poll_interval = Duration::ZERO, "dispatcherPollIntervalMs");
        refused(|c| c.lease.max_attempts = 0, "maxAttempts");
        refused(|c| c.lease.orchestrator_lock_timeout = Duration::ZERO, "orchestratorLockTimeoutMs");
        refused(
            |c| c.lease.worker_lock_renewal_buffer = Duration::from_secs(30),
            "workerLockRenewalBufferMs",
        );
        refused(|c| c.liveness.stale_after = Duration::from_secs(19), "staleAfterMs");
        let six = (0..6).map(|n| n.to_string()).collect();
        refused(|c| c.dispatch.worker_tag_filter = TagFilter::tags(six), "workerTagFilter");
        let long = vec!["t".repeat(257)];
        refused(|c| c.dispatch.worker_tag_filter = TagFilter::default_and(long), "workerTagFilter");
        refused(|c| c.liveness.worker_node_id = Some(String::new()), "workerNodeId");
        refused(|c| c.liveness.worker_node_id = Some("n".repeat(513)), "workerNodeId");
    }

    #[test]
    fn a_short_lease_ignores_its_buffer() {
        let mut config = EngineConfig::default();
        config.lease.orchestrator_lock_timeout = Duration::from_millis(1);
        config.validate().expect("below 15 s the buffer has no meaning");
    }
}
