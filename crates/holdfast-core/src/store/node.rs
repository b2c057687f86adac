//! Node rows: registration, heartbeat, recovery, goodbye. All of it runs on the liveness session.
//!
//! Invariants: an ordinary heartbeat is one round trip, and a second one only when somebody is silent; who is silent is seen
//! before the own beat, so that a node which was itself late declares nobody dead; batches are bounded and skip locked rows;
//! no look that may take long goes along with a heartbeat, and one that meets a locked table is sent again without it.
//! It never decides whether to recover.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{Row, Session, Statement},
    store::{
        Fence, NodeKey, Statements,
        look::{Begun, Due, LookRequest},
        queue::single,
        row::column,
    },
};

/// Leases freed by one statement of a sweep: long enough to be few round trips, short enough that no lock is held long.
const SWEEP_LIMIT: i64 = 1_000;

/// What a heartbeat takes along.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// A hint to this channel.
    pub proof_channel: Option<&'a str>,
    /// A look at both queues.
    pub look: Option<&'a LookRequest<'a>>,
}

/// What one heartbeat brings back; all of it in one round trip.
#[derive(Debug, Default)]
pub struct Heartbeat {
    /// False when the node row is gone: this node was declared dead.
    pub alive: bool,
    /// Held fences that are no longer this node's (cancelled, taken over, deleted), turns first.
    pub gone_turns: Vec<Fence>,
    /// The same for activities.
    pub gone_activities: Vec<Fence>,
    /// Rows owned by this node and epoch whose fence was not among the held ones and that are older than the
    /// claim's time limit: they were released, unstarted.
    pub released: u64,
    /// Ids of stale nodes that were deleted; what they held is to be freed by [`sweep`].
    pub recovered_nodes: Vec<String>,
    /// Peers fell silent together, and this node, which is fresh, cannot tell for how long its own heartbeats would have failed.
    pub outage: bool,
    /// What the look found that it took along; `None` also when that would have made it late.
    pub due: Option<Due>,
}

/// Whom a heartbeat may declare dead. Each node is judged by its own times, which are in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody: this node's own past ends with a failure or a gap.
    Forbidden,
    /// Stale nodes whose stale age is not longer than this node's heartbeats have had no failure.
    Allowed {
        /// For how long they have had none.
        clean_ms: i64,
        /// They have had none since this node was started: of nodes with a longer stale age it leaves only those that fell
        /// silent together, and those that the server has not been up long enough for.
        fresh: bool,
    },
}

/// The times that a node is judged by, whoever looks.
#[derive(Debug, Clone, Copy)]
pub struct NodeTimes {
    /// Between two heartbeats.
    pub interval_ms: i64,
    /// Without a heartbeat for this long it is dead; at least four intervals.
    pub stale_after_ms: i64,
}

/// What one batch of a sweep freed.
#[derive(Debug, Clone, Copy)]
pub struct Swept {
    /// Leases that lost their dead owner.
    pub freed: u64,
    /// There may be more.
    pub more: bool,
}

/// Times of a heartbeat.
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatTimes {
    /// The node's id is an explicitly configured one: an older epoch of it is stale after three of its intervals.
    pub explicit: bool,
    /// Unknown own leases older than this are released.
    pub claim_limit_ms: i64,
    /// What the outage guard allows.
    pub recovery: Recovery,
}

/// Registers the node and returns its epoch. Also removes nothing: recovery is the heartbeat's.
pub async fn register(
    session: &Session,
    statements: &Statements,
    id: &str,
    times: NodeTimes,
) -> Result<NodeKey> {
    let params: [&(dyn ToSql + Sync); 3] = [&id, &times.interval_ms, &times.stale_after_ms];
    let rows = session.query(&statements.node_register, &params).await?;
    let row = rows.first().ok_or_else(|| Error::new(ErrorKind::Internal, "register the node: no row"))?;
    Ok(NodeKey { id: id.to_owned(), epoch: column(row, "epoch")? })
}

