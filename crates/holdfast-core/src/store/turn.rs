//! The turn queue and the inbox: claim, load, renew, release.
//!
//! Every claim and renewal stamps its time after the row lock and skips locked rows. It never decides what a poisoned
//! or a released item means.

use holdfast_replay::{EventId, Message, MessageBody, ParentLink, event::StoredEvent};
use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{Row, Session},
    store::{
        Fence, NodeKey, Statements,
        history::unpack,
        low_water::Queue,
        message::{self, MessageColumns},
        queue::{ClaimTerms, abandon_with, gone_with, patient, readable, release_with, renew_with, single},
        replay_version::ReplayRange,
        row::column,
    },
};

/// What a claim of turns or activities asks for.
#[derive(Debug)]
pub struct ClaimRequest<'a> {
    /// Who claims; the claim needs this node row.
    pub node: &'a NodeKey,
    /// Rows at most.
    pub limit: i64,
    /// Lease, in ms.
    pub lock_timeout_ms: i64,
    /// Backoff added to the lease by the number of deliveries: base × 2^(n−2) from the second on, capped.
    pub backoff_base_ms: i64,
    /// Cap of that backoff.
    pub backoff_max_ms: i64,
    /// Deliveries above this are poison.
    pub max_attempts: i32,
    /// True: claim one suspect (its owner died, or it is past its second delivery). False: claim only the others.
    pub isolated: bool,
    /// True for a while after a failed heartbeat: rows without an owner only.
    pub unowned_only: bool,
    /// Which histories are replayed; turns only.
    pub replay: ReplayRange,
}

/// One claimed turn.
#[derive(Debug)]
pub struct ClaimedTurn {
    /// Instance id.
    pub instance: String,
    /// The lease.
    pub fence: Fence,
    /// Claims of this row that were not given back, this one included.
    pub deliveries: i32,
    /// Beyond max attempts: to be ended, never delivered.
    pub poisoned: bool,
    /// Orchestration name.
    pub name: String,
    /// Version, once the first turn has chosen it (or the start named it).
    pub version: Option<String>,
    /// Current execution.
    pub execution: i64,
    /// Events recorded of it.
    pub history_len: i32,
    /// Parked before: somebody asked to cancel it.
    pub parked: bool,
    /// A lease of it ended unsettled, so that activities may have run without a row: its history tells which, and how long it
    /// really is. Its version is that of the instance.
    pub cut_off: bool,
    /// Newest version of this package that wrote its history, as far as that is known.
    pub replay_version: Option<i64>,
    /// Fence of the last settled turn; with execution and history length it proves a live frame.
    pub last_fence: Fence,
    /// Present when history_len is 0: what the execution starts from.
    pub start: Option<TurnStart>,
    /// What it starts from was too much for the claim beside the others: it is not there, and the turn goes back.
    pub unread: bool,
    /// Who waits for the end.
    pub parent: Option<ParentLink>,
    /// Database time of the claim, ms since 1970.
    pub now_ms: i64,
}

/// What an execution without history starts from.
#[derive(Debug, PartialEq, Eq)]
pub struct TurnStart {
    /// Input, JSON text.
    pub input: String,
    /// JSON of what the predecessor left, when it left anything.
    pub carried: Option<String>,
    /// Custom status of the predecessor.
    pub custom_status: Option<String>,
}

/// Lease lengths of a renewal: due becomes the greater of itself and now + timeout + backoff(deliveries).
#[derive(Debug, Clone, Copy)]
pub struct RenewRequest {
    /// Lease, in ms.
    pub lock_timeout_ms: i64,
    /// As in [`ClaimRequest`].
    pub backoff_base_ms: i64,
    /// As in [`ClaimRequest`].
    pub backoff_max_ms: i64,
}

