//! Activities: claim → body → result of one task.

mod flight;
mod job;
mod runner;
mod tell;

pub(crate) use runner::{ActivityLimits, ActivityRunner, ClaimedTasks};
