//! What the engine counts, the pauses it makes, the errors it records.

mod backoff;
mod counters;
mod failure;

pub use backoff::{Backoff, unit};
pub use counters::{Counter, Counters};
pub use failure::error_payload;
