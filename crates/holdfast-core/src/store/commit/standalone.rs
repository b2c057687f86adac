//! Standalone activities that a batch queues and ends.

use super::{
    flight::columns,
    item::{ActivityCommit, ActivityEnd, Enqueue},
};

columns! {
    /// Tasks to queue.
    Queued<'a> of QueuedRow {
        instance: &'a str,
        name: &'a str,
        input: &'a str,
        retry: Option<&'a str>,
        timeout_ms: Option<i64>,
        tag: Option<&'a str>,
        delay_ms: i64,
        retention_ms: i64,
    }
}

columns! {
    /// Ids that callers chose: they may be those of tasks that ended meanwhile.
    Named<'a> of NamedRow {
        instance: &'a str,
    }
}

columns! {
    /// Tasks that ended.
    Ended<'a> of EndedRow {
        instance: &'a str,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        status: &'static str,
        result: &'a str,
        heartbeat: Option<&'a str>,
    }
}

/// What the batch does to standalone activities.
#[derive(Debug, Default)]
pub(super) struct Standalone<'a> {
    pub(super) queued: Queued<'a>,
    pub(super) named: Named<'a>,
    pub(super) ended: Ended<'a>,
    pub(super) ended_items: Vec<usize>,
    ends: Vec<End<'a>>,
}

#[derive(Debug)]
struct End<'a> {
    index: usize,
    activity: &'a ActivityCommit,
    end: &'a ActivityEnd,
}

impl<'a> Standalone<'a> {
    /// Adds tasks to queue.
    pub(super) fn queue(&mut self, enqueue: &'a Enqueue) {
        for task in &enqueue.tasks {
            self.queued.push(QueuedRow {
                instance: &task.id,
                name: &task.name,
                input: &task.input,
                retry: task.retry.as_deref(),
                timeout_ms: task.timeout_ms,
                tag: task.tag.as_deref(),
                delay_ms: task.delay_ms.max(0),
                retention_ms: task.retention_ms.max(-1),
            });
            if enqueue.named {
                self.named.push(NamedRow { instance: &task.id });
            }
        }
    }

    /// Adds the end of a claimed task.
    pub(super) fn end(&mut self, index: usize, activity: &'a ActivityCommit, end: &'a ActivityEnd) {
        self.ends.push(End { index, activity, end });
    }

    /// Puts the ends in key order: a batch and a waiter that wants several of its tasks kept never deadlock.
    pub(super) fn seal(&mut self) {
        self.ends.sort_by(|one, other| one.activity.key.instance.cmp(&other.activity.key.instance));
        for End { index, activity, end } in self.ends.drain(..) {
            self.ended.push(EndedRow {
                instance: &activity.key.instance,
                fence: activity.fence.0,
                owner: &activity.node.id,
                owner_epoch: activity.node.epoch,
                status: end.status(),
                result: end.result().as_str(),
                heartbeat: activity.heartbeat.as_ref().map(|details| details.as_str()),
            });
            self.ended_items.push(index);
        }
    }
}
