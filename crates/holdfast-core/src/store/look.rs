//! The idle look: one statement that asks both queues, and moves the low-water marks as an empty claim would.
//!
//! It locks and changes nothing: what it finds may be gone when the claim comes. A heartbeat can take it along, so that an idle
//! node needs no transaction of its own for it.

use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{Row, Session},
    store::{
        NodeKey, Statements, TagFilter,
        low_water::{Look, Queue},
        queue::patient,
        replay_version::ReplayRange,
        row::column,
    },
};

/// What to look for.
#[derive(Debug, Clone)]
pub struct LookOrder {
    /// As in [`LookRequest`].
    pub names: Vec<String>,
    /// As there.
    pub handlers: Vec<String>,
    /// As there.
    pub activities: Vec<String>,
    /// As there.
    pub tags: TagFilter,
    /// As there.
    pub new_sessions: bool,
    /// As there.
    pub replay: ReplayRange,
}

impl LookOrder {
    /// The look of this node.
    pub fn by<'a>(&'a self, node: &'a NodeKey) -> LookRequest<'a> {
        LookRequest {
            node,
            names: &self.names,
            handlers: &self.handlers,
            activities: &self.activities,
            tags: &self.tags,
            new_sessions: self.new_sessions,
            replay: self.replay,
        }
    }
}

/// Who looks, and for what.
#[derive(Debug, Clone, Copy)]
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

impl Due {
    /// Whether there is nothing to claim.
    pub fn is_nothing(&self) -> bool {
        let Self { turns, turn_suspects, activities, activity_suspects, tagged, in_session, next: _ } = *self;
        ![turns, turn_suspects, activities, activity_suspects, tagged, in_session].contains(&true)
    }
}

/// Looks at both queues in one round trip and one transaction: outside one, the plan would be that of the empty tables it
/// was made on. Dropping the future breaks the session.
pub async fn look(session: &Session, statements: &Statements, request: &LookRequest<'_>) -> Result<Due> {
    let begun = Begun::new(statements, request);
    let rows = patient(session, statements, &statements.dispatch_look, &begun.params()).await?;
    begun.read(statements, &rows)
}

/// A look on its way: from where it looks in each queue.
pub(super) struct Begun<'a> {
    request: LookRequest<'a>,
    looks: [Look; 4],
    backs: [i64; 4],
}

const QUEUES: [Queue; 4] = [Queue::Turns, Queue::Activities, Queue::Tagged, Queue::InSession];

impl<'a> Begun<'a> {
    pub(super) fn new(statements: &Statements, request: &LookRequest<'a>) -> Self {
        let now = Instant::now();
        let looks = QUEUES.map(|queue| statements.low_water.look(queue, request.node, now));
        Self { request: *request, looks, backs: looks.map(Look::back_ms) }
    }

    /// Whether it reads a queue from the beginning that took long to read so the last time.
    pub(super) fn may_be_slow(&self, statements: &Statements) -> bool {
        let marks = &statements.low_water;
        QUEUES
            .iter()
            .zip(self.looks)
            .any(|(queue, look)| look.back.is_none() && marks.is_slow(*queue, self.request.node))
    }

    pub(super) fn params(&self) -> [&(dyn ToSql + Sync); 15] {
        let Self { request, backs, .. } = self;
        [
            &request.node.id,
            &request.node.epoch,
            &request.names,
            &request.handlers,
            &request.activities,
            &request.tags.untagged,
            &request.tags.any,
            &request.tags.tags,
            &backs[0],
            &backs[1],
            &backs[2],
            &backs[3],
            &request.new_sessions,
            &request.replay.min,
            &request.replay.max,
        ]
    }

    /// Reads the answer, and moves the marks.
    pub(super) fn read(&self, statements: &Statements, rows: &[Row]) -> Result<Due> {
        let row =
            rows.first().ok_or_else(|| Error::new(ErrorKind::Internal, "look at the queues: no row"))?;
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
        let Self { request, looks, .. } = self;
        let some = !request.activities.is_empty();
        let found = [due.turns, due.activities, due.tagged, due.in_session];
        let asked = [
            !request.names.is_empty(),
            some && request.tags.untagged,
            some && request.tags.takes_tagged(),
            some && !request.tags.is_none(),
        ];
        let marks = &statements.low_water;
        for (index, queue) in QUEUES.into_iter().enumerate() {
            if found[index] {
                // Its claim has to look as far back.
                marks.found(queue, request.node, looks[index]);
            } else if asked[index] {
                marks.looked(queue, request.node, looks[index], None, Instant::now());
            }
        }
        Ok(due)
    }
}
