//! The store of the simulation: the tables in memory, one statement after the other, with the meaning of the SQL.
//!
//! Times are ms since 1970 by the database's clock: `started` is a statement's `statement_timestamp()`, [`Model::now`] its
//! `clock_timestamp()`. A row lock that somebody else holds is in [`Model::locked`]; whoever skips locked rows skips it, whoever
//! waits was kept waiting by the world. `npm run refine` holds it against PostgreSQL. It knows no low-water marks, which are the
//! statements' own.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_replay::{MessageBody, ParentLink, event::StoredEvent};

use crate::store::{ActivityKey, Fence, NodeKey};

/// A due time that never comes.
pub(super) const NEVER: i64 = i64::MAX;

/// A time before all others.
pub(super) const ALWAYS: i64 = i64::MIN;

/// What a test breaks to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mutant {
    /// Nothing.
    #[default]
    None,
    /// A settle asks for no fence.
    NoFence,
    /// A lease is stamped with the time at which its statement began to wait.
    LeaseBeforeWait,
    /// A claim does not count the delivery.
    Uncounted,
    /// A message does not make its instance due.
    NoWake,
    /// A commit that is run again finds nothing of its first run.
    Forgetful,
    /// A lease that ends unsettled is not marked as cut off.
    Unmarked,
}

/// What both queues have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub(super) due_at: i64,
    pub(super) fence: i64,
    pub(super) last_fence: i64,
    pub(super) owner: Option<(String, i64)>,
    pub(super) leased_at: i64,
    pub(super) deliveries: i32,
    pub(super) isolated: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TurnRow {
    pub(super) lease: LeaseRow,
    pub(super) parked: bool,
    /// Its last lease ended unsettled: activities may have run under it without a row.
    pub(super) cut_off: bool,
    pub(super) starts_at: Option<i64>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) execution: i64,
    pub(super) history_len: i32,
    /// Newest version of this package that wrote its history.
    pub(super) replay_version: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ActivityRow {
    pub(super) lease: LeaseRow,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) attempt: i32,
    pub(super) retry: Option<String>,
    pub(super) timeout_ms: Option<i64>,
    pub(super) heartbeat: Option<String>,
    pub(super) heartbeat_at: Option<i64>,
    /// The node that died while it held it last.
    pub(super) lost_by: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) session: Option<String>,
    /// Of a standalone one: how long it is kept.
    pub(super) retention_ms: i64,
    /// Name and version of the orchestration that scheduled it.
    pub(super) orchestration: Option<(String, String)>,
    pub(super) scheduled_at: i64,
}

/// A standalone activity that has ended.
#[derive(Debug, Clone)]
pub(super) struct EndedRow {
    /// As it was queued.
    pub(super) row: ActivityRow,
    pub(super) fence: i64,
    pub(super) status: &'static str,
    pub(super) result: String,
    pub(super) ended_at: i64,
    pub(super) keep_until: i64,
}

#[derive(Debug, Clone)]
pub(super) struct SessionRow {
    pub(super) owner: Option<String>,
    pub(super) leased_until: i64,
    pub(super) used_at: i64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct InstanceRow {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) execution: i64,
    pub(super) status: &'static str,
    pub(super) input: String,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) parked: bool,
    pub(super) poisoned: bool,
    pub(super) carried: Option<String>,
    pub(super) custom_status: Option<String>,
    pub(super) parent: Option<ParentLink>,
    pub(super) last_fence: i64,
    /// The version of this package that wrote the first turn of its execution.
    pub(super) replay_version: Option<i64>,
}

impl InstanceRow {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.status, "Completed" | "Failed" | "Cancelled")
    }
}

/// An execution that is closed by continue-as-new.
#[derive(Debug, Clone)]
pub(super) struct ClosedRow {
    pub(super) version: Option<String>,
    pub(super) input: String,
    pub(super) output: String,
}

#[derive(Debug, Clone)]
pub(super) struct InboxRow {
    pub(super) due_at: i64,
    pub(super) body: MessageBody,
}

impl InboxRow {
    /// Only timers wait for their time.
    pub(super) fn waits_until(&self) -> i64 {
        if matches!(self.body, MessageBody::TimerFired { .. }) { self.due_at } else { i64::MIN }
    }

    pub(super) fn source(&self) -> Option<(i64, u32)> {
        source(&self.body)
    }
}

/// The scheduling event that a message answers.
pub(super) fn source(body: &MessageBody) -> Option<(i64, u32)> {
    match body {
        MessageBody::ActivityCompleted { execution, source, .. }
        | MessageBody::ActivityFailed { execution, source, .. }
        | MessageBody::TimerFired { execution, source }
        | MessageBody::ChildCompleted { execution, source, .. }
        | MessageBody::ChildFailed { execution, source, .. } => Some((*execution, source.0)),
        MessageBody::EventRaised { .. }
        | MessageBody::QueueMessage { .. }
        | MessageBody::CancelRequested { .. } => None,
    }
}

