//! Turns that begin without a claim: the first turns of instances that are started here, under a lease of their own, and turns
//! with results of activities that have just ended here, on a frame that is still the instance's last word.
//!
//! The latter hold no lease: such a turn is settled under the fence that the last one left behind, as long as nobody has claimed
//! the row: whoever claims it first has it, and the results are in the inbox then. The code of a local step runs under a lease
//! only, so JavaScript abandons such a turn when it comes to one; from then on turns of that orchestration are claimed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use holdfast_replay::{Activation, Message, MessageBody};

use crate::{
    clock,
    lease::{Kind, Return, TakesTasks},
    store::{
        ActivityKey, Fence, NodeKey,
        activity::ClaimedActivity,
        commit::{HandedTask, NewActivity, TurnCommit},
        turn::ClaimedTurn,
    },
    turn::{Flight, LiveFrame, Next, TurnRunner, load::Loaded, park::Unreadable},
};

impl TurnRunner {
    /// From here on activities that turns queue are taken at once where that is possible.
    pub(crate) fn tasks_to(&self, taker: Weak<dyn TakesTasks>) {
        // It is told once, at the start.
        let _ = self.tasks.set(taker);
    }

    /// Whether the last claim left turns of others in the queue.
    pub(crate) fn set_backlog(&self, backlog: bool) {
        self.backlog.store(backlog, Ordering::Release);
    }

    /// Who takes the activities of a turn; nobody when it may be what kills its process.
    pub(super) fn taker(&self, isolated: bool) -> Option<Arc<dyn TakesTasks>> {
        if isolated { None } else { self.tasks.get().and_then(Weak::upgrade) }
    }

    /// Keeps a slot for the first turn of an instance that is about to be started, if one is free; while older work waits in the
    /// queue never more than every second one.
    pub(crate) fn reserve(&self) -> bool {
        let free = self.slots.saturating_sub(self.lock().len());
        let most = if self.backlog.load(Ordering::Acquire) { free / 2 } else { free };
        let keep = |kept: usize| (kept < most).then_some(kept + 1);
        self.reserved.fetch_update(Ordering::AcqRel, Ordering::Acquire, keep).is_ok()
    }

    /// A kept slot is free again.
    pub(crate) fn unreserve(&self) {
        self.reserved.fetch_sub(1, Ordering::AcqRel);
    }

    /// Begins the first turn of an instance that was started under a lease of this node. When this node claims nothing any more
    /// it goes back, as a turn does that cannot begin.
    pub(crate) fn begin_started(
        self: &Arc<Self>,
        claimed: ClaimedTurn,
        node: &NodeKey,
        asked_at: Instant,
        claims: bool,
    ) {
        let fence = claimed.fence;
        self.keeper.hold(Kind::Turn, fence, asked_at);
        if !claims {
            return self.returns.push(Kind::Turn, fence, Return::Unstarted);
        }
        self.counters.orch_items_fetched.add(1);
        self.provider.counters().local_starts.add(1);
        // Of a deleted instance with the same id a turn may still be in progress.
        let fresh = self.adopt(vec![claimed], node);
        self.provider.counters().cold_turns.add(fresh.len() as u64);
        let nothing = &mut Loaded::default();
        let (activations, unreadable) = self.activate(fresh, BTreeMap::new(), nothing, node, false);
        self.outbox.push(activations, Vec::new());
        for Unreadable { claimed, .. } in unreadable {
            // A claim reads it again, and sets it aside.
            self.take_out(&claimed.instance);
            self.returns.push(Kind::Turn, fence, Return::Unstarted);
        }
    }

