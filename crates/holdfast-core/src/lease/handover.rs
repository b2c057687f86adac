//! Work that stays in this process: instances that are started here, activities that a turn queues and this node takes without
//! a claim, and results that go straight to the next turn of their instance.
//!
//! Invariant: nothing depends on it. What is not taken here goes through the queues.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_replay::MessageBody;

use crate::{
    clock,
    store::{
        ActivityKey, Fence, NodeKey,
        activity::ClaimedActivity,
        commit::{BelatedActivity, CommitOutcome, HandedTask, NewActivity, Start, StartLease},
        turn::{ClaimedTurn, TurnStart},
    },
};

/// Takes activities at once.
pub trait TakesTasks: Send + Sync {
    /// Whether anything new is begun here.
    fn claims(&self) -> bool;

    /// Whether an activity of this name ran too long without a row when it ran last.
    fn is_slow(&self, name: &str) -> bool;

    /// Keeps a slot for a task that is about to be queued; its lease in ms, or `None` when it goes through the queue.
    fn reserve(&self, task: &NewActivity) -> Option<i64>;

    /// So many kept slots are free again: their tasks are given over now, or were not queued.
    fn free(&self, slots: usize);

    /// Tasks that were queued under a lease of this node.
    fn take(&self, tasks: Vec<ClaimedActivity>, node: NodeKey, asked_at: Instant);

    /// Tasks without a row, under the lease of their turn.
    fn take_rowless(&self, tasks: Vec<ClaimedActivity>, node: NodeKey);

    /// Tasks without a row that are about to get one, with a lease: their ends wait for it.
    fn move_out(&self, keys: Vec<ActivityKey>) -> Vec<BelatedActivity>;

    /// These have their rows now; those without a lease are not this node's any more.
    fn moved(&self, keys: Vec<ActivityKey>, handed: &[HandedTask], node: &NodeKey, asked_at: Instant);

    /// The lease under which these ran without a row is not this node's any more.
    fn lose(&self, keys: Vec<ActivityKey>);
}

/// Begins the first turns of new instances at once.
pub trait TakesStarts: Send + Sync {
    /// Keeps a slot for the first turn of an instance that is about to be started; its lease, or `None` when it goes through
    /// the queue.
    fn reserve(&self, start: &Start) -> Option<StartLease>;

    /// A kept slot is free again: its turn begins now, or does not begin here.
    fn free(&self);

    /// A turn that is leased to this node.
    fn take(&self, turn: ClaimedTurn, node: NodeKey, asked_at: Instant);
}

/// Who begins first turns in this process; each leaves by being dropped.
#[derive(Default)]
pub struct Starters(Mutex<Vec<Weak<dyn TakesStarts>>>);

impl Starters {
    /// Adds one.
    pub fn offer(&self, taker: Weak<dyn TakesStarts>) {
        let mut takers = self.lock();
        takers.retain(|taker| taker.strong_count() > 0);
        takers.push(taker);
    }

    /// Keeps a slot for the first turn of a start, and marks it with its lease, when somebody has one.
    pub fn reserve(&self, start: &mut Start) -> Option<ReservedStart> {
        let waits = start.parent.is_some() || start.delay_ms.is_some() || start.start_at_ms.is_some();
        let takers: Vec<_> =
            if waits { Vec::new() } else { self.lock().iter().filter_map(Weak::upgrade).collect() };
        let (taker, lease) =
            takers.into_iter().find_map(|taker| taker.reserve(start).map(|lease| (taker, lease)))?;
        start.lease = Some(lease.clone());
        Some(ReservedStart { taker, start: start.clone(), node: lease.node, asked_at: clock::now() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn TakesStarts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot kept for a first turn. It is free again when this is dropped.
pub struct ReservedStart {
    taker: Arc<dyn TakesStarts>,
    start: Start,
    node: NodeKey,
    /// Before the commit was handed in.
    asked_at: Instant,
}

impl ReservedStart {
    /// Gives over the turn, when it is leased.
    pub fn settled(self, outcome: &CommitOutcome) {
        if let CommitOutcome::Begun { fence, now_ms } = outcome {
            self.taker.take(first_turn(&self.start, *fence, *now_ms), self.node.clone(), self.asked_at);
        }
    }
}

impl Drop for ReservedStart {
    fn drop(&mut self) {
        self.taker.free();
    }
}

/// The first turn of an instance, as a claim would have brought it.
fn first_turn(start: &Start, fence: Fence, now_ms: i64) -> ClaimedTurn {
    ClaimedTurn {
        instance: start.instance.clone(),
        fence,
        deliveries: 1,
        poisoned: false,
        name: start.name.clone(),
        version: start.version.clone(),
        execution: 1,
        history_len: 0,
        parked: false,
        cut_off: false,
        replay_version: None,
        last_fence: Fence(0),
        start: Some(TurnStart { input: start.input.clone(), carried: None, custom_status: None }),
        unread: false,
        parent: None,
        now_ms,
    }
}

/// Takes results at once.
pub trait TakesResults: Send + Sync {
    /// Begins the next turn of an instance with results that are about to be committed, of activities that ran for so long at
    /// most; false when they go through the inbox.
    fn take(&self, instance: &str, execution: i64, results: Vec<(i32, MessageBody)>, ran: Duration) -> bool;

    /// Activities without a row whose results are about to go through the inbox: those that run under a lease of this node
    /// still, which from here on ends as soon as it can.
    fn tells(&self, instance: &str, execution: i64, events: &[i32]) -> Vec<i32>;

    /// An activity without a row that ended without a result: it gets its row with the end of the lease. False when it does
    /// not run under a lease of this node any more.
    fn goes_back(&self, key: &ActivityKey, row: BelatedActivity) -> bool;

    /// Ends the lease that such activities ran under, unless a turn of their instance is in progress, which does.
    fn settle_kept(&self, instance: &str);
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

    /// Gives over what runs under the lease of its turn.
    pub fn give_rowless(&self, tasks: Vec<ClaimedActivity>, node: NodeKey) {
        self.free();
        if let Some(taker) = &self.taker {
            taker.take_rowless(tasks, node);
        }
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