/// Claims due turns of the named orchestrations. `names` holds names (used while no version is fixed), `handlers`
/// holds `name@version`. Suspects are claimed one at a time, whatever the limit. Dropped half way the claim may have
/// happened: the heartbeat releases what nobody holds.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    request: &ClaimRequest<'_>,
    names: &[String],
    handlers: &[String],
) -> Result<Vec<ClaimedTurn>> {
    let terms = ClaimTerms::of(statements, Queue::Turns, request);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![
        &request.node.id,
        &request.node.epoch,
        &names,
        &handlers,
        &terms.limit,
        &request.unowned_only,
        &terms.times.lock_timeout_ms,
        &terms.times.backoff_base_ms,
        &terms.times.backoff_max_ms,
        &request.max_attempts,
    ];
    let statement = if request.isolated {
        &statements.turn_claim_suspects
    } else {
        params.push(&terms.look_back_ms);
        &statements.turn_claim
    };
    params.extend([&request.replay.min, &request.replay.max] as [&(dyn ToSql + Sync); 2]);
    let rows = patient(session, statements, statement, &params).await?;
    terms.looked(statements, request, &rows)?;
    Ok(readable(&rows, claimed_turn))
}

fn claimed_turn(row: &Row) -> Result<ClaimedTurn> {
    let history_len: i32 = column(row, "history_len")?;
    let input: Option<String> = column(row, "input")?;
    let start = match input {
        Some(input) if history_len == 0 => Some(TurnStart {
            input,
            carried: column(row, "carried")?,
            custom_status: column(row, "custom_status")?,
        }),
        _ => None,
    };
    Ok(ClaimedTurn {
        instance: column(row, "instance")?,
        fence: Fence(column(row, "fence")?),
        deliveries: column(row, "deliveries")?,
        poisoned: column(row, "poisoned")?,
        name: column(row, "name")?,
        version: column(row, "version")?,
        execution: column(row, "execution")?,
        history_len,
        parked: column(row, "parked")?,
        cut_off: column(row, "cut_off")?,
        replay_version: column(row, "replay_version")?,
        last_fence: Fence(column(row, "last_fence")?),
        start,
        unread: column(row, "unread")?,
        parent: parent(row)?,
        now_ms: column(row, "now_ms")?,
    })
}

fn parent(row: &Row) -> Result<Option<ParentLink>> {
    let Some(instance) = column::<Option<String>>(row, "parent_instance")? else { return Ok(None) };
    Ok(Some(ParentLink {
        instance,
        execution: column(row, "parent_execution")?,
        event: event_id(column(row, "parent_event")?)?,
    }))
}

/// An event id as it was stored.
fn event_id(stored: i32) -> Result<EventId> {
    u32::try_from(stored)
        .map(EventId)
        .map_err(|error| Error::new(ErrorKind::Corrupt, format!("event id {stored}")).caused_by(error))
}

/// Due messages of the given instances, in id order per instance, at most `limit` each and until
/// their data has `bytes`; the first always comes. A row that makes no message is its instance's own trouble.
pub async fn inbox(
    session: &Session,
    statements: &Statements,
    instances: &[String],
    limit: i64,
    bytes: i64,
) -> Result<Vec<(String, Result<Message>)>> {
    let rows =
        patient(session, statements, &statements.turn_read_inbox, &[&instances, &limit, &bytes]).await?;
    let mut messages = Vec::with_capacity(rows.len());
    for row in &rows {
        let instance: String = column(row, "instance")?;
        let id: i64 = column(row, "id")?;
        let kind: &str = column(row, "kind")?;
        let body = message::body(MessageColumns {
            kind,
            execution: column(row, "execution")?,
            source: column(row, "source")?,
            name: column(row, "name")?,
            data: column(row, "data")?,
        });
        let message = body.map(|body| Message { id, body }).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("message {id} of kind {kind:?} cannot be read"))
        });
        messages.push((instance, message));
    }
    Ok(messages)
}

