//! The activity queue: claim, renew, release.
//!
//! The same rules as for turns. It never reads a payload.

use holdfast_replay::Payload;
use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    pool::{Row, Session},
    store::{
        ActivityKey, Fence, NodeKey, Statements, TagFilter,
        low_water::Queue,
        node::fences,
        queue::{
            ClaimTerms, MAX_MS, abandon_with, gone_with, patient, readable, release_with, renew_with, single,
        },
        row::{column, column_ms},
        turn::{ClaimRequest, RenewRequest},
    },
};

/// One claimed activity task.
#[derive(Debug, Clone)]
pub struct ClaimedActivity {
    /// Its key.
    pub key: ActivityKey,
    /// The lease.
    pub fence: Fence,
    /// Claims of this row that were not given back, this one included.
    pub deliveries: i32,
    /// Beyond max attempts: to be ended, never delivered.
    pub poisoned: bool,
    /// Try of the retry policy, from 1.
    pub attempt: i32,
    /// Activity name.
    pub name: String,
    /// Input, JSON text.
    pub input: String,
    /// Retry policy, JSON text.
    pub retry: Option<String>,
    /// What the body of an earlier delivery told last, JSON text.
    pub heartbeat: Option<String>,
    /// Time limit of one try, in ms.
    pub timeout_ms: Option<i64>,
    /// Routing tag.
    pub tag: Option<String>,
    /// Session.
    pub session: Option<String>,
    /// Name of the orchestration that scheduled it.
    pub orchestration_name: Option<String>,
    /// Its version.
    pub orchestration_version: Option<String>,
    /// When it was scheduled, ms since 1970.
    pub scheduled_at_ms: i64,
    /// Database time of the claim, ms since 1970.
    pub now_ms: i64,
}

/// Which tasks a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Those without a tag.
    Plain,
    /// Those with a tag that the filter names.
    Tagged,
    /// Those of sessions, with a tag that the filter takes.
    InSession,
}

/// Which tasks a node takes.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// By tag.
    pub tags: &'a TagFilter,
    /// Sessions that may be taken beside the ones this node owns.
    pub new_sessions: i64,
    /// Lease of a session, in ms.
    pub session_timeout_ms: i64,
    /// Leaves suspects whose last delivery this would be: other suspects run here, and one of those might be what ends it.
    pub spares_last: bool,
}

/// Claims due activities of the given names in one lane; suspects with and without a tag in the plain one, one at a time,
/// whatever the limit. Dropped half way the claim may have happened: the heartbeat releases what nobody holds.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    request: &ClaimRequest<'_>,
    names: &[String],
    takes: &Terms<'_>,
    lane: Lane,
) -> Result<Vec<ClaimedActivity>> {
    let queue = match lane {
        Lane::Plain => Queue::Activities,
        Lane::Tagged => Queue::Tagged,
        Lane::InSession => Queue::InSession,
    };
    let Terms { tags, new_sessions, session_timeout_ms, spares_last } = *takes;
    let session_timeout_ms = session_timeout_ms.clamp(0, MAX_MS);
    let terms = ClaimTerms::of(statements, queue, request);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![
        &request.node.id,
        &request.node.epoch,
        &names,
        &terms.limit,
        &request.unowned_only,
        &terms.times.lock_timeout_ms,
        &terms.times.backoff_base_ms,
        &terms.times.backoff_max_ms,
        &request.max_attempts,
    ];
    let by_tag: [&(dyn ToSql + Sync); 2] = [&tags.any, &tags.tags];
    let statement = if lane == Lane::InSession {
        params.push(&terms.look_back_ms);
        params.push(&tags.untagged);
        params.extend(by_tag);
        params
            .extend([&new_sessions, &session_timeout_ms, &request.isolated, &spares_last]
                as [&(dyn ToSql + Sync); 4]);
        &statements.activity_claim_in_session
    } else if request.isolated {
        params.push(&tags.untagged);
        params.extend(by_tag);
        params.push(&spares_last);
        &statements.activity_claim_suspects
    } else {
        params.push(&terms.look_back_ms);
        match lane {
            Lane::Plain | Lane::InSession => &statements.activity_claim,
            Lane::Tagged => {
                params.extend(by_tag);
                &statements.activity_claim_tagged
            }
        }
    };
    let rows = patient(session, statements, statement, &params).await?;
    terms.looked(statements, request, &rows)?;
    Ok(readable(&rows, claimed_activity))
}

