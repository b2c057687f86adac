//! What was kept long enough: whose turn it is to throw it away, and messages for instances that were never started.
//!
//! Batches are bounded. Dropping takes the turn rows first, as every commit does.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    limits,
    pool::Session,
    store::{Statements, manage::only, queue::single, row::column},
};

/// Something that one node at a time does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// Deletes instances that have ended.
    Ended,
    /// Drops messages for instances that were never started.
    Unknown,
}

impl Chore {
    fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

/// Turn rows that messages made for instances that were never started.
#[derive(Debug)]
pub struct Unknown {
    /// Their instances.
    pub instances: Vec<String>,
    /// Where to go on; `None` at the end.
    pub end: Option<String>,
}

/// What was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Messages.
    pub messages: i64,
    /// Instances that they were for.
    pub instances: i64,
    /// One of these.
    pub example: Option<String>,
}

/// Takes a chore for a while: the time, ms since 1970, before which it is about what is older than this. `None` when another
/// node has it, or had it within that while.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    chore: Chore,
    for_ms: i64,
    older_than_ms: i64,
) -> Result<Option<i64>> {
    let params: [&(dyn ToSql + Sync); 3] = [&chore.name(), &for_ms, &older_than_ms];
    let rows = single(session, statements, &statements.sweep_claim, &params).await?;
    rows.first().map(|row| column(row, "before_ms")).transpose()
}

/// Of the next [`limits::LIST_STRETCH`] turn rows behind an instance those that were made before this time, ms since 1970, and
/// never started.
pub async fn unknown(
    session: &Session,
    statements: &Statements,
    after: Option<&str>,
    before_ms: i64,
) -> Result<Unknown> {
    let params: [&(dyn ToSql + Sync); 3] = [&after, &before_ms, &limits::LIST_STRETCH];
    let rows = single(session, statements, &statements.sweep_list_unknown, &params).await?;
    let mut instances = Vec::new();
    for row in &rows {
        instances.extend(column::<Option<String>>(row, "instance")?);
    }
    let tail = only(&rows, "list unknown instances")?;
    let full = column::<i64>(tail, "seen")? >= limits::LIST_STRETCH;
    Ok(Unknown { instances, end: if full { column(tail, "tail_instance")? } else { None } })
}

/// Drops the messages of these instances that came before this time, ms since 1970, unless one was started meanwhile. Dropped half
/// way it may have happened.
pub async fn drop_unknown(
    session: &Session,
    statements: &Statements,
    instances: &[String],
    before_ms: i64,
) -> Result<Dropped> {
    let session = session.with_limit(limits::DELETE_LIMIT);
    let answers = session
        .transaction(
            &statements.settings,
            &[
                (&statements.manage_lock_tree, &[&instances]),
                (&statements.sweep_drop_unknown, &[&instances, &before_ms]),
            ],
        )
        .await?;
    let row = only(answers.last().map_or(&[], Vec::as_slice), "drop messages")?;
    Ok(Dropped {
        messages: column(row, "messages")?,
        instances: column(row, "instances")?,
        example: column(row, "first")?,
    })
}
