//! Hints that something may be ready. A hint is never the truth: losing all of them costs one poll interval.

mod awaited;
mod backoff;
mod bell;
mod ear;
mod hints;
mod hub;
mod hubs;
mod local;
mod places;
mod presence;
mod proof;
mod sender;
mod spread;
mod user;
mod waiters;
mod wakes;
mod watches;

pub use awaited::{Awaited, Instances, Standalone};
pub use bell::{Bell, Ring};
pub use hints::{Hints, ListenerMode};
pub use hub::{HubKey, HubState, Subscriber};
pub use hubs::{HubLease, Hubs, Opening};
pub use local::LocalSlots;
pub use user::HintUser;
pub use waiters::Waiters;
pub use wakes::Wakes;
pub use watches::Watches;
