//! The port between the running rooms of an engine and what stores their work: one object for each session, one method
//! for each operation. Two stand behind it: PostgreSQL, and the model that the simulation runs on.
//!
//! Invariant: a method does what the function of the same name in this room says, with its outcomes and its errors; a
//! caller cannot tell who answers. Dropping a future half way means what it means for that function.

use std::{collections::HashSet, time::Duration};

use futures_util::future::BoxFuture;
use holdfast_replay::{Message, event::StoredEvent};

use crate::{
    error::Result,
    pool::CallerClass,
    store::{
        ActivityKey, Fence, NodeKey,
        activity::{Beat, ClaimedActivity, Lane, Terms},
        commit::{CommitItem, CommitOutcome},
        coverage::Ability,
        look::{Due, LookRequest},
        node::{Along, Heartbeat, HeartbeatTimes, NodeTimes, Swept},
        turn::{ClaimRequest, ClaimedTurn, Open, RenewRequest},
    },
};

/// The answer of an operation.
pub type Answer<'a, T> = BoxFuture<'a, Result<T>>;

/// What gives sessions.
pub trait Store: Send + Sync {
    /// A session for a short while; it goes back when it is dropped.
    fn acquire(&self, class: CallerClass) -> Answer<'_, Box<dyn StoreSession>>;

    /// A session of its own for the liveness loop, beside those of the pool.
    fn open_liveness(&self) -> Answer<'_, Box<dyn StoreSession>>;

    /// Whether a connection failed since the start.
    fn was_troubled(&self) -> bool;
}

/// A session: the operations of a running engine. Calls may be made side by side.
pub trait StoreSession: Send + Sync {
    /// No call can be made any more.
    fn is_broken(&self) -> bool;

    /// See [`crate::store::look::look`].
    fn look<'a>(&'a self, request: &'a LookRequest<'a>) -> Answer<'a, Due>;

    /// See [`crate::store::turn::claim`].
    fn claim_turns<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        handlers: &'a [String],
    ) -> Answer<'a, Vec<ClaimedTurn>>;

    /// See [`crate::store::activity::claim`].
    fn claim_activities<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        takes: &'a Terms<'a>,
        lane: Lane,
    ) -> Answer<'a, Vec<ClaimedActivity>>;

    /// See [`crate::store::turn::inbox`].
    fn inbox<'a>(
        &'a self,
        instances: &'a [String],
        limit: i64,
        bytes: i64,
    ) -> Answer<'a, Vec<(String, Result<Message>)>>;

    /// See [`crate::store::turn::history`].
    fn history<'a>(&'a self, keys: &'a [(String, i64)]) -> Answer<'a, Vec<(String, Result<StoredEvent>)>>;

    /// See [`crate::store::turn::cancels`].
    fn cancels<'a>(&'a self, instances: &'a [String]) -> Answer<'a, Vec<(String, Message)>>;

    /// See [`crate::store::turn::open`].
    fn open<'a>(&'a self, instance: &'a str, execution: i64) -> Answer<'a, Open>;

    /// See [`crate::store::commit::commit`].
    fn commit<'a>(&'a self, items: &'a [CommitItem], again: bool) -> Answer<'a, Vec<CommitOutcome>>;

    /// See [`crate::store::commit::locked`].
    fn locked<'a>(&'a self, instances: &'a [&'a str]) -> Answer<'a, HashSet<String>>;

    /// See [`crate::store::turn::renew`].
    fn renew_turns<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::activity::renew`].
    fn renew_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::turn::release`].
    fn release_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], delay_ms: i64) -> Answer<'a, u64>;

    /// See [`crate::store::activity::release`].
    fn release_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        delay_ms: i64,
    ) -> Answer<'a, u64>;

    /// See [`crate::store::turn::abandon`].
    fn abandon_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], at_once: bool) -> Answer<'a, u64>;

    /// See [`crate::store::turn::cut_off`].
    fn cut_off_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, u64>;

    /// See [`crate::store::activity::abandon`].
    fn abandon_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        at_once: bool,
    ) -> Answer<'a, u64>;

    /// See [`crate::store::turn::gone`].
    fn gone_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::activity::gone`].
    fn gone_activities<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::activity::taken`].
    fn taken<'a>(&'a self, tasks: &'a [(Fence, ActivityKey)]) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::node::release_unknown`].
    fn release_unknown<'a>(
        &'a self,
        node: &'a NodeKey,
        held_turns: &'a [Fence],
        held_activities: &'a [Fence],
        older_than: Duration,
    ) -> Answer<'a, u64>;

    /// See [`crate::store::activity::beat`].
    fn beat<'a>(&'a self, beats: &'a [Beat]) -> Answer<'a, Vec<Fence>>;

    /// See [`crate::store::node::register`].
    fn register<'a>(&'a self, id: &'a str, times: NodeTimes) -> Answer<'a, NodeKey>;

    /// See [`crate::store::node::heartbeat`].
    fn heartbeat<'a>(
        &'a self,
        node: &'a NodeKey,
        held: (&'a [Fence], &'a [Fence]),
        times: HeartbeatTimes,
        along: Along<'a>,
    ) -> Answer<'a, Heartbeat>;

    /// See [`crate::store::node::sweep`].
    fn sweep(&self) -> Answer<'_, Swept>;

    /// See [`crate::store::node::goodbye`].
    fn goodbye<'a>(&'a self, node: &'a NodeKey) -> Answer<'a, ()>;

    /// See [`crate::store::session::renew`].
    fn renew_sessions<'a>(
        &'a self,
        node: &'a NodeKey,
        in_use: &'a [String],
        timeout_ms: i64,
        idle_ms: i64,
    ) -> Answer<'a, usize>;

    /// See [`crate::store::session::sweep`].
    fn sweep_sessions(&self) -> Answer<'_, usize>;

    /// See [`crate::store::session::forget_message_keys`].
    fn forget_message_keys(&self) -> Answer<'_, usize>;

    /// See [`crate::store::coverage::publish`].
    fn publish<'a>(&'a self, node: &'a NodeKey, abilities: &'a [Ability<'a>]) -> Answer<'a, ()>;

    /// See [`crate::store::notify::send`].
    fn send_hint<'a>(&'a self, channel: &'a str, payload: &'a str) -> Answer<'a, ()>;
}
