//! The items that wait for the workers of one part of the committer, in order.
//!
//! What touches an instance that a running batch touches stays until that batch is over, so that the items of one instance go one
//! after the other, however many workers there are.

use std::{
    collections::{HashSet, VecDeque},
    future::pending,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::{
    clock,
    commit::{
        Settled,
        aside::{Aside, Held},
        nap::Nap,
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
    /// The instances of the batches that run.
    under_way: HashSet<String>,
    /// So many items are here because of them.
    left: usize,
    /// A result that is to wait for its turn has to wake the worker, see [`Nap`].
    asleep: bool,
}

/// Items that run as one batch. Dropped, it lets go of their instances.
pub(super) struct Batch {
    queue: Arc<Queue>,
    instances: Vec<String>,
    items: Vec<Pending>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn take_items(&mut self) -> Vec<Pending> {
        mem::take(&mut self.items)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.instances.is_empty() {
            return;
        }
        let mut state = self.queue.lock();
        for instance in &self.instances {
            state.under_way.remove(instance);
        }
        if mem::take(&mut state.left) > 0 {
            self.queue.tell(state);
        }
    }
}

/// See the module.
pub(super) struct Queue {
    batch_items: usize,
    crowd_items: usize,
    state: Mutex<State>,
    ready: Notify,
    crowd: Notify,
}

impl Queue {
    /// An empty queue that gives at most so many items at once, and so many are a crowd.
    pub(super) fn new(batch_items: usize, crowd_items: usize) -> Self {
        Self { batch_items, crowd_items, state: Mutex::default(), ready: Notify::new(), crowd: Notify::new() }
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
        self.tell(state);
        Ok(())
    }

    /// Keeps a result for the turn that uses it; it is appended with that turn, or when that is late.
    pub(super) fn push_riding(&self, pending: Pending, now: Instant) -> Result<(), Settled> {
        let mut state = self.lock();
        if state.closed {
            return Err(pending.settled);
        }
        state.riders.put(pending, now);
        let asleep = state.asleep;
        drop(state);
        if asleep {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Appends items together; those of a closed queue are dropped, which tells their senders.
    pub(super) fn push_all(&self, pending: Vec<Pending>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.items.extend(pending);
        self.tell(state);
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
    pub(super) async fn ready(&self, nap: &mut Nap) -> bool {
        nap.begin();
        loop {
            let pause = {
                let mut state = self.lock();
                state.asleep = false;
                let riding = state.riders.pause(clock::now());
                if state.items.len() > state.left || riding.is_some_and(|pause| pause.is_zero()) {
                    return true;
                }
                if state.closed && state.items.is_empty() && state.aside.is_empty() {
                    return false;
                }
                state.asleep = nap.is_over() && riding.is_none();
                [state.aside.pause(clock::now()), riding].into_iter().flatten().min()
            };
            if pause.is_some_and(|pause| pause.is_zero()) {
                return true;
            }
            let pause = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.ready.notified() => {}
                () = pause => {}
                () = nap.end() => {}
            }
        }
    }

    /// Waits until so much is there that it is worth a batch beside the one that runs; false when the queue is closed and the rest
    /// is for one worker.
    pub(super) async fn crowded(&self) -> bool {
        loop {
            {
                let state = self.lock();
                if self.is_crowded(&state) {
                    return true;
                }
                if state.closed {
                    return false;
                }
            }
            self.crowd.notified().await;
        }
    }

    /// Takes what is there, up to the bounds of one batch. What touches an instance of which something is aside goes
    /// there too.
    pub(super) fn take(self: &Arc<Self>, now: Instant) -> Batch {
        let mut state = self.lock();
        let late = state.riders.late(now);
        state.items.extend(late);
        let locked = state.aside.instances();
        let mut batch = Batch { queue: Arc::clone(self), instances: Vec::new(), items: Vec::new() };
        let (mut left, mut blocked) = (VecDeque::new(), HashSet::new());
        let mut bytes = 0;
        while batch.items.len() < self.batch_items {
            let Some(front) = state.items.front() else { break };
            if !batch.items.is_empty() && bytes + front.bytes > limits::COMMIT_BATCH_BYTES {
                break;
            }
            let Some(front) = state.items.pop_front() else { break };
            let touches = |some: &HashSet<String>| {
                !some.is_empty() && front.item.instances().iter().any(|instance| some.contains(*instance))
            };
            if touches(&locked) {
                state.aside.join(Held { since: now, pending: front });
            } else if touches(&state.under_way) || touches(&blocked) {
                blocked.extend(front.item.instances().into_iter().map(str::to_owned));
                left.push_back(front);
            } else {
                bytes += front.bytes;
                batch.instances.extend(front.item.instances().into_iter().map(str::to_owned));
                batch.items.push(front);
            }
        }
        state.left = left.len();
        if !left.is_empty() {
            left.append(&mut state.items);
            state.items = left;
        }
        state.under_way.extend(batch.instances.iter().cloned());
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
        self.crowd.notify_one();
    }

    fn is_crowded(&self, state: &State) -> bool {
        state.items.len() >= state.left + self.crowd_items
    }

    /// Something was added, or may go now.
    fn tell(&self, state: MutexGuard<'_, State>) {
        let crowded = self.is_crowded(&state);
        drop(state);
        self.ready.notify_one();
        if crowded {
            self.crowd.notify_one();
        }
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
    let tasks = turn.activities.iter().chain(turn.belated.iter().map(|row| &row.task));
    let starts = turn.starts.iter().map(|start| start.input.len());
    events + tasks.map(|task| task.input.len()).chain(starts).sum::<usize>()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use holdfast_replay::MessageBody;

    use super::*;
    use crate::store::commit::Send;

    pub(in crate::commit) fn send(instance: &str) -> Pending {
        let body = MessageBody::CancelRequested { reason: String::new() };
        let item = CommitItem::Send(Send { instance: instance.to_owned(), body, dedup_key: None });
        Pending { item, bytes: 0, runs: 0, place: None, settled: Box::new(|_| {}) }
    }

    pub(in crate::commit) fn names(batch: &[Pending]) -> Vec<&str> {
        batch.iter().flat_map(|pending| pending.item.instances()).collect()
    }

    fn queue_of(instances: &[&str]) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(512, limits::COMMIT_CROWD));
        for instance in instances {
            assert!(queue.push(send(instance)).is_ok());
        }
        queue
    }

    #[tokio::test]
    async fn items_of_one_instance_wait_for_the_batch_that_has_it() {
        let now = Instant::now();
        let queue = queue_of(&["a", "b"]);
        let mut first = queue.take(now);
        assert_eq!(names(&first.take_items()), ["a", "b"]);
        for instance in ["a", "c", "a"] {
            assert!(queue.push(send(instance)).is_ok());
        }
        let second = queue.take(now);
        assert_eq!(names(&second.items), ["c"]);
        assert!(queue.take(now).is_empty());
        let mut nap = Nap::default();
        let mut ready = std::pin::pin!(queue.ready(&mut nap));
        assert!(ready.as_mut().now_or_never().is_none(), "nothing may go now");
        drop(first);
        assert!(ready.await);
        assert_eq!(names(&queue.take(now).items), ["a", "a"]);
    }

    #[tokio::test]
    async fn the_second_worker_takes_what_has_gathered_and_ends_with_the_queue() {
        let gathered: Vec<String> = (1..limits::COMMIT_CROWD).map(|n| n.to_string()).collect();
        let queue = queue_of(&gathered.iter().map(String::as_str).collect::<Vec<_>>());
        let mut crowded = std::pin::pin!(queue.crowded());
        assert!(crowded.as_mut().now_or_never().is_none());
        assert!(queue.push(send("last")).is_ok());
        assert!(crowded.await);
        let first = queue.take(Instant::now());
        for instance in &gathered {
            assert!(queue.push(send(instance)).is_ok());
        }
        assert!(queue.take(Instant::now()).is_empty());
        assert!(queue.push(send("more")).is_ok());
        let mut crowded = std::pin::pin!(queue.crowded());
        assert!(crowded.as_mut().now_or_never().is_none(), "what the batch holds up does not count");
        drop(first);
        assert!(crowded.await);
        queue.take(Instant::now());
        assert!(queue.crowded().now_or_never().is_none());
        queue.close();
        assert!(!queue.crowded().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_that_waits_is_not_late_whether_the_worker_naps_or_sleeps() {
        for rest in [Duration::ZERO, limits::RIDE / 2, limits::RIDE * 5] {
            let queue = queue_of(&["before"]);
            let mut nap = Nap::default();
            assert!(queue.ready(&mut nap).await, "the nap begins at an earlier batch");
            tokio::time::advance(limits::RIDE / 5).await;
            queue.take(clock::now());
            let mut ready = std::pin::pin!(queue.ready(&mut nap));
            assert!(tokio::time::timeout(rest, ready.as_mut()).await.is_err());
            let put = clock::now();
            assert!(queue.push_riding(send("a"), put).is_ok());
            assert!(ready.await);
            assert_eq!(clock::since(put), limits::RIDE, "after {rest:?}");
            assert_eq!(names(&queue.take(clock::now()).items), ["a"]);
        }
    }
}
