//! Group commit: whatever is ready when a session becomes free goes in one transaction.
//!
//! Idle means immediate, busy means large batches; there is no fixed delay. One bad item never fails its neighbours: a
//! batch refused by the server is split until the culprit stands alone.

mod aside;
mod committer;
mod locked_rows;
mod nap;
mod queue;
mod riders;
mod told;

pub use committer::{Committer, Settled};
