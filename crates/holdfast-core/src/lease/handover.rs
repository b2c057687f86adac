//! Work that stays in this process: activities that a turn queues and this node takes without a claim, and results that
//! go straight to the next turn of their instance.
//!
//! Invariant: nothing depends on it. What is not taken here goes through the queues.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use holdfast_replay::MessageBody;

use crate::store::{NodeKey, activity::ClaimedActivity, commit::NewActivity};

/// Takes activities at once.
pub trait TakesTasks: Send + Sync {
    /// Keeps a slot for a task that is about to be queued; its lease in ms, or `None` when it goes through the queue.
    fn reserve(&self, task: &NewActivity) -> Option<i64>;

    /// So many kept slots are free again: their tasks are given over now, or were not queued.
    fn free(&self, slots: usize);

    /// Tasks that were queued under a lease of this node.
    fn take(&self, tasks: Vec<ClaimedActivity>, node: NodeKey, asked_at: Instant);
}

/// Takes results at once.
pub trait TakesResults: Send + Sync {
    /// Begins the next turn of an instance with results that are about to be committed; false when they go through the
    /// inbox.
    fn take(&self, instance: &str, execution: i64, results: Vec<(i32, MessageBody)>) -> bool;
}

/// Slots kept for tasks that are about to be queued. They are free again when it is dropped.
#[derive(Default)]
pub struct Reserved {
    taker: Option<Arc<dyn TakesTasks>>,
    slots: AtomicUsize,
}

impl Reserved {
    /// Keeps slots for those of the tasks that are taken here, and marks these with their lease.
    pub fn of(taker: Option<Arc<dyn TakesTasks>>, tasks: &mut [NewActivity]) -> Self {
        let Some(taker) = taker else { return Self::default() };
        let mut slots = 0;
        for task in tasks {
            task.lease_ms = taker.reserve(task);
            slots += usize::from(task.lease_ms.is_some());
        }
        Self { taker: Some(taker), slots: AtomicUsize::new(slots) }
    }

    /// Gives over what was queued under a lease.
    pub fn give(&self, tasks: Vec<ClaimedActivity>, node: NodeKey, asked_at: Instant) {
        self.free();
        if let Some(taker) = &self.taker
            && !tasks.is_empty()
        {
            taker.take(tasks, node, asked_at);
        }
    }

    fn free(&self) {
        let slots = self.slots.swap(0, Ordering::AcqRel);
        if let Some(taker) = &self.taker
            && slots > 0
        {
            taker.free(slots);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.free();
    }
}
