//! Turns: claim → activation → commit of one instance.

mod cache;
mod commit;
mod flight;
mod handing_over;
mod keeping;
mod kept;
mod load;
mod local;
mod park;
mod runner;
mod settle;
mod tally;
mod tell;

pub(crate) use cache::{FrameCache, LiveFrame, Next, Proof};
pub(crate) use flight::{Flight, TurnTable};
pub(crate) use keeping::end_kept;
pub(crate) use runner::{ClaimedBatch, TurnRunner, TurnSetup};