fn claimed_activity(row: &Row) -> Result<ClaimedActivity> {
    Ok(ClaimedActivity {
        key: ActivityKey {
            instance: column(row, "instance")?,
            execution: column(row, "execution")?,
            event: column(row, "event")?,
        },
        fence: Fence(column(row, "fence")?),
        deliveries: column(row, "deliveries")?,
        poisoned: column(row, "poisoned")?,
        attempt: column(row, "attempt")?,
        name: column(row, "name")?,
        input: column(row, "input")?,
        retry: column(row, "retry")?,
        heartbeat: column(row, "heartbeat")?,
        timeout_ms: column(row, "timeout_ms")?,
        tag: column(row, "tag")?,
        session: column(row, "session")?,
        orchestration_name: column(row, "orchestration_name")?,
        orchestration_version: column(row, "orchestration_version")?,
        scheduled_at_ms: column_ms(row, "scheduled_at")?,
        now_ms: column_ms(row, "claimed_at")?,
    })
}

/// Renews held activity leases in one statement; returns the fences that were renewed. A row locked by another session
/// is skipped, so a fence that is missing is not thereby lost: try again.
pub async fn renew(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    request: &RenewRequest,
) -> Result<Vec<Fence>> {
    renew_with(session, statements, &statements.activity_renew, node, fences, request).await
}

/// Gives back tasks whose body has not started, with their delivery. A fence that matches nothing counts as done.
pub async fn release(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
    delay_ms: i64,
) -> Result<u64> {
    release_with(session, statements, &statements.activity_release, node, fences, delay_ms).await
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
    abandon_with(session, statements, &statements.activity_abandon, node, fences, at_once).await
}

/// Those of the given fences that are not this node's any more.
pub async fn gone(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    fences: &[Fence],
) -> Result<Vec<Fence>> {
    gone_with(session, statements, &statements.activity_list_gone, node, fences).await
}

/// Of tasks whose lease is gone, the leases of those that somebody else has or has ended; the others were cancelled or
/// deleted.
pub async fn taken(
    session: &Session,
    statements: &Statements,
    tasks: &[(Fence, ActivityKey)],
) -> Result<Vec<Fence>> {
    let instances: Vec<&str> = tasks.iter().map(|(_, key)| key.instance.as_str()).collect();
    let executions: Vec<i64> = tasks.iter().map(|(_, key)| key.execution).collect();
    let events: Vec<i32> = tasks.iter().map(|(_, key)| key.event).collect();
    let held: Vec<i64> = tasks.iter().map(|(fence, _)| fence.0).collect();
    let params: [&(dyn ToSql + Sync); 4] = [&instances, &executions, &events, &held];
    fences(&single(session, statements, &statements.activity_list_taken, &params).await?)
}

/// What a running body told last.
#[derive(Debug, Clone)]
pub struct Beat {
    /// The task.
    pub key: ActivityKey,
    /// Its lease.
    pub fence: Fence,
    /// JSON text.
    pub details: Payload,
}

/// Stores heartbeats of running bodies; returns the fences whose heartbeat is stored. One that is missing is not held any
/// more, or locked at this moment.
pub async fn beat(session: &Session, statements: &Statements, beats: &[Beat]) -> Result<Vec<Fence>> {
    let instances: Vec<&str> = beats.iter().map(|beat| beat.key.instance.as_str()).collect();
    let executions: Vec<i64> = beats.iter().map(|beat| beat.key.execution).collect();
    let events: Vec<i32> = beats.iter().map(|beat| beat.key.event).collect();
    let held: Vec<i64> = beats.iter().map(|beat| beat.fence.0).collect();
    let details: Vec<&str> = beats.iter().map(|beat| beat.details.as_str()).collect();
    let params: [&(dyn ToSql + Sync); 5] = [&instances, &executions, &events, &held, &details];
    fences(&single(session, statements, &statements.activity_beat, &params).await?)
}
