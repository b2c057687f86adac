//! Liveness: the node row, heartbeats, renewals, recovery and goodbye, on a session and a thread of their own.
//!
//! Neither a saturated pool, a busy core nor a blocked JavaScript loop delays them.

mod along;
mod body;
mod outage;
mod pulse;
mod standing;
mod tell;
mod thread;
mod watch;
mod watchdog;

pub(crate) use along::{LookAlong, Wish};
pub(crate) use outage::Outage;
pub(crate) use pulse::Pulse;
pub(crate) use standing::{Claiming, Standing};
pub(crate) use thread::{Liveness, LivenessEvents, Node};
pub(crate) use watch::LoopLife;
pub(crate) use watchdog::LoopState;
