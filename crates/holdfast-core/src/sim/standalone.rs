//! Standalone activities of the model: queued and ended by commit batches, cancelled, tried again and forgotten by clients.

use super::model::{ActivityRow, EndedRow, LeaseRow, Model, NEVER};
use crate::store::{
    ActivityKey,
    commit::{ActivityCommit, ActivityEnd, CommitItem, CommitOutcome},
};

/// The key of a standalone activity.
pub(super) fn key_of(id: &str) -> ActivityKey {
    ActivityKey { instance: id.to_owned(), execution: 0, event: 0 }
}

impl Model {
    /// Queues those whose id is free; the first of an id makes it.
    pub(super) fn enqueue(&mut self, items: &[CommitItem], outcomes: &mut [CommitOutcome]) {
        let now = self.now;
        for (item, outcome) in items.iter().zip(outcomes) {
            let CommitItem::Enqueue(enqueue) = item else { continue };
            let mut created = Vec::with_capacity(enqueue.tasks.len());
            for task in &enqueue.tasks {
                let key = key_of(&task.id);
                let free = !self.ended.contains_key(&task.id) && !self.activities.contains_key(&key);
                created.push(free);
                if !free {
                    continue;
                }
                let due_at = now + task.delay_ms.max(0);
                let row = ActivityRow {
                    lease: LeaseRow { due_at, ..LeaseRow::default() },
                    name: task.name.clone(),
                    input: task.input.clone(),
                    attempt: 1,
                    retry: task.retry.clone(),
                    timeout_ms: task.timeout_ms,
                    tag: task.tag.clone(),
                    retention_ms: task.retention_ms.max(-1),
                    scheduled_at: due_at,
                    ..ActivityRow::default()
                };
                self.activities.insert(key, row);
            }
            *outcome = CommitOutcome::Enqueued { created };
        }
    }

    /// Ends one whose lease stands; it stays when it failed or somebody wants to read it.
    pub(super) fn end_standalone(&mut self, activity: &ActivityCommit, end: &ActivityEnd) -> CommitOutcome {
        let row = self.activities.get(&activity.key);
        if !row.is_some_and(|row| self.stands(&row.lease, activity.fence, &activity.node)) {
            return CommitOutcome::Fenced;
        }
        let stays = !matches!(end, ActivityEnd::Completed(_));
        let told = activity.heartbeat.as_ref().map(|details| details.as_str().to_owned());
        if let Some(mut row) = self.activities.remove(&activity.key) {
            row.heartbeat = told.or(row.heartbeat);
            let fence = row.lease.fence;
            let keep_until = if stays || row.retention_ms < 0 { NEVER } else { self.now + row.retention_ms };
            if stays || row.retention_ms != 0 {
                let result = end.result().as_str().to_owned();
                let ended_at = self.now;
                let ended = EndedRow { row, fence, status: end.status(), result, ended_at, keep_until };
                self.ended.insert(activity.key.instance.clone(), ended);
            }
        }
        CommitOutcome::Done { more_work: false }
    }

    /// Whether an earlier run ended it: it is gone, and what is kept of it has this fence.
    pub(super) fn was_standalone_settled(&self, activity: &ActivityCommit) -> bool {
        !self.activities.contains_key(&activity.key)
            && self.ended.get(&activity.key.instance).is_none_or(|row| row.fence == activity.fence.0)
    }

    /// Cancels one that has not ended; whether there was one.
    pub(super) fn cancel_standalone(&mut self, id: &str, error: &str, keep_ms: i64) -> bool {
        let Some(row) = self.activities.remove(&key_of(id)) else { return false };
        let keep_until = if row.retention_ms < 0 { NEVER } else { self.now + row.retention_ms.max(keep_ms) };
        let (result, ended_at) = (error.to_owned(), self.now);
        let ended = EndedRow { row, fence: 0, status: "Cancelled", result, ended_at, keep_until };
        self.ended.insert(id.to_owned(), ended);
        true
    }

    /// Queues one anew that ended without success; whether there was one.
    pub(super) fn retry_standalone(&mut self, id: &str) -> bool {
        if self.ended.get(id).is_none_or(|row| row.status == "Completed") {
            return false;
        }
        let Some(ended) = self.ended.remove(id) else { return false };
        let row = ActivityRow {
            lease: LeaseRow { due_at: self.now, ..LeaseRow::default() },
            attempt: 1,
            heartbeat_at: None,
            lost_by: None,
            scheduled_at: self.now,
            ..ended.row
        };
        self.activities.insert(key_of(id), row);
        true
    }
}
