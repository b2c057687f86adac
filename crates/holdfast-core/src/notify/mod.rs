//! Hints that something may be ready. A hint is never the truth: losing all of them costs one poll interval.

mod awaited;
mod waiters;
mod wakes;
mod watches;

pub use awaited::{Awaited, Instances, Standalone};
pub use waiters::Waiters;
pub use wakes::Wakes;
pub use watches::Watches;
