//! Dispatch: one claimer feeds all slots of a runtime.

mod claimer;
mod coverage;
mod gathering;
mod giving_back;
mod handlers;
mod latency;
mod lateness;
mod local;
mod pace;

pub(crate) use claimer::Claimer;
pub use handlers::{Handlers, OrchestrationHandler};
pub(crate) use local::FreeSlots;
