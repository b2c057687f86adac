//! The items that wait for one committer worker, in order.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::{
    clock,
    commit::{
        Settled,
        aside::{Aside, Held},
        riders::Riders,
    },
    limits,
    store::commit::{ActivityOutcome, CommitItem, TurnCommit},
};

/// An item with what is to happen when it is settled.
pub(super) struct Pending {
    pub(super) item: CommitItem,
    pub(super) bytes: usize,
    /// Failed runs so far.
    pub(super) runs: u32,
    /// Present for a client's item: its place in the queue, and the sign that runs are bounded.
    pub(super) place: Option<OwnedSemaphorePermit>,
    pub(super) settled: Settled,
}

#[derive(Default)]
struct State {
    items: VecDeque<Pending>,
    aside: Aside,
    riders: Riders,
    closed: bool,
}

/// A queue with one consumer.
pub(super) struct Queue {
    batch_items: usize,
    state: Mutex<State>,
    ready: Notify,
}

impl Queue {
    /// An empty queue that gives at most so many items at once.
    pub(super) fn new(batch_items: usize) -> Self {
        Self { batch_items, state: Mutex::default(), ready: Notify::new() }
    }

    /// Appends an item; hands back whom to tell when the queue is closed.
    pub(super) fn push(&self, pending: Pending) -> Result<(), Settled> {
        let mut state = self.lock();
        if state.closed {
            return Err(pending.settled);
        }
        let riders = state.riders.of(&pending.item);
        state.items.extend(riders);
        state.items.push_back(pending);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Keeps a result for the turn that uses it; it is appended with that turn, or when that is late.
    pub(super) fn push_riding(&self, pending: Pending, now: Instant) -> Result<(), Settled> {
        let mut state = self.lock();
        if state.closed {
            return Err(pending.settled);
        }
        state.riders.put(pending, now);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Appends items together; those of a closed queue are dropped, which tells their senders.
    pub(super) fn push_all(&self, pending: Vec<Pending>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.items.extend(pending);
        drop(state);
        self.ready.notify_one();
    }

    /// Puts failed items back in front, in their order.
    pub(super) fn push_front(&self, items: Vec<Pending>) {
        let mut state = self.lock();
        for pending in items.into_iter().rev() {
            state.items.push_front(pending);
        }
    }

    /// Sets items aside whose rows are locked.
    pub(super) fn put_aside(&self, held: Vec<Held>, now: Instant) {
        self.lock().aside.put(held, now);
    }

    /// What is aside, when it is time to look at its rows again.
    pub(super) fn take_aside(&self, now: Instant) -> Vec<Held> {
        self.lock().aside.take_due(now)
    }

    /// Waits until there is something to do; false when the queue is closed and empty.
    pub(super) async fn ready(&self) -> bool {
        loop {
            let pause = {
                let mut state = self.lock();
                let riding = state.riders.pause(clock::now());
                if !state.items.is_empty() || riding.is_some_and(|pause| pause.is_zero()) {
                    return true;
                }
                if state.closed && state.aside.is_empty() {
                    return false;
                }
                [state.aside.pause(clock::now()), riding].into_iter().flatten().min()
            };
            match pause {
                Some(Duration::ZERO) => return true,
                Some(pause) => {
                    tokio::select! {
                        biased;
                        () = self.ready.notified() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                None => self.ready.notified().await,
            }
        }
    }

    /// Takes what is there, up to the bounds of one batch. What touches an instance of which something is aside goes
    /// there too.
    pub(super) fn take(&self, now: Instant) -> Vec<Pending> {
        let mut state = self.lock();
        let late = state.riders.late(now);
        state.items.extend(late);
        let locked = state.aside.instances();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < self.batch_items {
            let Some(front) = state.items.front() else { break };
            if !batch.is_empty() && bytes + front.bytes > limits::COMMIT_BATCH_BYTES {
                break;
            }
            let Some(front) = state.items.pop_front() else { break };
            if !locked.is_empty() && front.item.instances().iter().any(|instance| locked.contains(*instance))
            {
                state.aside.join(Held { since: now, pending: front });
                continue;
            }
            bytes += front.bytes;
            batch.push(front);
        }
        batch
    }

    /// Takes everything that is left.
    pub(super) fn drain(&self) -> Vec<Pending> {
        let mut state = self.lock();
        let mut all = state.aside.drain();
        all.extend(state.riders.drain());
        all.extend(state.items.drain(..));
        all
    }

    /// Refuses new items; the worker ends once the queue is empty.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        // Nobody brings the turns any more.
        let riders = state.riders.drain();
        state.items.extend(riders);
        drop(state);
        self.ready.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Payload bytes of an item, for the bound of a batch.
pub(super) fn weigh(item: &CommitItem) -> usize {
    match item {
        CommitItem::Turn(turn) => weigh_turn(turn),
        CommitItem::Activity(activity) => match &activity.outcome {
            ActivityOutcome::Ended(body) => body.payload_bytes(),
            ActivityOutcome::StandaloneEnded(end) => end.result().as_str().len(),
            ActivityOutcome::Retry { .. } => 0,
        },
        CommitItem::Send(send) => send.body.payload_bytes(),
        CommitItem::Start(start) => start.input.len(),
        CommitItem::Enqueue(enqueue) => {
            enqueue.tasks.iter().map(|task| task.input.len() + limits::ENQUEUE_ROW_BYTES).sum()
        }
    }
}

fn weigh_turn(turn: &TurnCommit) -> usize {
    let events: usize = turn.events.iter().map(|event| event.data.len()).sum();
    let activities: usize = turn.activities.iter().map(|activity| activity.input.len()).sum();
    let starts: usize = turn.starts.iter().map(|start| start.input.len()).sum();
    events + activities + starts
}
