//! Instance rows as clients read them.

use holdfast_replay::event::StoredEvent;

use crate::{error::Result, pool::Session, store::Statements};

/// An instance as a client sees it.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct InstanceRow {
    pub instance: String,
    pub name: String,
    pub version: Option<String>,
    pub execution: i64,
    /// `Pending`, `Running`, `Completed`, `Failed` or `Cancelled`.
    pub status: String,
    /// JSON text.
    pub output: Option<String>,
    /// JSON text.
    pub error: Option<String>,
    pub custom_status: Option<String>,
    pub custom_status_version: i64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub parent: Option<String>,
}

/// The given instances; unknown ids are left out.
pub async fn get(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<InstanceRow>>;

/// Those of the given ids that have ended, for waiters: one index look-up each, no payload.
pub async fn ended(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<String>>;

/// History of one execution as stored.
pub async fn read_history(
    session: &Session,
    statements: &Statements,
    instance: &str,
    execution: i64,
) -> Result<Vec<StoredEvent>>;
