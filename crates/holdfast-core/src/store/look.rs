//! The idle look: one statement that asks both queues, and moves the low-water marks as an empty claim would.
//!
//! It locks and changes nothing: what it finds may be gone when the claim comes.

use std::time::{Duration, Instant};

use crate::{
    error::{Error, ErrorKind, Result},
    pool::Session,
    store::{
        NodeKey, Statements, TagFilter,
        low_water::{Look, Queue},
        queue::patient,
        replay_version::ReplayRange,
        row::column,
    },
};

/// Who looks, and for what.
#[derive(Debug)]
pub struct LookRequest<'a> {
    /// The node that would claim.
    pub node: &'a NodeKey,
    /// Orchestration names (used while no version is fixed); empty: no turns.
    pub names: &'a [String],
    /// `name@version` of each handler.
    pub handlers: &'a [String],
    /// Activity names; empty: no activities.
    pub activities: &'a [String],
    /// Which activities by tag.
    pub tags: &'a TagFilter,
    /// Whether a session may be taken that is not this node's yet.
    pub new_sessions: bool,
    /// Which histories are replayed.
    pub replay: ReplayRange,
}

/// What is due for the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Turns.
    pub turns: bool,
    /// Turns to be claimed alone.
    pub turn_suspects: bool,
    /// Activities without a tag.
    pub activities: bool,
    /// Activities to be claimed alone.
    pub activity_suspects: bool,
    /// Activities with a tag.
    pub tagged: bool,
    /// Activities of sessions that this node has or may take, suspects among them.
    pub in_session: bool,
    /// Until the next row that is not due yet; `None` when there is none.
    pub next: Option<Duration>,
}

/// Looks at both queues in one round trip and one transaction: outside one, the plan would be that of the empty tables it
/// was made on. Dropping the future breaks the session.
pub async fn look(session: &Session, statements: &Statements, request: &LookRequest<'_>) -> Result<Due> {
    let marks = &statements.low_water;
    let now = Instant::now();
    let [turns, activities, tagged, in_session] =
        [Queue::Turns, Queue::Activities, Queue::Tagged, Queue::InSession]
            .map(|queue| marks.look(queue, request.node, now));
    let (names, handlers, activity_names) = (request.names, request.handlers, request.activities);
    let rows = patient(
        session,
        statements,
        &statements.dispatch_look,
        &[
            &request.node.id,
            &request.node.epoch,
            &names,
            &handlers,
            &activity_names,
            &request.tags.untagged,
            &request.tags.any,
            &request.tags.tags,
            &turns.back_ms(),
            &activities.back_ms(),
            &tagged.back_ms(),
            &in_session.back_ms(),
            &request.new_sessions,
            &request.replay.min,
            &request.replay.max,
        ],
    )
    .await?;
    let row = rows.first().ok_or_else(|| Error::new(ErrorKind::Internal, "look at the queues: no row"))?;
    let next: Option<i64> = column(row, "due_in_ms")?;
    let due = Due {
        turns: column(row, "turns")?,
        turn_suspects: column(row, "turn_suspects")?,
        activities: column(row, "activities")?,
        activity_suspects: column(row, "activity_suspects")?,
        tagged: column(row, "tagged")?,
        in_session: column(row, "in_session")?,
        next: next.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs())),
    };
    let saw = |queue: Queue, look: Look, found: bool, asked: bool| {
        if found {
            // Its claim has to look as far back.
            marks.found(queue, request.node, look);
        } else if asked {
            marks.looked(queue, request.node, look, None, Instant::now());
        }
    };
    saw(Queue::Turns, turns, due.turns, !request.names.is_empty());
    let some = !request.activities.is_empty();
    saw(Queue::Activities, activities, due.activities, some && request.tags.untagged);
    saw(Queue::Tagged, tagged, due.tagged, some && request.tags.takes_tagged());
    let takes = !request.tags.is_none();
    saw(Queue::InSession, in_session, due.in_session, some && takes);
    Ok(due)
}
