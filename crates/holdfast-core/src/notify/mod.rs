//! Hints that something may be ready. A hint is never the truth: losing all of them costs one poll interval.

mod waiters;
mod wakes;

pub use waiters::Waiters;
pub use wakes::Wakes;
