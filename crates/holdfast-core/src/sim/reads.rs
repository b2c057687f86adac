//! Statements of the model that read: looks, what is gone or taken, and what a turn starts from; and the beats of bodies.

use std::time::Duration;

use holdfast_replay::{Message, MessageBody, event::StoredEvent};

use super::{
    claims::{by_tag, runs},
    model::{ActivityRow, LeaseRow, Model, NEVER, TurnRow},
};
use crate::{
    error::Result,
    store::{
        ActivityKey, Fence, NodeKey, TagFilter,
        activity::Beat,
        look::{Due, LookRequest},
        replay_version::ReplayRange,
        turn::Open,
    },
};

/// What a look asks for, owned.
#[derive(Debug, Clone)]
pub(super) struct Looking {
    node: NodeKey,
    names: Vec<String>,
    handlers: Vec<String>,
    activities: Vec<String>,
    tags: TagFilter,
    new_sessions: bool,
    replay: ReplayRange,
}

impl Looking {
    pub(super) fn of(request: &LookRequest<'_>) -> Self {
        Self {
            node: request.node.clone(),
            names: request.names.to_vec(),
            handlers: request.handlers.to_vec(),
            activities: request.activities.to_vec(),
            tags: request.tags.clone(),
            new_sessions: request.new_sessions,
            replay: request.replay,
        }
    }
}

impl Model {
    /// What a look finds.
    pub(super) fn look(&self, started: i64, wanted: &Looking) -> Due {
        let mut due = Due {
            turns: false,
            turn_suspects: false,
            activities: false,
            activity_suspects: false,
            tagged: false,
            in_session: false,
            next: None,
        };
        let mut next = NEVER;
        let Looking { node, names, handlers, activities, tags, new_sessions, replay } = wanted;
        let served = |row: &&TurnRow| !names.is_empty() && runs(row, names, handlers, *replay);
        for row in self.turns.values().filter(served) {
            if row.lease.due_at > started {
                next = next.min(row.lease.due_at);
            } else if !row.lease.is_owned_by(node) {
                *(if row.lease.is_suspect() { &mut due.turn_suspects } else { &mut due.turns }) = true;
            }
        }
        let served = |row: &&ActivityRow| activities.contains(&row.name) && by_tag(tags, row);
        for row in self.activities.values().filter(served) {
            if row.lease.due_at > started {
                next = next.min(row.lease.due_at);
            } else if !row.lease.is_owned_by(node)
                && self.session_serves(row, started, &node.id, *new_sessions)
            {
                *(match (&row.session, &row.tag) {
                    (Some(_), _) => &mut due.in_session,
                    _ if row.lease.is_suspect() => &mut due.activity_suspects,
                    (None, Some(_)) => &mut due.tagged,
                    (None, None) => &mut due.activities,
                }) = true;
            }
        }
        if next < NEVER {
            due.next = Some(Duration::from_millis((next - started).max(0).unsigned_abs()));
        }
        due
    }

    pub(super) fn gone(&self, turns: bool, node: &NodeKey, fences: &[Fence]) -> Vec<Fence> {
        let leases: Vec<&LeaseRow> = if turns {
            self.turns.values().map(|row| &row.lease).collect()
        } else {
            self.activities.values().map(|row| &row.lease).collect()
        };
        let is_held =
            |fence: &Fence| leases.iter().any(|lease| lease.is_owned_by(node) && lease.fence == fence.0);
        fences.iter().copied().filter(|fence| !is_held(fence)).collect()
    }

    pub(super) fn taken(&self, tasks: &[(Fence, ActivityKey)]) -> Vec<Fence> {
        let is_taken = |key: &ActivityKey| self.activities.contains_key(key) || self.is_answered(key);
        tasks.iter().filter(|(_, key)| is_taken(key)).map(|(fence, _)| *fence).collect()
    }

    /// A result of this task is in the inbox or in the history.
    pub(super) fn is_answered(&self, key: &ActivityKey) -> bool {
        let event = key.event.unsigned_abs();
        let told = self.messages(&key.instance).any(|(_, row)| row.source() == Some((key.execution, event)));
        if key.execution == 0 {
            return self.ended.get(&key.instance).is_some_and(|row| row.status != "Cancelled");
        }
        let ends = ["ActivityCompleted", "ActivityFailed"];
        let recorded = |stored: &StoredEvent| {
            stored.source.is_some_and(|source| source.0 == event) && ends.contains(&stored.kind.as_str())
        };
        told || self.events(&key.instance, key.execution).iter().any(recorded)
    }

    pub(super) fn beat(&mut self, beats: &[Beat]) -> Vec<Fence> {
        let mut stored = Vec::new();
        for beat in beats {
            if let Some(row) = self.activities.get_mut(&beat.key)
                && row.lease.fence == beat.fence.0
            {
                row.heartbeat = Some(beat.details.as_str().to_owned());
                row.heartbeat_at = Some(self.now);
                stored.push(beat.fence);
            }
        }
        stored
    }

    pub(super) fn inbox(
        &self,
        started: i64,
        instances: &[String],
        limit: i64,
    ) -> Vec<(String, Result<Message>)> {
        let limit = usize::try_from(limit).unwrap_or(0);
        let read = |instance: &String| {
            let due = self.messages(instance).filter(|(_, row)| row.waits_until() <= started).take(limit);
            due.map(|(id, row)| (instance.clone(), Ok(Message { id, body: row.body.clone() })))
                .collect::<Vec<_>>()
        };
        instances.iter().flat_map(read).collect()
    }

    pub(super) fn cancels(&self, instances: &[String]) -> Vec<(String, Message)> {
        let first = |instance: &String| {
            let mut asked = self
                .messages(instance)
                .filter(|(_, row)| matches!(row.body, MessageBody::CancelRequested { .. }));
            asked.next().map(|(id, row)| (instance.clone(), Message { id, body: row.body.clone() }))
        };
        instances.iter().filter_map(first).collect()
    }

    pub(super) fn read_history(&self, keys: &[(String, i64)]) -> Vec<(String, Result<StoredEvent>)> {
        let read = |(instance, execution): &(String, i64)| {
            let events = self.events(instance, *execution).iter();
            events.map(|event| (instance.clone(), Ok(event.clone()))).collect::<Vec<_>>()
        };
        keys.iter().flat_map(read).collect()
    }

    pub(super) fn open(&self, instance: &str, execution: i64) -> Open {
        let own = |key: &&ActivityKey| key.instance == instance && key.execution == execution;
        Open {
            activities: self.activities.keys().filter(own).map(|key| key.event).collect(),
            children: self
                .instances
                .iter()
                .filter(|(_, row)| !row.is_ended())
                .filter(|(_, row)| {
                    row.parent
                        .as_ref()
                        .is_some_and(|parent| parent.instance == instance && parent.execution == execution)
                })
                .map(|(id, _)| id.clone())
                .collect(),
            last_event: i32::try_from(self.events(instance, execution).len()).unwrap_or(i32::MAX),
        }
    }
}
