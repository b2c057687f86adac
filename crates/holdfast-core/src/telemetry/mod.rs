//! What the engine counts and tells, the pauses it makes, the errors it records, the signs of life of its parts, where log
//! lines go.

mod backoff;
mod counters;
mod events;
mod failure;
mod gauges;
pub mod logging;
mod progress;

pub(crate) use crate::chance::unit;
pub use backoff::Backoff;
pub use counters::{Counter, Counters, RunCounters};
pub use events::{Audience, Bell, Event, Events, Level};
pub use failure::{FailureClass, error_payload};
pub use gauges::{Depths, Gauges};
pub use progress::Progress;
