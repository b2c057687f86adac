//! The turn queue and the inbox: claim, load, renew, release.

use holdfast_replay::{ParentLink, event::StoredEvent, Message};

use crate::{
    error::Result,
    pool::Session,
    store::{Fence, NodeKey, Statements},
};

/// What a claim of turns or activities asks for.
#[derive(Debug)]
pub struct ClaimRequest<'a> {
    /// Who claims; the claim needs this node row.
    pub node: &'a NodeKey,
    /// Rows at most.
    pub limit: i64,
    /// Lease, in ms.
    pub lock_timeout_ms: i64,
    /// Backoff added to the lease by the number of deliveries: base × 2^(n−2) from the second on, capped.
    pub backoff_base_ms: i64,
    /// Cap of that backoff.
    pub backoff_max_ms: i64,
    /// Deliveries above this are poison.
    pub max_attempts: i32,
    /// True: claim one suspect (its owner died, or it is past its second delivery). False: claim only the others.
    pub isolated: bool,
    /// True for a while after a failed heartbeat: rows without an owner only.
    pub unowned_only: bool,
}

/// One claimed turn.
#[derive(Debug)]
pub struct ClaimedTurn {
    /// Instance id.
    pub instance: String,
    /// The lease.
    pub fence: Fence,
    /// Claims of this row that were not given back, this one included.
    pub deliveries: i32,
    /// Beyond max attempts: to be ended, never delivered.
    pub poisoned: bool,
    /// Orchestration name.
    pub name: String,
    /// Version, once the first turn has chosen it (or the start named it).
    pub version: Option<String>,
    /// Current execution.
    pub execution: i64,
    /// Events recorded of it.
    pub history_len: i32,
    /// Fence of the last settled turn; with execution and history length it proves a live frame.
    pub last_fence: Fence,
    /// Present when history_len is 0: what the execution starts from.
    pub start: Option<TurnStart>,
    /// Who waits for the end.
    pub parent: Option<ParentLink>,
    /// Database time of the claim, ms since 1970.
    pub now_ms: i64,
}

/// What an execution without history starts from.
#[derive(Debug)]
pub struct TurnStart {
    /// Input, JSON text.
    pub input: String,
    /// JSON array of carried messages, when the predecessor left any.
    pub carried: Option<String>,
    /// Custom status of the predecessor.
    pub custom_status: Option<String>,
}

/// Claims due turns of the named orchestrations. `names` holds names (used while no version is fixed), `handlers`
/// holds `name@version`.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    request: &ClaimRequest<'_>,
    names: &[String],
    handlers: &[String],
) -> Result<Vec<ClaimedTurn>>;

/// Due messages of the given instances, in id order per instance, at most `limit` each.
pub async fn inbox(
    session: &Session,
    statements: &Statements,
    instances: &[String],
    limit: i64,
) -> Result<Vec<(String, Message)>>;

/// History of the given (instance, execution) pairs, in order.
pub async fn history(
    session: &Session,
    statements: &Statements,
    keys: &[(String, i64)],
) -> Result<Vec<(String, StoredEvent)>>;

/// Renews held turn leases in one statement; returns the fences that were renewed.
pub async fn renew(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    request: &RenewRequest,
) -> Result<Vec<Fence>>;

/// Lease lengths of a renewal: due becomes the greater of itself and now + timeout + backoff(deliveries).
#[derive(Debug, Clone, Copy)]
pub struct RenewRequest {
    /// Lease, in ms.
    pub lock_timeout_ms: i64,
    /// As in [`ClaimRequest`].
    pub backoff_base_ms: i64,
    /// As in [`ClaimRequest`].
    pub backoff_max_ms: i64,
}

/// Gives back turns whose body has not started, with their delivery. A fence that matches nothing counts as done.
pub async fn release(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    delay_ms: i64,
) -> Result<u64>;

/// When the next turn or activity is due, in ms from now; `None` when nothing is waiting. Bounded index look-ups.
pub async fn next_due(session: &Session, statements: &Statements) -> Result<Option<i64>>;
