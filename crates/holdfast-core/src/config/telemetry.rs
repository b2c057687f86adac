//! What is told to the outside.

use std::time::Duration;

use super::rule;
use crate::{error::Result, telemetry::logging::LogFormat};

/// Longest service name or version: it is on every line.
const MAX_SERVICE_BYTES: usize = 256;

/// From which level on log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What cannot go on.
    Error,
    /// What somebody may act upon.
    Warn,
    /// Changes of state.
    #[default]
    Info,
    /// Branches taken.
    Debug,
    /// Every item.
    Trace,
}

/// What is told to the outside.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryConfig {
    /// How a log line is written. Default: compact.
    pub log_format: LogFormat,
    /// From which level on log lines are written. Default: info.
    pub log_level: LogLevel,
    /// Name of the service in logs and metrics, 1 to 256 bytes. Default: `holdfast`.
    pub service_name: String,
    /// Its version, 1 to 256 bytes. Default: none.
    pub service_version: Option<String>,
    /// Time between two looks at the depths of the queues. At least 1 ms. Default: 60 s.
    pub gauge_poll_interval: Duration,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::default(),
            log_level: LogLevel::default(),
            service_name: "holdfast".to_owned(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        }
    }
}

impl TelemetryConfig {
    pub(super) fn validate(&self) -> Result<()> {
        rule::text("serviceName", &self.service_name, MAX_SERVICE_BYTES)?;
        if let Some(version) = &self.service_version {
            rule::text("serviceVersion", version, MAX_SERVICE_BYTES)?;
        }
        rule::positive("gaugePollIntervalMs", self.gauge_poll_interval)
    }
}