/// One heartbeat: stamps the node row, reports lost fences, releases unknown own leases and, when allowed, deletes stale
/// nodes. Dropped half way it has done a part or nothing of it; the next one repeats it.
pub async fn heartbeat(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    (held_turns, held_activities): (&[Fence], &[Fence]),
    times: HeartbeatTimes,
    along: Along<'_>,
) -> Result<Heartbeat> {
    let turns = numbers(held_turns);
    let activities = numbers(held_activities);
    let looks = times.recovery != Recovery::Forbidden;
    let own: [&(dyn ToSql + Sync); 4] = [&node.id, &node.epoch, &looks, &times.explicit];
    let gone_turns: [&(dyn ToSql + Sync); 3] = [&node.id, &node.epoch, &turns];
    let gone_activities: [&(dyn ToSql + Sync); 3] = [&node.id, &node.epoch, &activities];
    let unknown_turns: [&(dyn ToSql + Sync); 4] = [&node.id, &node.epoch, &turns, &times.claim_limit_ms];
    let unknown_activities: [&(dyn ToSql + Sync); 4] =
        [&node.id, &node.epoch, &activities, &times.claim_limit_ms];
    let proof: [&(dyn ToSql + Sync); 2] = [&along.proof_channel, &""];
    let begun = along.look.map(|request| Begun::new(statements, request));
    let begun = begun.filter(|begun| !begun.may_be_slow(statements));
    let look = begun.as_ref().map(Begun::params);

    let mut steps: Vec<(&Statement, &[&(dyn ToSql + Sync)])> = Vec::with_capacity(7);
    steps.push((&statements.node_beat, &own));
    // A node at rest holds nothing that could be gone.
    if !turns.is_empty() {
        steps.push((&statements.turn_list_gone, &gone_turns));
    }
    if !activities.is_empty() {
        steps.push((&statements.activity_list_gone, &gone_activities));
    }
    steps.push((&statements.turn_release_unknown, &unknown_turns));
    steps.push((&statements.activity_release_unknown, &unknown_activities));
    if let Some(look) = &look {
        steps.push((&statements.dispatch_look, look));
    }
    if along.proof_channel.is_some() {
        steps.push((&statements.notify_send, &proof));
    }
    let results = match session.transaction(&statements.settings, &steps).await {
        Err(error) if error.kind() == ErrorKind::Conflict && !session.is_broken() => {
            return bare_heartbeat(session, statements, node, times, along.proof_channel).await;
        }
        results => results?,
    };
    let mut results = results.into_iter();
    let mut next = || results.next().unwrap_or_default();

    let mut beat = Heartbeat::default();
    let own = next();
    beat.alive = !own.is_empty();
    let silent: Vec<i64> = own.first().map_or(Ok(Vec::new()), |row| column(row, "silent"))?;
    if !turns.is_empty() {
        beat.gone_turns = fences(&next())?;
    }
    if !activities.is_empty() {
        beat.gone_activities = fences(&next())?;
    }
    beat.released = next().len() as u64 + next().len() as u64;
    if let Some(begun) = &begun {
        beat.due = Some(begun.read(statements, &next())?);
    }
    if !silent.is_empty() {
        let found = delete_stale(session, statements, node, times, &silent).await?;
        beat.outage = found.contains(&None);
        beat.recovered_nodes = found.into_iter().flatten().collect();
    }
    Ok(beat)
}

/// A heartbeat that touches no queue: whoever has locked one for long must not make every node look dead.
async fn bare_heartbeat(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    times: HeartbeatTimes,
    proof_channel: Option<&str>,
) -> Result<Heartbeat> {
    let own: [&(dyn ToSql + Sync); 4] = [&node.id, &node.epoch, &false, &times.explicit];
    let proof: [&(dyn ToSql + Sync); 2] = [&proof_channel, &""];
    let mut steps: Vec<(&Statement, &[&(dyn ToSql + Sync)])> = vec![(&statements.node_beat, &own)];
    if proof_channel.is_some() {
        steps.push((&statements.notify_send, &proof));
    }
    let results = session.transaction(&statements.settings, &steps).await?;
    Ok(Heartbeat { alive: results.first().is_some_and(|rows| !rows.is_empty()), ..Heartbeat::default() })
}

