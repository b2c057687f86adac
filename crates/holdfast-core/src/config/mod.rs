//! Options of the engine: one struct for each room, their sum, and the rules across them.
//!
//! Every default is here and nowhere else. A field is spelled as JavaScript spells it, without the unit; the binding maps
//! each one both ways without `..`, so a field that JavaScript cannot set and read does not compile. Nothing here reads the
//! environment.

mod activity;
mod dispatch;
mod lease;
mod limits;
mod liveness;
mod replay_versions;
mod retention;
mod rule;
mod session;
mod telemetry;

pub use self::{
    activity::ActivityConfig,
    dispatch::DispatchConfig,
    lease::LeaseConfig,
    limits::{CacheConfig, LimitsConfig},
    liveness::{HangAction, ListenerMode, LivenessConfig, WatchdogConfig},
    replay_versions::{ReplayVersion, ReplayVersions},
    retention::RetentionConfig,
    session::SessionConfig,
    telemetry::{LogLevel, TelemetryConfig},
};
pub(crate) use lease::ms;

use std::time::Duration;

use crate::error::Result;

/// All options of one runtime.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineConfig {
    /// Slots, polling and what is claimed.
    pub dispatch: DispatchConfig,
    /// Leases and poison.
    pub lease: LeaseConfig,
    /// Sessions.
    pub session: SessionConfig,
    /// Node row, recovery and hints.
    pub liveness: LivenessConfig,
    /// The JavaScript loop.
    pub watchdog: WatchdogConfig,
    /// Live frames.
    pub cache: CacheConfig,
    /// Activities.
    pub activity: ActivityConfig,
    /// Bounds of one execution.
    pub limits: LimitsConfig,
    /// What is thrown away, and when.
    pub retention: RetentionConfig,
    /// What is told to the outside.
    pub telemetry: TelemetryConfig,
}

impl EngineConfig {
    /// How often a node looks at itself.
    pub(crate) fn watch_interval(&self) -> Duration {
        self.watchdog.watch_interval(self.liveness.heartbeat_interval)
    }

    /// Checks every rule; the error names the option as JavaScript spells it, the value and the rule.
    pub fn validate(&self) -> Result<()> {
        self.dispatch.validate()?;
        self.lease.validate()?;
        self.session.validate(&self.lease)?;
        self.liveness.validate()?;
        self.watchdog.validate()?;
        self.activity.validate()?;
        self.limits.validate()?;
        self.retention.validate()?;
        self.telemetry.validate()
    }

    /// The same options with every default that depends on others filled in, for showing.
    #[must_use]
    pub fn in_force(mut self) -> Self {
        self.liveness.worker_node_id = Some(self.liveness.node_id());
        self.liveness.self_fence_margin = Some(self.liveness.margin());
        self.session.idle_timeout = Some(self.session.idle(&self.lease));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{error::ErrorKind, store::TagFilter};

    #[track_caller]
    fn refused(change: impl FnOnce(&mut EngineConfig), option: &str) {
        let mut config = EngineConfig::default();
        change(&mut config);
        let error = config.validate().expect_err("a broken rule is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        let text = error.to_string();
        assert!(text.starts_with(&format!("invalid option {option}: ")), "{text} names {option}");
        assert!(text.contains(" is not allowed; it must be "), "{text} says the rule");
    }

    #[test]
    fn the_defaults_are_valid() {
        EngineConfig::default().validate().expect("defaults hold every rule");
    }

    #[test]
    fn a_broken_rule_names_its_option() {
        refused(|c| c.dispatch.poll_interval = Duration::ZERO, "dispatcherPollIntervalMs");
        refused(|c| c.dispatch.long_poll_timeout = Duration::ZERO, "dispatcherLongPollTimeoutMs");
        refused(
            |c| c.dispatch.unregistered_backoff_base = Duration::from_secs(61),
            "unregisteredBackoffBaseMs",
        );
        let six = (0..6).map(|n| n.to_string()).collect();
        refused(|c| c.dispatch.worker_tag_filter = TagFilter::tags(six), "workerTagFilter");
        let long = vec!["t".repeat(257)];
        refused(|c| c.dispatch.worker_tag_filter = TagFilter::default_and(long), "workerTagFilter");
        refused(
            |c| c.dispatch.replay_versions.min = ReplayVersion { major: 99, minor: 0, patch: 0 },
            "supportedReplayVersions",
        );
        refused(|c| c.lease.max_attempts = 0, "maxAttempts");
        refused(|c| c.lease.orchestrator_lock_timeout = Duration::ZERO, "orchestratorLockTimeoutMs");
        refused(
            |c| c.lease.worker_lock_renewal_buffer = Duration::from_secs(30),
            "workerLockRenewalBufferMs",
        );
        refused(|c| c.lease.retry_backoff_base = Duration::from_secs(61), "retryBackoffBaseMs");
        refused(|c| c.session.lock_renewal_buffer = Duration::from_secs(30), "sessionLockRenewalBufferMs");
        refused(|c| c.session.idle_timeout = Some(Duration::from_secs(20)), "sessionIdleTimeoutMs");
        refused(|c| c.liveness.stale_after = Duration::from_secs(19), "staleAfterMs");
        refused(|c| c.liveness.self_fence_margin = Some(Duration::from_secs(25)), "selfFenceMarginMs");
        refused(|c| c.liveness.worker_node_id = Some(String::new()), "workerNodeId");
        refused(|c| c.liveness.worker_node_id = Some("n".repeat(513)), "workerNodeId");
        refused(|c| c.watchdog.stall_timeout = Duration::from_secs(120), "eventLoopStallTimeoutMs");
        refused(|c| c.activity.timeout = Some(Duration::ZERO), "activityTimeoutMs");
        refused(|c| c.limits.payload_byte_limit = 0, "payloadByteLimit");
        refused(|c| c.limits.fan_out_limit = usize::MAX, "fanOutLimit");
        refused(|c| c.retention.retention = Some(Duration::ZERO), "retentionMs");
        refused(|c| c.telemetry.service_name = String::new(), "serviceName");
        refused(|c| c.telemetry.gauge_poll_interval = Duration::ZERO, "gaugePollIntervalMs");
    }

    #[test]
    fn a_short_lease_ignores_its_buffer() {
        let mut config = EngineConfig::default();
        config.lease.orchestrator_lock_timeout = Duration::from_millis(1);
        config.lease.worker_lock_timeout = Duration::from_millis(1);
        config.session.lock_timeout = Duration::from_millis(1);
        config.validate().expect("below 15 s the buffer has no meaning");
    }

    #[test]
    fn long_leases_of_activities_make_sessions_idle_later() {
        let mut config = EngineConfig::default();
        assert_eq!(config.session.idle(&config.lease), Duration::from_secs(300));
        config.lease.worker_lock_timeout = Duration::from_secs(600);
        config.validate().expect("the default follows the lease");
        assert_eq!(config.session.idle(&config.lease), Duration::from_secs(900));
    }

    #[test]
    fn a_watchdog_threshold_of_zero_is_off() {
        let mut config = EngineConfig::default();
        config.watchdog.hang_timeout = Duration::ZERO;
        config.validate().expect("no hang to come after the stall");
    }
}
