//! Liveness: the node row, heartbeats, renewals, recovery and goodbye, on a session and a thread of their own.
//!
//! Neither a saturated pool, a busy core nor a blocked JavaScript loop delays them.

mod pulse;
mod thread;

pub(crate) use pulse::Pulse;
pub(crate) use thread::{Liveness, LivenessEvents};
