//! Lists of instances, one stretch of an index for each call.
//!
//! A stretch is bounded in what it reads, whatever the filters keep of it; the answer says where it ends.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    pool::{Row, Session},
    store::{Statements, queue::single, row::column},
};

/// Which instances are wanted; what is `None` is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// One of these statuses, as stored.
    pub statuses: Option<Vec<String>>,
    /// Orchestration name.
    pub name: Option<String>,
    /// Exact version.
    pub version: Option<String>,
    /// Parked or not.
    pub parked: Option<bool>,
    /// Code of the error.
    pub error_code: Option<String>,
    /// Label given at the start.
    pub tag: Option<String>,
    /// Id of the parent.
    pub parent: Option<String>,
    /// How the id begins.
    pub id_prefix: Option<String>,
    /// Made after this time, ms since 1970.
    pub created_after_ms: Option<i64>,
    /// Made before this time, ms since 1970.
    pub created_before_ms: Option<i64>,
}

/// Which instances without a parent are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootFilter {
    /// Only those that have ended.
    pub ended: bool,
    /// Ended before this time, ms since 1970.
    pub finished_before_ms: Option<i64>,
}

/// A place in the order of creation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Ms since 1970.
    pub created_at_ms: i64,
    /// Instance id.
    pub instance: String,
}

/// A listed instance: no payloads.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the same fields as in InstanceRow")]
pub struct ListedRow {
    pub instance: String,
    pub name: String,
    pub version: Option<String>,
    pub execution: i64,
    pub status: String,
    pub error_code: Option<String>,
    pub parked_at_ms: Option<i64>,
    pub tag: Option<String>,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub parent: Option<String>,
}

/// What one stretch held.
#[derive(Debug)]
pub struct Stretch<T> {
    /// What passed the filters, in order.
    pub found: Vec<T>,
    /// Where to go on when `found` is not full; `None` at the end.
    pub end: Option<Position>,
}

/// Instances from a place on, newest first: at most `limit` of the next `stretch` rows.
pub async fn list(
    session: &Session,
    statements: &Statements,
    filter: &Filter,
    before: Option<&Position>,
    limit: i64,
    stretch: i64,
) -> Result<Stretch<ListedRow>> {
    let start = filter.created_before_ms.map(|at| (at, None));
    let start = match (before.map(|place| (place.created_at_ms, Some(place.instance.as_str()))), start) {
        (Some(place), Some(start)) => Some(place.min(start)),
        (place, start) => place.or(start),
    };
    let (start_ms, start_id) = (start.map(|(at, _)| at), start.and_then(|(_, id)| id));
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![
        &filter.statuses,
        &filter.name,
        &filter.version,
        &filter.id_prefix,
        &filter.created_after_ms,
        &start_ms,
        &start_id,
        &limit,
        &stretch,
        &filter.parked,
        &filter.error_code,
        &filter.tag,
    ];
    let statement = if filter.parent.is_some() {
        params.push(&filter.parent);
        &statements.manage_list_children
    } else {
        &statements.manage_list
    };
    stretch_of(&single(session, statements, statement, &params).await?, stretch, listed_row)
}

/// Ids of instances without a parent from a place on, oldest first: at most `limit` of the next `stretch` rows.
pub async fn roots(
    session: &Session,
    statements: &Statements,
    filter: RootFilter,
    after: Option<&Position>,
    limit: i64,
    stretch: i64,
) -> Result<Stretch<Position>> {
    let params: [&(dyn ToSql + Sync); 6] = [
        &filter.ended,
        &filter.finished_before_ms,
        &after.map(|place| place.created_at_ms),
        &after.map(|place| place.instance.as_str()),
        &limit,
        &stretch,
    ];
    let rows = single(session, statements, &statements.manage_list_roots, &params).await?;
    stretch_of(&rows, stretch, |row| {
        Ok(Position { created_at_ms: column(row, "created_at_ms")?, instance: column(row, "instance")? })
    })
}

/// Those of the given ids that have no parent and pass, in the order given.
pub async fn pick_roots(
    session: &Session,
    statements: &Statements,
    ids: &[String],
    filter: RootFilter,
) -> Result<Vec<String>> {
    let params: [&(dyn ToSql + Sync); 3] = [&ids, &filter.ended, &filter.finished_before_ms];
    let rows = single(session, statements, &statements.manage_pick_roots, &params).await?;
    rows.iter().map(|row| column(row, "instance")).collect()
}

fn stretch_of<T>(rows: &[Row], stretch: i64, read: impl Fn(&Row) -> Result<T>) -> Result<Stretch<T>> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if column::<Option<&str>>(row, "instance")?.is_some() {
            found.push(read(row)?);
        }
    }
    let end = match rows.first() {
        Some(row) if column::<i64>(row, "seen")? >= stretch => {
            Some(Position { created_at_ms: column(row, "tail_ms")?, instance: column(row, "tail_instance")? })
        }
        _ => None,
    };
    Ok(Stretch { found, end })
}

fn listed_row(row: &Row) -> Result<ListedRow> {
    Ok(ListedRow {
        instance: column(row, "instance")?,
        name: column(row, "name")?,
        version: column(row, "version")?,
        execution: column(row, "execution")?,
        status: column(row, "status")?,
        error_code: column(row, "error_code")?,
        parked_at_ms: column(row, "parked_at_ms")?,
        tag: column(row, "tag")?,
        created_at_ms: column(row, "created_at_ms")?,
        updated_at_ms: column(row, "updated_at_ms")?,
        parent: column(row, "parent_instance")?,
    })
}
