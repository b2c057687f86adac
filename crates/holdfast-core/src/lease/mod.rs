//! Leases held by this node: which fences, until when, when each is to be renewed, and which go back.

mod adoption;
mod handover;
mod keeper;
mod returns;
mod schedule;
mod unregistered;

pub use adoption::Adoption;
pub use handover::{Reserved, ReservedStart, Starters, TakesResults, TakesStarts, TakesTasks};
pub use keeper::{Keeper, Kind};
pub use returns::{Return, Returned, Returns};
pub use schedule::{BUFFER_APPLIES_FROM, LeaseTimes};
pub use unregistered::Unregistered;
