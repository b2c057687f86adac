//! Activities: claim → body → result of one task.

mod beats;
mod flight;
mod handing_over;
mod job;
mod rowless;
mod runner;
mod stopping;
mod tell;

pub(crate) use beats::keep_beats;
pub(crate) use flight::Suspects;
pub(crate) use runner::{ActivityLimits, ActivityRunner, ClaimedTasks, Ended};
