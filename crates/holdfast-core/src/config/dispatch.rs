//! Slots, polling, and what a node claims.

use std::time::Duration;

use super::{
    ReplayVersions,
    rule::{self, invalid},
};
use crate::{error::Result, limits, store::TagFilter};

/// Slots, polling and what is claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchConfig {
    /// Turns in progress at once; 0 runs none here. Default: 2 × cores, at least 4.
    pub orchestration_concurrency: usize,
    /// Activities in progress at once; 0 runs none here. Default: 4 × cores, at least 8.
    pub worker_concurrency: usize,
    /// Shortest time between two empty claims. At least 1 ms. Default: 100 ms.
    pub poll_interval: Duration,
    /// Longest sleep when idle. Without a listener, work of other processes is looked for every second all the same (see
    /// `limits::POLL_WITHOUT_LISTENER`); a longer `poll_interval` wins over both. At least 1 ms. Default: 5 s.
    pub long_poll_timeout: Duration,
    /// First delay of an item whose handler or version this node lacks; doubles from there. Default: 1 s.
    pub unregistered_backoff_base: Duration,
    /// Longest such delay. Default: 60 s.
    pub unregistered_backoff_max: Duration,
    /// Which activities are taken, by tag: 1 to 5 tags of 1 to 256 bytes where it names some. A tagged activity that no
    /// live node takes waits. Default: those without a tag.
    pub worker_tag_filter: TagFilter,
    /// Versions of this package whose histories are replayed here. Default: up to this one.
    pub replay_versions: ReplayVersions,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            orchestration_concurrency: (2 * cores).max(4),
            worker_concurrency: (4 * cores).max(8),
            poll_interval: Duration::from_millis(100),
            long_poll_timeout: Duration::from_millis(5000),
            unregistered_backoff_base: Duration::from_secs(1),
            unregistered_backoff_max: Duration::from_secs(60),
            worker_tag_filter: TagFilter::default_only(),
            replay_versions: ReplayVersions::default(),
        }
    }
}

impl DispatchConfig {
    pub(super) fn validate(&self) -> Result<()> {
        rule::positive("dispatcherPollIntervalMs", self.poll_interval)?;
        rule::positive("dispatcherLongPollTimeoutMs", self.long_poll_timeout)?;
        rule::ordered(
            "unregisteredBackoffBaseMs",
            self.unregistered_backoff_base,
            "unregisteredBackoffMaxMs",
            self.unregistered_backoff_max,
        )?;
        check_tags(&self.worker_tag_filter)?;
        self.replay_versions.validate()
    }
}

fn check_tags(filter: &TagFilter) -> Result<()> {
    let (most, bytes) = (limits::MAX_TAGS, limits::MAX_TAG_BYTES);
    let bad = |tag: &String| tag.is_empty() || tag.len() > bytes || tag.contains('\0');
    if filter.tags.len() > most || filter.tags.iter().any(bad) {
        let rule = format!("1 to {most} tags of 1 to {bytes} bytes without NUL");
        return Err(invalid("workerTagFilter", format!("a list of {}", filter.tags.len()), rule));
    }
    Ok(())
}
