//! What is stored and how: one typed function for each statement, one file for each table family.
//!
//! No other room knows SQL. Functions take a session of the pool, return plain rows, and decide nothing.

pub mod activity;
mod batched;
pub mod commit;
pub mod coverage;
pub mod doctor;
mod history;
pub mod instance;
pub mod look;
mod low_water;
pub mod manage;
pub(crate) mod message;
pub mod migrate;
pub mod node;
pub mod notify;
mod port;
mod postgres;
mod queue;
pub mod replay_version;
mod row;
pub mod session;
pub mod standalone;
mod statements;
pub mod sweep;
mod tags;
pub mod turn;

pub use port::{Answer, Store, StoreSession};
pub use postgres::PostgresStore;
#[cfg(any(test, feature = "sim"))]
pub(crate) use postgres::over;
pub use statements::Statements;
pub use tags::TagFilter;

/// A running runtime: one row, one owner of leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeKey {
    /// Stable identity: host and process, or the configured id.
    pub id: String,
    /// Rises with every registration; never used twice.
    pub epoch: i64,
}

/// The number minted by a claim; every write under the lease carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub i64);

/// The key of an activity task. A standalone activity has execution 0 and event 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActivityKey {
    /// Instance id (or the id of the standalone activity).
    pub instance: String,
    /// Execution that scheduled it.
    pub execution: i64,
    /// The scheduling event.
    pub event: i32,
}
