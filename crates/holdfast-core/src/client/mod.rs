//! What clients ask for: start, send, look, wait. Works with and without a runtime in the process.

mod operations;
pub mod wire;

pub use operations::{Client, Sent, StartOutcome};
