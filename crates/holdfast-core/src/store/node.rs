//! Node rows: registration, heartbeat, recovery, goodbye. All of it runs on the liveness session.

use crate::{
    error::Result,
    pool::Session,
    store::{Fence, NodeKey, Statements},
};

/// What one heartbeat brings back; all of it in one round trip.
#[derive(Debug, Default)]
pub struct Heartbeat {
    /// False when the node row is gone: this node was declared dead.
    pub alive: bool,
    /// Held fences that are no longer this node's (cancelled, taken over, deleted), turns first.
    pub gone_turns: Vec<Fence>,
    /// The same for activities.
    pub gone_activities: Vec<Fence>,
    /// Rows owned by this node and epoch whose fence was not among the held ones and that are older than the
    /// claim's time limit: they were released, unstarted.
    pub released: u64,
    /// Ids of stale nodes that were deleted.
    pub recovered_nodes: Vec<String>,
    /// Leases that lost their dead owner.
    pub recovered_leases: u64,
}

/// Times of a heartbeat.
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatTimes {
    /// Other nodes older than this are stale.
    pub stale_after_ms: i64,
    /// An older epoch of the same explicitly configured id is stale after this; `None` when the id is not explicit.
    pub predecessor_stale_ms: Option<i64>,
    /// Unknown own leases older than this are released.
    pub claim_limit_ms: i64,
    /// False while the outage guard forbids to recover others.
    pub may_recover: bool,
}

/// Registers the node and returns its epoch. Also removes nothing: recovery is the heartbeat's.
pub async fn register(session: &Session, statements: &Statements, id: &str) -> Result<NodeKey>;

/// One heartbeat: stamps the node row, reports lost fences, releases unknown own leases and, when allowed, deletes stale
/// nodes and frees what dead owners hold (in bounded sweeps, until none is left; no queue table is touched when nobody
/// was stale and `full_sweep` is false).
pub async fn heartbeat(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    held_turns: &[Fence],
    held_activities: &[Fence],
    times: HeartbeatTimes,
    full_sweep: bool,
) -> Result<Heartbeat>;

/// Removes the node row; what it still owns is free at once (unstarted work keeps its count).
pub async fn goodbye(session: &Session, statements: &Statements, node: &NodeKey) -> Result<()>;
