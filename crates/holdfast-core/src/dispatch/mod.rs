//! Dispatch: one claimer feeds all slots of a runtime.

mod claimer;
mod handlers;

pub(crate) use claimer::Claimer;
pub use handlers::{Handlers, OrchestrationHandler};
