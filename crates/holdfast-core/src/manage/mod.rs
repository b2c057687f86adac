//! What operators ask of one database and schema: lists, looks, resuming, deleting, pruning. Works without a runtime.

mod explaining;
mod listing;
mod operations;
mod removal;
mod resuming;
mod retrying;
pub mod wire;

pub use self::{
    explaining::{Explanation, Waiting},
    listing::Page,
    operations::Manager,
    removal::Retention,
};
