//! Node row, recovery, hints, and the watchdog of the JavaScript loop.

use std::{process, time::Duration};

use super::rule::{self, invalid};
pub use crate::notify::ListenerMode;
use crate::{error::Result, limits};

/// What a node does whose JavaScript loop hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HangAction {
    /// It gives up its leases, so that others take over.
    #[default]
    Fence,
    /// The process ends.
    Exit,
}

/// Node row, recovery and hints.
#[derive(Debug, Clone, PartialEq)]
pub struct LivenessConfig {
    /// Time between two heartbeats. At least 1 ms. Default: 5 s.
    pub heartbeat_interval: Duration,
    /// A node without a heartbeat for this long is dead; at least four intervals. Default: 30 s.
    pub stale_after: Duration,
    /// Stable identity, 1 to 512 bytes; without it host name and process id. Default: none.
    pub worker_node_id: Option<String>,
    /// How long before others may take over a node without heartbeats stops starting work; less than `stale_after` minus
    /// one interval. Default: two intervals.
    pub self_fence_margin: Option<Duration>,
    /// Which processes listen for hints. Default: each.
    pub listener: ListenerMode,
}

impl Default for LivenessConfig {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            worker_node_id: None,
            self_fence_margin: None,
            listener: ListenerMode::default(),
        }
    }
}

impl LivenessConfig {
    /// Interval and stale age.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        (self.heartbeat_interval, self.stale_after)
    }

    /// The self-fence margin in force.
    pub fn margin(&self) -> Duration {
        self.self_fence_margin.unwrap_or(2 * self.heartbeat_interval)
    }

    /// From sending the last successful heartbeat until the node fences itself. A stable identity may be taken over after three
    /// intervals, so it is fenced after two.
    pub(crate) fn fence_after(&self) -> Duration {
        let before_stale = self.stale_after.saturating_sub(self.margin());
        if self.worker_node_id.is_some() {
            before_stale.min(2 * self.heartbeat_interval)
        } else {
            before_stale
        }
    }

    /// The configured identity, or host and process: unique among the processes of all hosts at one time; the epoch tells
    /// successive ones apart.
    pub fn node_id(&self) -> String {
        match &self.worker_node_id {
            Some(id) => id.clone(),
            None => format!("{}-{}", host_name(), process::id()),
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let (interval, stale) = (self.heartbeat_interval, self.stale_after);
        rule::positive("heartbeatIntervalMs", interval)?;
        rule::bounded("staleAfterMs", stale)?;
        if stale < 4 * interval {
            let rule = format!("at least four times heartbeatIntervalMs ({})", interval.as_millis());
            return Err(invalid("staleAfterMs", stale.as_millis(), rule));
        }
        if self.margin() >= stale - interval {
            let rule = format!(
                "less than staleAfterMs minus heartbeatIntervalMs ({}), or a healthy node stops between two heartbeats",
                (stale - interval).as_millis()
            );
            return Err(invalid("selfFenceMarginMs", self.margin().as_millis(), rule));
        }
        match &self.worker_node_id {
            Some(id) => rule::text("workerNodeId", id, limits::MAX_NODE_ID_BYTES),
            None => Ok(()),
        }
    }
}

/// The watchdog of the JavaScript loop.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchdogConfig {
    /// A loop that stands still for this long is stalled: nothing new is claimed; 0 turns it off. Default: 5 s.
    pub stall_timeout: Duration,
    /// A loop that stands still for this long hangs; above `stall_timeout`; 0 turns it off. Default: 2 min.
    pub hang_timeout: Duration,
    /// What is done then. Default: fence.
    pub hang_action: HangAction,
}

impl Default for WatchdogConfig {
    fn default() -> Self {
        Self {
            stall_timeout: Duration::from_secs(5),
            hang_timeout: Duration::from_secs(120),
            hang_action: HangAction::default(),
        }
    }
}

impl WatchdogConfig {
    /// How often the JavaScript loop gives a sign of life; `None` when nobody asks.
    pub(crate) fn life_interval(&self) -> Option<Duration> {
        let limits = [self.stall_timeout, self.hang_timeout];
        let shortest = limits.into_iter().filter(|limit| !limit.is_zero()).min()?;
        Some((shortest / 5).clamp(Duration::from_millis(1), Duration::from_secs(1)))
    }

    /// How often a node with such heartbeats looks at itself: several times within everything that it looks for.
    pub(crate) fn watch_interval(&self, heartbeat_interval: Duration) -> Duration {
        let beat = heartbeat_interval / 4;
        let looks = self.life_interval().map_or(beat, |life| life.min(beat));
        looks.clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    pub(super) fn validate(&self) -> Result<()> {
        rule::bounded("eventLoopStallTimeoutMs", self.stall_timeout)?;
        rule::bounded("eventLoopHangTimeoutMs", self.hang_timeout)?;
        if !self.hang_timeout.is_zero() && self.stall_timeout >= self.hang_timeout {
            let rule = format!("less than eventLoopHangTimeoutMs ({})", self.hang_timeout.as_millis());
            return Err(invalid("eventLoopStallTimeoutMs", self.stall_timeout.as_millis(), rule));
        }
        Ok(())
    }
}

fn host_name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name =
        from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "host".to_owned())
}