    /// Begins the next turn of an instance with these results, or those of them that it waits for, of activities that ran for so
    /// long at most; false when it cannot begin here. It needs no free slot: the activities that ended had one each, so these bound it, and claims make room.
    pub(crate) fn begin(
        &self,
        instance: &str,
        execution: i64,
        results: Vec<(i32, MessageBody)>,
        ran: Duration,
    ) -> bool {
        let mut table = self.lock();
        let Some((LiveFrame { frame, execution, proof, next: Some(next) }, leased)) =
            table.take_next(instance, execution)
        else {
            return false;
        };
        let mut execution = execution;
        let passed_ms = i64::try_from(clock::since(next.since).as_millis()).unwrap_or(i64::MAX / 2);
        let now_ms = next.claimed.now_ms + passed_ms;
        // They have no row: their numbers are of no use to the commit.
        let messages = results.into_iter().map(|(event, body)| Message { id: i64::from(event), body });
        let accepted = execution.accept(messages.collect(), now_ms);
        self.provider.counters().messages_dropped.add(accepted.dropped.len() as u64);
        // One that is not wanted any more has lost its row: a turn that named it would not stand.
        let events: Vec<i32> =
            accepted.accepted.into_iter().filter_map(|id| i32::try_from(id).ok()).collect();
        if events.is_empty() {
            let live = LiveFrame { frame, execution, proof, next: Some(next) };
            let evicted = table.keep_next(instance, live, leased);
            drop(table);
            self.outbox.evict(evicted);
            return false;
        }
        self.counters.orch_items_fetched.add(1);
        self.provider.counters().local_turns.add(1);
        self.provider.counters().warm_turns.add(1);
        let activation = Activation { unleased: !leased, ..execution.activation(frame) };
        let Next { claimed, node, version, .. } = *next;
        let short = ran < table.kept.lasts();
        table.insert(Flight {
            leased,
            execution: Some(execution),
            results: events,
            short,
            ..Flight::new(ClaimedTurn { now_ms, ..claimed }, node, version, frame)
        });
        drop(table);
        self.outbox.push(vec![activation], Vec::new());
        true
    }
}

/// The activities of a turn that this node took, as claims would have brought them.
pub(super) fn taken(queued: &mut Queued, handed: &[HandedTask], now_ms: i64) -> Vec<ClaimedActivity> {
    let Queued { instance, execution, name, version, tasks, .. } = queued;
    let mut claimed = Vec::with_capacity(handed.len());
    for HandedTask { event, fence, scheduled_at_ms } in handed {
        let Some(at) = tasks.iter().position(|task| task.event == *event) else { continue };
        let task = tasks.swap_remove(at);
        let key = ActivityKey { instance: instance.clone(), execution: *execution, event: *event };
        let task = as_claimed(key, *fence, task, (name, version), now_ms);
        claimed.push(ClaimedActivity { scheduled_at_ms: *scheduled_at_ms, ..task });
    }
    claimed
}

/// A task of a turn of this orchestration, by name and version, that this node takes at this moment, as a claim would have brought it.
pub(super) fn as_claimed(
    key: ActivityKey,
    fence: Fence,
    task: NewActivity,
    (name, version): (&str, &str),
    now_ms: i64,
) -> ClaimedActivity {
    ClaimedActivity {
        key,
        fence,
        deliveries: 1,
        poisoned: false,
        attempt: 1,
        name: task.name,
        input: task.input,
        retry: task.retry,
        heartbeat: None,
        timeout_ms: task.timeout_ms,
        tag: task.tag,
        session: None,
        orchestration_name: Some(name.to_owned()),
        orchestration_version: Some(version.to_owned()),
        scheduled_at_ms: now_ms,
        now_ms,
    }
}

/// What is kept of a turn's commit for the activities that this node takes.
pub(super) struct Queued {
    instance: String,
    execution: i64,
    name: String,
    version: String,
    tasks: Vec<NewActivity>,
    /// Before the commit was handed in.
    pub(super) asked_at: Instant,
    pub(super) node: NodeKey,
}

impl Queued {
    /// Of the tasks that are marked with a lease; most turns have none.
    pub(super) fn of(commit: &TurnCommit) -> Option<Self> {
        let leased = commit.activities.iter().filter(|task| task.lease_ms.is_some());
        let tasks: Vec<NewActivity> = leased.cloned().collect();
        (!tasks.is_empty()).then(|| Self {
            instance: commit.instance.clone(),
            execution: commit.execution,
            name: commit.name.clone(),
            version: commit.version.clone(),
            tasks,
            asked_at: clock::now(),
            node: commit.node.clone(),
        })
    }
}
