//! Bounds of one execution, and of the live frames kept between turns.

use holdfast_replay::limits::Limits;

use super::rule;
use crate::{error::Result, limits};

/// Live frames kept between turns.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheConfig {
    /// Frames kept; 0 replays every turn. Default: 1000.
    pub sticky_cache_size: usize,
    /// Bytes of encoded history behind the kept frames; 0 replays every turn. Default: 64 MiB.
    pub sticky_cache_bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { sticky_cache_size: 1000, sticky_cache_bytes: 64 * 1024 * 1024 }
    }
}

/// Bounds of one execution. What goes over one ends the execution, or refuses the call, before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Bytes of one input, output, event or error. 1 to 1 000 000 000. Default: 64 MiB.
    pub payload_byte_limit: usize,
    /// Events of one execution before a turn. 1 to 100 000 000. Default: 1 000 000.
    pub history_event_limit: usize,
    /// Bytes of history of one execution before a turn. 1 to 256 MiB. Default: 256 MiB.
    pub history_byte_limit: usize,
    /// Commands that one turn may give. 1 to 1 000 000. Default: 100 000.
    pub fan_out_limit: usize,
    /// Messages that nobody has read yet, of one instance. 1 to 1 000 000. Default: 100 000.
    pub mailbox_limit: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let bounds = Limits::default();
        Self {
            payload_byte_limit: limits::PAYLOAD_BYTES,
            history_event_limit: bounds.history_events,
            history_byte_limit: bounds.history_bytes,
            fan_out_limit: bounds.fan_out,
            mailbox_limit: bounds.mailbox,
        }
    }
}

impl LimitsConfig {
    /// The bounds as an execution takes them.
    pub(crate) fn of_execution(&self) -> Limits {
        Limits {
            history_events: self.history_event_limit,
            history_bytes: self.history_byte_limit,
            fan_out: self.fan_out_limit,
            mailbox: self.mailbox_limit,
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        rule::within("payloadByteLimit", self.payload_byte_limit, 1, limits::MAX_PAYLOAD_BYTES)?;
        rule::within("historyEventLimit", self.history_event_limit, 1, 100_000_000)?;
        rule::within("historyByteLimit", self.history_byte_limit, 1, Limits::default().history_bytes)?;
        rule::within("fanOutLimit", self.fan_out_limit, 1, 1_000_000)?;
        rule::within("mailboxLimit", self.mailbox_limit, 1, 1_000_000)
    }
}
