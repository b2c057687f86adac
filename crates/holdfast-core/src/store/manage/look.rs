//! Looks at one instance, its tree and executions, and at the whole schema.
//!
//! Plain reads without locks, by index except for the counts of everything.

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{Row, Session},
    store::{Statements, queue::single, row::column},
};

/// One execution.
#[derive(Debug, Clone)]
pub struct ExecutionRow {
    /// As of an instance, or `ContinuedAsNew`.
    pub status: String,
    /// JSON text.
    pub output: Option<String>,
    /// Ms since 1970.
    pub started_at_ms: i64,
    /// Ms since 1970.
    pub finished_at_ms: Option<i64>,
    /// Events recorded.
    pub events: i32,
}

/// A member of a tree.
#[derive(Debug, Clone)]
pub struct TreeRow {
    /// Instance id.
    pub instance: String,
    /// Its parent.
    pub parent: Option<String>,
    /// Whether it has ended.
    pub ended: bool,
    /// When it was made, µs since 1970; with the id it names one life of the id.
    pub created_at_us: i64,
}

/// Size of the current execution of an instance.
#[derive(Debug, Clone)]
pub struct StatsRow {
    /// JSON of what was carried into it.
    pub carried: Option<String>,
    /// Events recorded.
    pub events: i64,
    /// Bytes of their data.
    pub bytes: i64,
    /// Keys of kept values.
    pub keys: i64,
    /// Bytes of the values.
    pub value_bytes: i64,
}

/// Counts of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct MetricsRow {
    pub instances: i64,
    pub executions: i64,
    /// Not ended.
    pub running: i64,
    pub completed: i64,
    /// Cancelled ones included.
    pub failed: i64,
    pub events: i64,
}

/// What could be claimed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct DepthsRow {
    pub turns: i64,
    pub activities: i64,
}

/// One execution, if there is one.
pub async fn execution(
    session: &Session,
    statements: &Statements,
    instance: &str,
    execution: i64,
) -> Result<Option<ExecutionRow>> {
    let rows =
        single(session, statements, &statements.manage_get_execution, &[&instance, &execution]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(ExecutionRow {
        status: column(row, "status")?,
        output: column(row, "output")?,
        started_at_ms: column(row, "started_at_ms")?,
        finished_at_ms: column(row, "finished_at_ms")?,
        events: column(row, "events")?,
    }))
}

/// Numbers of the executions of an instance, ascending; none when there is no such instance.
pub async fn executions(session: &Session, statements: &Statements, instance: &str) -> Result<Vec<i64>> {
    let rows = single(session, statements, &statements.manage_list_executions, &[&instance]).await?;
    rows.iter().map(|row| column(row, "execution")).collect()
}

/// An instance and its descendants; none when there is no such instance.
pub async fn tree(session: &Session, statements: &Statements, root: &str) -> Result<Vec<TreeRow>> {
    let rows = single(session, statements, &statements.manage_tree, &[&root]).await?;
    rows.iter()
        .map(|row| {
            Ok(TreeRow {
                instance: column(row, "instance")?,
                parent: column(row, "parent_instance")?,
                ended: column(row, "ended")?,
                created_at_us: column(row, "created_at_us")?,
            })
        })
        .collect()
}

/// Size of the current execution of an instance, if there is one.
pub async fn stats(session: &Session, statements: &Statements, instance: &str) -> Result<Option<StatsRow>> {
    let rows = single(session, statements, &statements.manage_read_stats, &[&instance]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(StatsRow {
        carried: column(row, "carried")?,
        events: column(row, "events")?,
        bytes: column(row, "bytes")?,
        keys: column(row, "keys")?,
        value_bytes: column(row, "value_bytes")?,
    }))
}

/// Counts of everything; reads whole tables.
pub async fn metrics(session: &Session, statements: &Statements) -> Result<MetricsRow> {
    let rows = session.query(&statements.manage_read_metrics, &[]).await?;
    let row = only(&rows, "count instances")?;
    Ok(MetricsRow {
        instances: column(row, "total")?,
        executions: column(row, "executions")?,
        running: column(row, "running")?,
        completed: column(row, "completed")?,
        failed: column(row, "failed")?,
        events: column(row, "events")?,
    })
}

/// What could be claimed now.
pub async fn depths(session: &Session, statements: &Statements) -> Result<DepthsRow> {
    let rows = single(session, statements, &statements.manage_read_depths, &[]).await?;
    let row = only(&rows, "count due work")?;
    Ok(DepthsRow { turns: column(row, "turns")?, activities: column(row, "activities")? })
}

/// The one row of a statement that always has one.
pub(in crate::store) fn only<'a>(rows: &'a [Row], what: &str) -> Result<&'a Row> {
    rows.first().ok_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: no row")))
}
