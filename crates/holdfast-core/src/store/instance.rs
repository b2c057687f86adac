//! Instance rows as clients read them.
//!
//! Plain reads without locks. It never changes a row.

use holdfast_replay::event::StoredEvent;

use crate::{
    error::Result,
    pool::{Row, Session},
    store::{Statements, history::unpack, row::column},
};

/// An instance as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Code of the error.
    pub error_code: Option<String>,
    /// Ms since 1970, while it is parked; its status is `Failed` then.
    pub parked_at_ms: Option<i64>,
    /// Label given at the start.
    pub tag: Option<String>,
    pub custom_status: Option<String>,
    pub custom_status_version: i64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub parent: Option<String>,
}

/// The given instances; unknown ids are left out.
pub async fn get(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<InstanceRow>> {
    session.query(&statements.instance_get, &[&ids]).await?.iter().map(instance_row).collect()
}

/// Those of the given ids that have ended or are parked, for waiters: one index look-up each.
pub async fn ended(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<InstanceRow>> {
    session.query(&statements.instance_list_ended, &[&ids]).await?.iter().map(instance_row).collect()
}

/// History of one execution as stored.
pub async fn read_history(
    session: &Session,
    statements: &Statements,
    instance: &str,
    execution: i64,
) -> Result<Vec<StoredEvent>> {
    let rows = session.query(&statements.instance_read_history, &[&instance, &execution]).await?;
    let mut recorded = Vec::with_capacity(rows.len());
    for row in &rows {
        recorded.extend(unpack(row)?);
    }
    Ok(recorded)
}

pub(super) fn instance_row(row: &Row) -> Result<InstanceRow> {
    Ok(InstanceRow {
        instance: column(row, "instance")?,
        name: column(row, "name")?,
        version: column(row, "version")?,
        execution: column(row, "execution")?,
        status: column(row, "status")?,
        output: column(row, "output")?,
        error: column(row, "error")?,
        error_code: column(row, "error_code")?,
        parked_at_ms: column(row, "parked_at_ms")?,
        tag: column(row, "tag")?,
        custom_status: column(row, "custom_status")?,
        custom_status_version: column(row, "custom_status_version")?,
        created_at_ms: column(row, "created_at_ms")?,
        updated_at_ms: column(row, "updated_at_ms")?,
        parent: column(row, "parent_instance")?,
    })
}

/// Values that an instance keeps, by key: that of one key, or all.
pub async fn values(
    session: &Session,
    statements: &Statements,
    instance: &str,
    key: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let rows = session.query(&statements.instance_read_values, &[&instance, &key]).await?;
    rows.iter().map(|row| Ok((column(row, "key")?, column(row, "value")?))).collect()
}
