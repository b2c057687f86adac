//! The activity queue: claim, renew, release.

use crate::{
    error::Result,
    pool::Session,
    store::{
        ActivityKey, Fence, NodeKey, Statements,
        turn::{ClaimRequest, RenewRequest},
    },
};

/// One claimed activity task.
#[derive(Debug)]
pub struct ClaimedActivity {
    /// Its key.
    pub key: ActivityKey,
    /// The lease.
    pub fence: Fence,
    /// Claims of this row that were not given back, this one included.
    pub deliveries: i32,
    /// Beyond max attempts: to be ended, never delivered.
    pub poisoned: bool,
    /// Try of the retry policy, from 1.
    pub attempt: i32,
    /// Activity name.
    pub name: String,
    /// Input, JSON text.
    pub input: String,
    /// Retry policy, JSON text.
    pub retry: Option<String>,
    /// Time limit of one try, in ms.
    pub timeout_ms: Option<i64>,
    /// Routing tag.
    pub tag: Option<String>,
    /// Session.
    pub session: Option<String>,
    /// Name of the orchestration that scheduled it.
    pub orchestration_name: Option<String>,
    /// Its version.
    pub orchestration_version: Option<String>,
    /// When it was scheduled, ms since 1970.
    pub scheduled_at_ms: i64,
    /// Database time of the claim, ms since 1970.
    pub now_ms: i64,
}

/// Claims due activities of the given names without a tag.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    request: &ClaimRequest<'_>,
    names: &[String],
) -> Result<Vec<ClaimedActivity>>;

/// Renews held activity leases in one statement; returns the fences that were renewed.
pub async fn renew(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    request: &RenewRequest,
) -> Result<Vec<Fence>>;

/// Gives back tasks whose body has not started, with their delivery. A fence that matches nothing counts as done.
pub async fn release(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    delay_ms: i64,
) -> Result<u64>;
