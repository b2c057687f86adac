//! What the tables say of one instance: its row, its turn, its activities, timers and children.
//!
//! Plain reads without locks, by index, bounded. It explains nothing.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    limits,
    pool::{Row, Session, Statement},
    store::{Statements, manage::look::only, row::column},
};

/// An instance and its turn row; either may be missing.
#[derive(Debug, Clone)]
pub struct FoundInstance {
    /// Orchestration name; `None` when there is no such instance.
    pub name: Option<String>,
    /// Version of the current execution, once it is fixed.
    pub version: Option<String>,
    /// Current execution.
    pub execution: i64,
    /// As stored; empty when there is no such instance.
    pub status: String,
    /// JSON text.
    pub error: Option<String>,
    /// Code of the error.
    pub error_code: Option<String>,
    /// Ms since 1970, while it is parked.
    pub parked_at_ms: Option<i64>,
    /// There is a turn row.
    pub queued: bool,
    /// The turn row belongs to an instance that was started.
    pub started: bool,
    /// Events recorded of the current execution.
    pub history_len: i32,
    /// Claims of the coming turn that were not given back.
    pub deliveries: i32,
    /// Node that holds the turn.
    pub owner: Option<String>,
    /// That node is not stale.
    pub owner_lives: bool,
    /// When the turn is due, or its lease ends; ms since 1970.
    pub due_at_ms: Option<i64>,
    /// Database time, ms since 1970.
    pub now_ms: i64,
    /// Messages that wait for the next turn, counted up to 1001.
    pub messages: i64,
    /// Nodes that are not stale.
    pub nodes: i64,
    /// One of them has the name and version.
    pub served: bool,
    /// Newest version of this package that wrote its history.
    pub replay_version: Option<i64>,
    /// One of those that have the name and version replays such histories.
    pub replayed: bool,
}

/// An activity task.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the same fields as in ClaimedActivity")]
pub struct FoundActivity {
    /// 0 for a standalone one.
    pub execution: i64,
    pub event: i32,
    pub name: String,
    pub attempt: i32,
    pub deliveries: i32,
    pub tag: Option<String>,
    pub session: Option<String>,
    /// Node that holds it.
    pub owner: Option<String>,
    /// That node is not stale.
    pub owner_lives: bool,
    /// Node that died while it held it, if nothing has come of it since.
    pub lost_by: Option<String>,
    /// What its body told last, JSON text.
    pub heartbeat: Option<String>,
    /// When it told that; ms since 1970.
    pub heartbeat_at_ms: Option<i64>,
    /// When it is due, or its lease ends; ms since 1970.
    pub due_at_ms: Option<i64>,
    /// A node that is not stale has the name.
    pub known: bool,
    /// Such a node takes the tag too, or untagged work.
    pub served: bool,
}

/// A child that has not ended.
#[derive(Debug, Clone)]
pub struct FoundChild {
    /// Instance id.
    pub instance: String,
    /// Orchestration name.
    pub name: String,
    /// As stored.
    pub status: String,
    /// Why it is parked, if it is.
    pub parked: Option<String>,
}

/// All that the tables say.
#[derive(Debug, Clone)]
pub struct Found {
    /// The instance and its turn row.
    pub instance: FoundInstance,
    /// At most [`limits::EXPLAIN_ROWS`], the oldest first.
    pub activities: Vec<FoundActivity>,
    /// When timers fire, ms since 1970; at most [`limits::EXPLAIN_ROWS`], the next first.
    pub timers: Vec<i64>,
    /// At most [`limits::EXPLAIN_ROWS`], the newest first.
    pub children: Vec<FoundChild>,
}

/// Reads it all in one round trip.
pub async fn explain(session: &Session, statements: &Statements, instance: &str) -> Result<Found> {
    let one: [&(dyn ToSql + Sync); 1] = [&instance];
    let limited: [&(dyn ToSql + Sync); 2] = [&instance, &limits::EXPLAIN_ROWS];
    let steps: [(&Statement, &[&(dyn ToSql + Sync)]); 3] = [
        (&statements.manage_explain_instance, &one),
        (&statements.manage_explain_activities, &limited),
        (&statements.manage_explain_waits, &limited),
    ];
    let mut answers = session.transaction(&statements.settings, &steps).await?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    let instance = found_instance(only(&next(), "explain an instance")?)?;
    let activities = next().iter().map(found_activity).collect::<Result<_>>()?;
    let (mut timers, mut children) = (Vec::new(), Vec::new());
    for row in &next() {
        match column::<Option<i64>>(row, "fire_at_ms")? {
            Some(at) => timers.push(at),
            None => children.push(FoundChild {
                instance: column(row, "child")?,
                name: column(row, "name")?,
                status: column(row, "status")?,
                parked: column(row, "parked")?,
            }),
        }
    }
    Ok(Found { instance, activities, timers, children })
}

fn found_instance(row: &Row) -> Result<FoundInstance> {
    Ok(FoundInstance {
        name: column(row, "name")?,
        version: column::<Option<String>>(row, "turn_version")?.or(column(row, "version")?),
        execution: column::<Option<i64>>(row, "execution")?.unwrap_or(0),
        status: column::<Option<String>>(row, "status")?.unwrap_or_default(),
        error: column(row, "error")?,
        error_code: column(row, "error_code")?,
        parked_at_ms: column(row, "parked_at_ms")?,
        queued: column(row, "queued")?,
        started: column(row, "started")?,
        history_len: column::<Option<i32>>(row, "history_len")?.unwrap_or(0),
        deliveries: column::<Option<i32>>(row, "deliveries")?.unwrap_or(0),
        owner: column(row, "owner")?,
        owner_lives: column(row, "owner_lives")?,
        due_at_ms: column(row, "due_at_ms")?,
        now_ms: column(row, "now_ms")?,
        messages: column(row, "messages")?,
        nodes: column(row, "nodes")?,
        served: column(row, "served")?,
        replay_version: column(row, "replay_version")?,
        replayed: column(row, "replayed")?,
    })
}

fn found_activity(row: &Row) -> Result<FoundActivity> {
    Ok(FoundActivity {
        execution: column(row, "execution")?,
        event: column(row, "event")?,
        name: column(row, "name")?,
        attempt: column(row, "attempt")?,
        deliveries: column(row, "deliveries")?,
        tag: column(row, "tag")?,
        session: column(row, "session")?,
        owner: column(row, "owner")?,
        owner_lives: column(row, "owner_lives")?,
        lost_by: column(row, "lost_by")?,
        heartbeat: column(row, "heartbeat")?,
        heartbeat_at_ms: column(row, "heartbeat_at_ms")?,
        due_at_ms: column(row, "due_at_ms")?,
        known: column(row, "known")?,
        served: column(row, "served")?,
    })
}
