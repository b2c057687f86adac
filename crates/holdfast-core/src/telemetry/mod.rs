//! What the engine counts and tells, the pauses it makes, the errors it records, where log lines go.

mod backoff;
mod counters;
mod events;
mod failure;
pub mod logging;

pub use backoff::{Backoff, unit};
pub use counters::{Counter, Counters, RunCounters};
pub use events::{Audience, Bell, Event, Events, Level};
pub use failure::{FailureClass, error_payload};
