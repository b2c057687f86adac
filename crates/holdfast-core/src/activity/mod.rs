//! Activities: claim → body → result of one task.

mod flight;
mod job;
mod runner;

pub(crate) use runner::{ActivityLimits, ActivityRunner, ClaimedTasks};
