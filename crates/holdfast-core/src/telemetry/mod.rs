//! What the engine counts, the pauses it makes, the errors it records, where log lines go.

mod backoff;
mod counters;
mod failure;
pub mod logging;

pub use backoff::{Backoff, unit};
pub use counters::{Counter, Counters, RunCounters};
pub use failure::{FailureClass, error_payload};
