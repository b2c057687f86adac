//! What clients ask for: start, send, look, wait. Works with and without a runtime in the process.

mod operations;
mod standalone;
pub mod standalone_wire;
pub mod wire;

pub use operations::{Client, Sent, StartOutcome};
pub use standalone::{Enqueued, StandaloneClient, StandaloneEnd, StandalonePage};
