//! What operators ask of one database and schema: lists, looks, deleting, pruning. Works without a runtime.

mod listing;
mod operations;
mod removal;
pub mod wire;

pub use self::{listing::Page, operations::Manager, removal::Retention};