/// The first cancel request of each of the given instances.
pub async fn cancels(
    session: &Session,
    statements: &Statements,
    instances: &[String],
) -> Result<Vec<(String, Message)>> {
    let rows = patient(session, statements, &statements.turn_read_cancels, &[&instances]).await?;
    rows.iter()
        .map(|row| {
            let reason = column::<Option<String>>(row, "data")?.unwrap_or_default();
            let message = Message { id: column(row, "id")?, body: MessageBody::CancelRequested { reason } };
            Ok((column(row, "instance")?, message))
        })
        .collect()
}

/// What an execution has under way.
#[derive(Debug, Default)]
pub struct Open {
    /// Scheduling events of its activity tasks.
    pub activities: Vec<i32>,
    /// Its children that have not ended.
    pub children: Vec<String>,
    /// The highest event id in its history.
    pub last_event: i32,
}

/// What an execution has under way, told by the tables and not by its history.
pub async fn open(
    session: &Session,
    statements: &Statements,
    instance: &str,
    execution: i64,
) -> Result<Open> {
    let mut open = Open::default();
    for row in patient(session, statements, &statements.turn_list_open, &[&instance, &execution]).await? {
        open.activities.extend(column::<Option<i32>>(&row, "event")?);
        open.children.extend(column::<Option<String>>(&row, "child")?);
        open.last_event = column::<Option<i32>>(&row, "last_event")?.unwrap_or(open.last_event);
    }
    Ok(open)
}

/// History of the given (instance, execution) pairs, in order. A row that makes no event is its instance's own trouble.
pub async fn history(
    session: &Session,
    statements: &Statements,
    keys: &[(String, i64)],
) -> Result<Vec<(String, Result<StoredEvent>)>> {
    let instances: Vec<&str> = keys.iter().map(|(instance, _)| instance.as_str()).collect();
    let executions: Vec<i64> = keys.iter().map(|(_, execution)| *execution).collect();
    let rows =
        patient(session, statements, &statements.turn_read_history, &[&instances, &executions]).await?;
    let mut recorded = Vec::with_capacity(rows.len());
    for row in &rows {
        let instance: &str = column(row, "instance")?;
        match unpack(row) {
            Ok(events) => {
                recorded.extend(events.into_iter().map(|event| (instance.to_owned(), Ok(event))));
            }
            Err(error) => recorded.push((instance.to_owned(), Err(error))),
        }
    }
    Ok(recorded)
}

/// Renews held turn leases in one statement; returns the fences that were renewed. A row locked by another session is
/// skipped, so a fence that is missing is not thereby lost: try again.
pub async fn renew(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    request: &RenewRequest,
) -> Result<Vec<Fence>> {
    renew_with(session, statements, &statements.turn_renew, node, fences, request).await
}

/// Gives back turns whose body has not started, with their delivery. A fence that matches nothing counts as done.
pub async fn release(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    delay_ms: i64,
) -> Result<u64> {
    release_with(session, statements, &statements.turn_release, node, fences, delay_ms).await
}

/// Gives up leases whose body has started: the delivery counts. With `at_once` they are due at once (the body was stopped),
/// else when their lease would have ended (the result cannot be stored). A fence that matches nothing counts as done.
pub async fn abandon(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    at_once: bool,
) -> Result<u64> {
    abandon_with(session, statements, &statements.turn_abandon, node, fences, at_once).await
}

/// Gives up leases under which activities ran without a row: due at once, and whoever claims them gives these their rows. A
/// fence that matches nothing counts as done.
pub async fn cut_off(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
) -> Result<u64> {
    if fences.is_empty() {
        return Ok(0);
    }
    let fences: Vec<i64> = fences.iter().map(|fence| fence.0).collect();
    let params: [&(dyn ToSql + Sync); 3] = [&node.id, &node.epoch, &fences];
    Ok(single(session, statements, &statements.turn_cut_off, &params).await?.len() as u64)
}

/// Those of the given fences that are not this node's any more.
pub async fn gone(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
) -> Result<Vec<Fence>> {
    gone_with(session, statements, &statements.turn_list_gone, node, fences).await
}
