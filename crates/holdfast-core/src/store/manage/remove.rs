//! Deleting trees and pruning executions.
//!
//! A tree goes in one transaction that locks its turn rows first: a commit for one of its members is either before it
//! and seen, or after it and fenced, because the row with the fence is gone. Its instance rows come next: who runs an ended
//! instance again is before it and seen, or finds none. It never deletes part of a tree.

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    pool::Session,
    store::{
        Statements,
        manage::look::{TreeRow, only},
        queue::single,
        row::column,
    },
};

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct Deleted {
    pub instances: i64,
    pub executions: i64,
    pub events: i64,
    /// Messages and activity tasks.
    pub messages: i64,
}

/// What was pruned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct Pruned {
    pub executions: i64,
    pub events: i64,
}

/// Deletes a tree as it was read (its root first); `None`, and nothing is deleted, when it is not that tree any more or,
/// without force, has a member that runs. Dropped half way it may have happened: read the tree again.
pub async fn delete_tree(
    session: &Session,
    statements: &Statements,
    root: &TreeRow,
    tree: &[TreeRow],
    force: bool,
) -> Result<Option<Deleted>> {
    let ids: Vec<&str> = tree.iter().map(|member| member.instance.as_str()).collect();
    let members = i64::try_from(ids.len())
        .map_err(|error| Error::new(ErrorKind::Internal, "count a tree").caused_by(error))?;
    let session = session.with_limit(limits::DELETE_LIMIT);
    let answers = session
        .transaction(
            &statements.settings,
            &[
                (&statements.manage_lock_tree, &[&ids]),
                (&statements.manage_lock_instances, &[&ids]),
                (&statements.manage_delete_tree, &[&root.instance, &root.created_at_us, &members, &force]),
            ],
        )
        .await?;
    let row = only(answers.last().map_or(&[], Vec::as_slice), "delete a tree")?;
    if !column::<bool>(row, "ok")? {
        return Ok(None);
    }
    Ok(Some(Deleted {
        instances: column(row, "instances")?,
        executions: column(row, "executions")?,
        events: column(row, "events")?,
        messages: column(row, "messages")?,
    }))
}

/// Deletes at most `limit` closed executions of an instance, the oldest first, beyond the newest `keep` (the current one
/// counts) and, where a time is given, closed before it.
pub async fn prune(
    session: &Session,
    statements: &Statements,
    instance: &str,
    keep: i64,
    finished_before_ms: Option<i64>,
    limit: i64,
) -> Result<Pruned> {
    let session = session.with_limit(limits::DELETE_LIMIT);
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&instance, &keep, &finished_before_ms, &limit];
    let rows = single(&session, statements, &statements.manage_prune, &params).await?;
    let row = only(&rows, "prune executions")?;
    Ok(Pruned { executions: column(row, "executions")?, events: column(row, "events")? })
}
