//! Standalone activities as clients ask for them: look, wait, cancel, try again, delete, list.
//!
//! They live in the activity queue under execution 0 and event 0, and in a table of their own once they have ended. Queuing
//! and ending them are parts of the commit batch. Each function here is one statement; none decides anything.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    pool::{Row, Session},
    store::{Statements, queue::single, row::column},
};

/// How a standalone activity stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandaloneRow {
    /// Its id.
    pub id: String,
    /// Activity name.
    pub name: String,
    /// `Pending`, `Running`, `Completed`, `Failed`, `Poisoned` or `Cancelled`.
    pub status: String,
    /// Try of its retry policy, from 1.
    pub attempt: i32,
    /// Claims of this try that were not given back.
    pub deliveries: i32,
    /// Routing tag.
    pub tag: Option<String>,
    /// The node that runs it.
    pub node: Option<String>,
    /// What its body told last, JSON text.
    pub heartbeat: Option<String>,
    /// When it told that, ms since 1970.
    pub heartbeat_at_ms: Option<i64>,
    /// When it was to start first, ms since 1970.
    pub scheduled_at_ms: i64,
    /// When it can be claimed; while it runs, when its lease ends.
    pub due_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// Its result, or its error, JSON text. A list leaves results out.
    pub result: Option<String>,
}

/// Which standalone activities are wanted; what is `None` is not asked for.
#[derive(Debug, Clone, Default)]
pub struct StandaloneFilter {
    /// Exactly this status.
    pub status: Option<String>,
    /// Activity name.
    pub name: Option<String>,
    /// Routing tag.
    pub tag: Option<String>,
    /// How the id begins.
    pub id_prefix: Option<String>,
}

/// Where the rows of a list come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The activity queue.
    Queued,
    /// Those that have ended.
    Ended,
}

/// What one stretch of a list held.
#[derive(Debug)]
pub struct StandaloneStretch {
    /// What passed the filters, by id.
    pub found: Vec<StandaloneRow>,
    /// The last id that was read, when there may be more behind it.
    pub end: Option<String>,
}

/// The given standalone activities; unknown ids are left out.
pub async fn get(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<StandaloneRow>> {
    session.query(&statements.standalone_get, &[&ids]).await?.iter().map(standalone_row).collect()
}

/// Those of the given ids that have not ended, for waiters; and those of them that would not stay for `keep_ms` once they
/// have.
pub async fn open(
    session: &Session,
    statements: &Statements,
    ids: &[String],
    keep_ms: i64,
) -> Result<(Vec<String>, Vec<String>)> {
    let rows = session.query(&statements.standalone_list_open, &[&ids, &keep_ms]).await?;
    let (mut open, mut fleeting) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let id: String = column(row, "instance")?;
        if !column::<bool>(row, "stays")? {
            fleeting.push(id.clone());
        }
        open.push(id);
    }
    Ok((open, fleeting))
}

/// Which of the given tasks exist with the same name and input; `None` for one that does not exist.
pub async fn compare(
    session: &Session,
    statements: &Statements,
    ids: &[&str],
    names: &[&str],
    inputs: &[&str],
) -> Result<Vec<Option<bool>>> {
    let rows = session.query(&statements.standalone_compare, &[&ids, &names, &inputs]).await?;
    let mut same = vec![None; ids.len()];
    for row in &rows {
        let ix: i64 = column(row, "ix")?;
        if let Some(place) = usize::try_from(ix - 1).ok().and_then(|index| same.get_mut(index)) {
            *place = column(row, "same")?;
        }
    }
    Ok(same)
}

/// Makes tasks that have not ended stay for at least this long once they have.
pub async fn want(session: &Session, statements: &Statements, ids: &[String], keep_ms: i64) -> Result<()> {
    single(session, statements, &statements.standalone_want, &[&ids, &keep_ms]).await.map(drop)
}

/// Cancels a task that has not ended; false when there is none.
pub async fn cancel(
    session: &Session,
    statements: &Statements,
    id: &str,
    error: &str,
    keep_ms: i64,
) -> Result<bool> {
    let rows = single(session, statements, &statements.standalone_cancel, &[&id, &error, &keep_ms]).await?;
    Ok(!rows.is_empty())
}

/// Queues a task anew that ended without success; false when there is none.
pub async fn retry(session: &Session, statements: &Statements, id: &str) -> Result<bool> {
    let rows = single(session, statements, &statements.standalone_retry, &[&id]).await?;
    Ok(!rows.is_empty())
}

/// Forgets a task that has ended; false when there is none.
pub async fn delete(session: &Session, statements: &Statements, id: &str) -> Result<bool> {
    let rows = single(session, statements, &statements.standalone_delete, &[&id]).await?;
    Ok(!rows.is_empty())
}

/// Deletes ended tasks that were kept long enough, at most `limit`; returns how many.
pub async fn sweep(session: &Session, statements: &Statements, limit: i64) -> Result<usize> {
    Ok(single(session, statements, &statements.standalone_sweep, &[&limit]).await?.len())
}

/// Tasks behind an id, in the order of ids: at most `limit` of the next `stretch` rows.
pub async fn list(
    session: &Session,
    statements: &Statements,
    source: Source,
    filter: &StandaloneFilter,
    after: Option<&str>,
    (limit, stretch): (i64, i64),
) -> Result<StandaloneStretch> {
    let statement = match source {
        Source::Queued => &statements.standalone_list_queued,
        Source::Ended => &statements.standalone_list_ended,
    };
    let StandaloneFilter { status, name, tag, id_prefix } = filter;
    let params: [&(dyn ToSql + Sync); 7] = [&after, id_prefix, name, tag, &limit, &stretch, status];
    let rows = single(session, statements, statement, &params).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        if column::<Option<&str>>(row, "id")?.is_some() {
            found.push(standalone_row(row)?);
        }
    }
    let end = match rows.first() {
        // A full answer ends at its last row, whatever the stretch held behind it.
        Some(_) if found.len() as i64 >= limit => found.last().map(|row| row.id.clone()),
        Some(row) if column::<i64>(row, "seen")? >= stretch => column(row, "tail_id")?,
        _ => None,
    };
    Ok(StandaloneStretch { found, end })
}

fn standalone_row(row: &Row) -> Result<StandaloneRow> {
    Ok(StandaloneRow {
        id: column(row, "id")?,
        name: column(row, "name")?,
        status: column(row, "status")?,
        attempt: column(row, "attempt")?,
        deliveries: column(row, "deliveries")?,
        tag: column(row, "tag")?,
        node: column(row, "node")?,
        heartbeat: column(row, "heartbeat")?,
        heartbeat_at_ms: column(row, "heartbeat_at_ms")?,
        scheduled_at_ms: column(row, "scheduled_at_ms")?,
        due_at_ms: column(row, "due_at_ms")?,
        ended_at_ms: column(row, "ended_at_ms")?,
        result: column(row, "result")?,
    })
}
