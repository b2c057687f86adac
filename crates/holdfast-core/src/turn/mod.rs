//! Turns: claim → activation → commit of one instance.

mod cache;
mod commit;
mod flight;
mod handing_over;
mod load;
mod park;
mod runner;
mod settle;
mod tally;
mod tell;

pub(crate) use cache::{FrameCache, LiveFrame, Proof};
pub(crate) use flight::{Flight, TurnTable};
pub(crate) use runner::{ClaimedBatch, TurnRunner, TurnSetup};