#[derive(Debug, Clone)]
pub(super) struct NodeRow {
    pub(super) heartbeat_at: i64,
    pub(super) interval: i64,
    pub(super) stale_after: i64,
}

/// All tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// The database's clock.
    pub(super) now: i64,
    /// When the server came up.
    pub(super) up_since: i64,
    pub(super) mutant: Mutant,
    pub(super) nodes: BTreeMap<(String, i64), NodeRow>,
    pub(super) turns: BTreeMap<String, TurnRow>,
    pub(super) inbox: BTreeMap<(String, i64), InboxRow>,
    pub(super) activities: BTreeMap<ActivityKey, ActivityRow>,
    pub(super) ended: BTreeMap<String, EndedRow>,
    pub(super) sessions: BTreeMap<String, SessionRow>,
    /// Value and time, by instance and key.
    pub(super) values: BTreeMap<(String, String), (String, i64)>,
    pub(super) instances: BTreeMap<String, InstanceRow>,
    pub(super) executions: BTreeMap<(String, i64), ClosedRow>,
    pub(super) history: BTreeMap<(String, i64), Vec<StoredEvent>>,
    pub(super) keys: BTreeSet<(String, String)>,
    /// Of rows with equal due times a claim takes these first; the database may take any.
    pub(super) preferred: BTreeSet<ActivityKey>,
    /// Turn rows that a session outside has locked.
    pub(super) locked: BTreeSet<String>,
    /// Instances that were written since the oracle looked.
    pub(super) dirty: BTreeSet<String>,
    /// What went wrong inside a statement: invariant and text.
    pub(super) wrong: Vec<(&'static str, String)>,
    /// The clock was set back at some time.
    pub(super) went_back: bool,
    pub(super) fences: i64,
    pub(super) epochs: i64,
    pub(super) message_ids: i64,
}

impl Model {
    pub(super) fn next_fence(&mut self) -> i64 {
        self.fences += 1;
        self.fences
    }

    pub(super) fn next_epoch(&mut self) -> i64 {
        self.epochs += 1;
        self.epochs
    }

    pub(super) fn is_node(&self, node: &NodeKey) -> bool {
        self.nodes.contains_key(&(node.id.clone(), node.epoch))
    }

    /// Whether the lease is the row's and its holder's, or nobody's.
    pub(super) fn stands(&self, lease: &LeaseRow, fence: Fence, node: &NodeKey) -> bool {
        if self.mutant == Mutant::NoFence {
            return true;
        }
        lease.fence == fence.0 && lease.owner.as_ref().is_none_or(|owner| is(owner, node))
    }

    /// A message, unless one answers the same event already; whether it was put there.
    pub(super) fn put_message(&mut self, instance: &str, row: InboxRow) -> bool {
        let answered = row.source();
        if answered.is_some() && self.messages(instance).any(|(_, other)| other.source() == answered) {
            return false;
        }
        self.message_ids += 1;
        self.inbox.insert((instance.to_owned(), self.message_ids), row);
        self.dirty.insert(instance.to_owned());
        true
    }

    pub(super) fn messages(&self, instance: &str) -> impl Iterator<Item = (i64, &InboxRow)> {
        let range = (instance.to_owned(), i64::MIN)..=(instance.to_owned(), i64::MAX);
        self.inbox.range(range).map(|((_, id), row)| (*id, row))
    }

    pub(super) fn has_cancel(&self, instance: &str) -> bool {
        self.messages(instance).any(|(_, row)| matches!(row.body, MessageBody::CancelRequested { .. }))
    }

    pub(super) fn events(&self, instance: &str, execution: i64) -> &[StoredEvent] {
        self.history.get(&(instance.to_owned(), execution)).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn is(owner: &(String, i64), node: &NodeKey) -> bool {
    owner.0 == node.id && owner.1 == node.epoch
}

impl TurnRow {
    /// Its history may be longer than it says, and an activity of it may have no row.
    pub(super) fn is_behind(&self) -> bool {
        self.lease.owner.is_some() || self.cut_off
    }
}

impl LeaseRow {
    pub(super) fn is_owned_by(&self, node: &NodeKey) -> bool {
        self.owner.as_ref().is_some_and(|owner| is(owner, node))
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.isolated || self.deliveries >= 2
    }

    /// Nobody has it any more.
    pub(super) fn disown(&mut self) {
        self.owner = None;
        self.leased_at = 0;
    }
}