/// Deletes those of the silent nodes that are dead; gives their ids, and `None` for an outage that was seen.
async fn delete_stale(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    times: HeartbeatTimes,
    silent: &[i64],
) -> Result<Vec<Option<String>>> {
    let Recovery::Allowed { clean_ms, fresh } = times.recovery else { return Ok(Vec::new()) };
    let params: [&(dyn ToSql + Sync); 6] =
        [&node.id, &node.epoch, &times.explicit, &fresh, &clean_ms, &silent];
    let rows = single(session, statements, &statements.node_delete_stale, &params).await?;
    rows.iter().map(|row| column(row, "id")).collect()
}

/// Releases, unstarted, what this node owns and does not hold, if it was claimed longer ago than `older_than`; returns how
/// much that was. Dropped half way it may have been done; the next one repeats it.
pub async fn release_unknown(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    held_turns: &[Fence],
    held_activities: &[Fence],
    older_than: Duration,
) -> Result<u64> {
    let (turns, activities) = (numbers(held_turns), numbers(held_activities));
    let older_than_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    let unknown_turns: [&(dyn ToSql + Sync); 4] = [&node.id, &node.epoch, &turns, &older_than_ms];
    let unknown_activities: [&(dyn ToSql + Sync); 4] = [&node.id, &node.epoch, &activities, &older_than_ms];
    let steps: [(&Statement, &[&(dyn ToSql + Sync)]); 2] = [
        (&statements.turn_release_unknown, &unknown_turns),
        (&statements.activity_release_unknown, &unknown_activities),
    ];
    let results = session.transaction(&statements.settings, &steps).await?;
    Ok(results.iter().map(|rows| rows.len() as u64).sum())
}

/// Frees one batch of the leases, and of the sessions, whose owner has no node row. Dropped half way it may have been done.
pub async fn sweep(session: &Session, statements: &Statements) -> Result<Swept> {
    let params: [&(dyn ToSql + Sync); 1] = [&SWEEP_LIMIT];
    let steps: [(&Statement, &[&(dyn ToSql + Sync)]); 3] = [
        (&statements.session_recover, &params),
        (&statements.turn_recover, &params),
        (&statements.activity_recover, &params),
    ];
    let results = session.transaction(&statements.settings, &steps).await?;
    Ok(Swept {
        freed: results.iter().skip(1).map(|rows| rows.len() as u64).sum(),
        more: results.iter().any(|rows| rows.len() >= SWEEP_LIMIT as usize),
    })
}

/// Removes the node row, if it is there; what it still owns is free at once (unstarted work keeps its count). Dropped half
/// way it may leave leases of a node that is gone; the other nodes' sweeps free them.
pub async fn goodbye(session: &Session, statements: &Statements, node: &NodeKey) -> Result<()> {
    let own: [&(dyn ToSql + Sync); 2] = [&node.id, &node.epoch];
    let freed: [&(dyn ToSql + Sync); 3] = [&node.id, &node.epoch, &SWEEP_LIMIT];
    let sessions: [&(dyn ToSql + Sync); 2] = [&node.id, &SWEEP_LIMIT];
    let steps: [(&Statement, &[&(dyn ToSql + Sync)]); 4] = [
        (&statements.node_delete, &own),
        (&statements.session_free, &sessions),
        (&statements.turn_free, &freed),
        (&statements.activity_free, &freed),
    ];
    loop {
        let results = session.transaction(&statements.settings, &steps).await?;
        if results.iter().all(|rows| rows.len() < SWEEP_LIMIT as usize) {
            return Ok(());
        }
    }
}

/// Fences as a parameter.
pub(super) fn numbers(fences: &[Fence]) -> Vec<i64> {
    fences.iter().map(|fence| fence.0).collect()
}

/// Fences of the rows' column `fence`.
pub(super) fn fences(rows: &[Row]) -> Result<Vec<Fence>> {
    rows.iter().map(|row| Ok(Fence(column(row, "fence")?))).collect()
}
