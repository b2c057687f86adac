//! Activities: claim → body → result of one task.

mod flight;
mod handing_over;
mod job;
mod runner;
mod stopping;
mod sweeper;
mod tell;

pub(crate) use runner::{ActivityLimits, ActivityRunner, ClaimedTasks};
pub(crate) use sweeper::sweep;
