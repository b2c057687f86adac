//! What nodes can run, and due work that none of them can.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    pool::Session,
    store::{NodeKey, Statements, queue::single, row::column},
};

/// One thing that a node can do.
#[derive(Debug, Clone, Copy)]
pub struct Ability<'a> {
    /// `orchestration`, `activity`, `untagged`, `any_tag`, `tag` or `replay`.
    pub kind: &'a str,
    /// Name of the handler or the tag, the oldest history for `replay`; empty for `untagged` and `any_tag`.
    pub name: &'a str,
    /// Exact version of an orchestration, the newest history for `replay`, else empty.
    pub version: &'a str,
}

/// Due work that no live node can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// `orchestration` or `activity`.
    pub kind: String,
    /// Name of the handler.
    pub name: String,
    /// Version of an orchestration that has one.
    pub version: Option<String>,
    /// Tag of an activity that has one.
    pub tag: Option<String>,
    /// Version of this package that wrote the history of an orchestration that has one.
    pub replay_version: Option<i64>,
    /// Rows of it among the first thousand that are due.
    pub waiting: i64,
}

/// Says what a node can run. Does nothing when the node row is gone; saying it again changes nothing.
pub async fn publish(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    abilities: &[Ability<'_>],
) -> Result<()> {
    let kinds: Vec<&str> = abilities.iter().map(|ability| ability.kind).collect();
    let names: Vec<&str> = abilities.iter().map(|ability| ability.name).collect();
    let versions: Vec<&str> = abilities.iter().map(|ability| ability.version).collect();
    let params: [&(dyn ToSql + Sync); 5] = [&node.id, &node.epoch, &kinds, &names, &versions];
    single(session, statements, &statements.node_publish, &params).await?;
    Ok(())
}

/// Work that is due for ten seconds, that nobody has, and that no live node can run; at most ten names of each queue.
pub async fn unserved(session: &Session, statements: &Statements) -> Result<Vec<Unserved>> {
    let rows = single(session, statements, &statements.dispatch_find_unserved, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Unserved {
                kind: column(row, "kind")?,
                name: column(row, "name")?,
                version: column(row, "version")?,
                tag: column(row, "tag")?,
                replay_version: column(row, "replay_version")?,
                waiting: column(row, "waiting")?,
            })
        })
        .collect()
}
