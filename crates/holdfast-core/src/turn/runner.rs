//! Runs turns: claimed rows in, activations out, answers in, commits out.
//!
//! The same turn is never in two places: it is in the table from its claim until it is settled, and its execution is
//! either in the table or with the committer. JavaScript is told nothing about a turn that did not commit: its frame is
//! dropped and the instance is replayed.
//!
//! length: the way of a turn from its claim to its answer, each step a few lines; what can stand alone is in the files beside it.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join;
use holdfast_replay::{Activation, FrameId, Payload, Reply, limits::Limits};
use tokio::sync::Notify;

use crate::{
    clock,
    crossing::Outbox,
    error::{Error, Result},
    failpoint,
    lease::{Keeper, Kind, Return, Returns, TakesTasks},
    provider::Provider,
    store::{Fence, NodeKey, StoreSession, turn::ClaimedTurn},
    telemetry::{RunCounters, error_payload},
    turn::{
        Flight, FrameCache, LiveFrame, TurnTable,
        kept::KeptLeases,
        load::{self, Loaded},
        park::{Unreadable, cancel_reason, foreign_wait},
    },
};

/// Turns that were claimed together.
pub(crate) struct ClaimedBatch {
    pub(crate) turns: Vec<ClaimedTurn>,
    pub(crate) node: NodeKey,
    pub(crate) isolated: bool,
    /// Before the claim was sent.
    pub(crate) asked_at: Instant,
}

/// What the turns of a runtime are told at its start.
pub(crate) struct TurnSetup {
    /// Newest version of each orchestration that is registered.
    pub(crate) newest: BTreeMap<String, String>,
    /// Where live frames are kept between turns.
    pub(crate) cache: FrameCache,
    /// Turns in progress at most, but for those that hold none of them.
    pub(crate) slots: usize,
    /// Deliveries above this are poison.
    pub(crate) max_attempts: u32,
    /// How long a lease goes on for activities without a row.
    pub(crate) kept: Duration,
    /// A lease, in ms.
    pub(crate) lease_ms: i64,
    /// Bounds of one execution.
    pub(crate) limits: Limits,
}

/// The turns of one runtime.
pub(crate) struct TurnRunner {
    pub(super) provider: Arc<Provider>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) returns: Arc<Returns>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) counters: Arc<RunCounters>,
    newest: BTreeMap<String, String>,
    table: Mutex<TurnTable>,
    pub(super) slots: usize,
    max_attempts: u32,
    limits: Limits,
    pub(super) tasks: OnceLock<Weak<dyn TakesTasks>>,
    /// Slots kept for instances that are about to be started.
    pub(super) reserved: AtomicUsize,
    /// The last claim left turns of others in the queue.
    pub(super) backlog: AtomicBool,
    /// Rings when a lease goes on where none did.
    pub(super) kept: Notify,
    pub(super) lease_ms: i64,
}

impl TurnRunner {
    pub(crate) fn new(
        provider: Arc<Provider>,
        keeper: Arc<Keeper>,
        returns: Arc<Returns>,
        outbox: Arc<Outbox>,
        counters: Arc<RunCounters>,
        setup: TurnSetup,
    ) -> Self {
        let TurnSetup { newest, cache, slots, max_attempts, kept, lease_ms, limits } = setup;
        Self {
            provider,
            keeper,
            returns,
            outbox,
            counters,
            newest,
            table: Mutex::new(TurnTable::new(cache, KeptLeases::lasting(kept))),
            slots,
            max_attempts,
            limits,
            tasks: OnceLock::new(),
            reserved: AtomicUsize::new(0),
            backlog: AtomicBool::new(false),
            kept: Notify::new(),
            lease_ms,
        }
    }

    /// Slots that are free for claims. Turns that begin without one go first, but while others wait in the queue an eighth
    /// of the slots is theirs. One whose commit takes long holds none, until as many again are in progress as there are slots.
    pub(crate) fn free(&self) -> usize {
        let mut table = self.lock();
        let kept = if self.backlog.load(Ordering::Acquire) { self.slots.div_ceil(8) } else { 0 };
        let reserved = self.reserved.load(Ordering::Acquire);
        let free = self.slots.saturating_sub(table.holding(clock::now()) + reserved);
        let free = free.min((2 * self.slots).saturating_sub(table.len() + reserved));
        free.max(kept.saturating_sub(table.claimed()))
    }

    /// How long until a slot is free because a commit takes long.
    pub(crate) fn until_slow(&self) -> Option<Duration> {
        self.lock().until_slow(clock::now())
    }

    /// How long until turns that began together may be taken to go on for longer than `patience`; `None` when they do, or all
    /// have ended.
    pub(crate) fn young_for(&self, patience: Duration) -> Option<Duration> {
        let age = self.lock().youngest(clock::now())?;
        patience.checked_sub(age).filter(|left| !left.is_zero())
    }

    /// Turns in progress.
    pub(crate) fn running(&self) -> usize {
        self.lock().len()
    }

    /// Whether turns of this instance run here.
    pub(crate) fn knows(&self, instance: &str) -> bool {
        self.lock().knows(instance)
    }

    /// Whether a turn of this instance is in progress here, or its next one may begin without a claim: its last one ended a
    /// moment ago.
    pub(crate) fn is_under_way(&self, instance: &str) -> bool {
        self.lock().is_under_way(instance)
    }

    /// Whether an isolated turn is in progress.
    pub(crate) fn isolated(&self) -> bool {
        self.lock().isolated()
    }

    /// Takes claimed turns on their way to JavaScript, but those that are `gone` by then: that is asked while their messages are
    /// read. When reading fails they go back unstarted.
    pub(crate) async fn take(
        self: &Arc<Self>,
        session: &dyn StoreSession,
        batch: ClaimedBatch,
        gone: impl Future<Output = Vec<Fence>>,
    ) -> Result<()> {
        self.counters.orch_items_fetched.add(batch.turns.len() as u64);
        for claimed in &batch.turns {
            self.keeper.hold(Kind::Turn, claimed.fence, batch.asked_at);
        }
        let mut fresh = self.adopt(batch.turns, &batch.node);
        let (mut live, mut cold) = self.take_live(&fresh);
        let too_much = load::beyond_one_load(&fresh, &cold);
        cold.retain(|(instance, _)| !too_much.contains(instance));
        for claimed in fresh.extract_if(.., |claimed| too_much.contains(&claimed.instance)) {
            self.returns.push(Kind::Turn, claimed.fence, Return::Unstarted);
        }
        if !too_much.is_empty() {
            // They go back, and are claimed again, once these are on their way.
            self.provider.wakes().work();
        }
        let parked: Vec<String> =
            fresh.iter().filter(|claimed| claimed.parked).map(|claimed| claimed.instance.clone()).collect();
        let ids: Vec<String> = fresh.iter().map(|claimed| claimed.instance.clone()).collect();
        failpoint::hit("turn.load.before");
        let (gone, loaded) = join(gone, Loaded::read(session, &ids, &cold, &parked)).await;
        failpoint::hit("turn.load.after");
        for claimed in fresh.extract_if(.., |claimed| gone.contains(&claimed.fence)) {
            self.keeper.let_go(Kind::Turn, claimed.fence);
            self.outbox.evict(live.remove(&claimed.instance).map(|live| live.frame));
        }
        let mut loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                self.outbox.evict(live.into_values().map(|live| live.frame));
                for claimed in &fresh {
                    self.returns.push(Kind::Turn, claimed.fence, Return::Unstarted);
                }
                return Err(error);
            }
        };
        self.count(&loaded, live.len(), fresh.len());
        failpoint::hit("turn.activate.before");
        let (activations, unreadable) = self.activate(fresh, live, &mut loaded, &batch.node, batch.isolated);
        self.outbox.push(activations, Vec::new());
        failpoint::hit("turn.activate.after");
        let mut outcome = Ok(());
        for each in unreadable {
            let fence = each.claimed.fence;
            let instance = each.claimed.instance.clone();
            if let Err(error) = self.set_aside(session, &batch.node, each).await {
                self.take_out(&instance);
                self.returns.push(Kind::Turn, fence, Return::Unstarted);
                outcome = Err(error);
            }
        }
        outcome
    }

    /// JavaScript answered a turn.
    pub(crate) fn answer(self: &Arc<Self>, reply: Reply) {
        let frame = reply.frame;
        let Some(mut execution) = self.lock().by_frame(frame).and_then(|flight| flight.execution.take())
        else {
            self.provider.counters().unknown_answers.add(1);
            return;
        };
        failpoint::hit("turn.match.before");
        if let Some(error) = foreign_wait(&reply)
            && !execution.is_cancelled()
        {
            return self.park(frame, &error);
        }
        match execution.complete(reply) {
            Ok(result) => {
                failpoint::hit("turn.match.after");
                self.settle(frame, execution, result);
            }
            Err(mismatch) => {
                let instance = self.lock().by_frame(frame).map(|flight| flight.claimed.instance.clone());
                self.tell_mismatch(instance.as_deref(), &mismatch.to_string());
                let error = error_payload("NondeterminismError", "NONDETERMINISM", &mismatch.to_string());
                failpoint::hit("turn.match.after");
                self.park(frame, &error);
            }
        }
    }

    /// The answer of a turn cannot be understood: the instance is parked with the reason.
    pub(crate) fn unreadable(self: &Arc<Self>, frame: FrameId, error: &Error) {
        let Some(mut execution) = self.lock().by_frame(frame).and_then(|flight| flight.execution.take())
        else {
            return;
        };
        let payload = error_payload("InfrastructureError", error.kind().code(), &error.text_without_data());
        if execution.is_cancelled() {
            let result = execution.abort(payload);
            self.settle(frame, execution, result);
        } else {
            self.park(frame, &payload);
        }
    }

    /// JavaScript may never answer the turns it has: they go back and are replayed. Their deliveries count.
    pub(crate) fn give_up(self: &Arc<Self>, unstarted: &[FrameId]) {
        let awaited = self.lock().awaited();
        for (frame, instance) in awaited {
            if !unstarted.contains(&frame)
                && let Some(flight) = self.take_out(&instance)
            {
                self.let_go(flight, Return::Abandoned);
                self.outbox.evict([frame]);
            }
        }
    }

    /// Frames whose activation was never pulled go back unstarted, with their delivery.
    pub(crate) fn give_back(self: &Arc<Self>, frames: Vec<FrameId>) {
        for frame in frames {
            let instance = self.lock().by_frame(frame).map(|flight| flight.claimed.instance.clone());
            if let Some(flight) = instance.and_then(|instance| self.take_out(&instance)) {
                self.let_go(flight, Return::Unstarted);
            }
        }
    }

    /// Turns that are still running when the runtime stops: their count stays. So do leases that go on.
    pub(crate) fn stop_all(&self) {
        let instances = self.lock().instances();
        for instance in instances {
            if let Some(flight) = self.take_out(&instance) {
                let why = self.way_back(&flight);
                self.returns.push(Kind::Turn, flight.claimed.fence, why);
            }
        }
        for fence in self.lock().kept.clear() {
            self.returns.push(Kind::Turn, fence, Return::CutOff);
        }
    }

    /// How a lease goes back whose turn was stopped.
    pub(super) fn way_back(&self, flight: &Flight) -> Return {
        let kept = self.lock().kept.remove(&flight.claimed.instance).is_some();
        // The commit of one that is being settled may be written, and its lease go on.
        if kept || flight.settles_since.is_some() { Return::CutOff } else { Return::Stopped }
    }

    /// A lease is not this node's any more. The turn may still end; a commit that is on its way ends the lease itself, and
    /// says so when it came too late; so does what gives it back. What runs without a row beside a turn in progress is left to
    /// its commit, which stands while nobody has taken the lease, and knows of it.
    pub(crate) fn lost(&self, fence: Fence) {
        let (instance, settling, open) = {
            let mut table = self.lock();
            let flight = |flight: &Flight| (flight.claimed.instance.clone(), flight.execution.is_none());
            let (running, settling) = table.by_fence(fence).map(flight).unzip();
            let idle = table.kept.by_fence(fence).map(str::to_owned).filter(|_| running.is_none());
            let open = idle.as_ref().and_then(|instance| table.kept.remove(instance));
            (running.or(idle), settling, open.map(|(_, open)| open).unwrap_or_default())
        };
        self.lose(open);
        let ends_here = settling == Some(true) || self.returns.has(Kind::Turn, fence);
        if !ends_here && self.keeper.let_go(Kind::Turn, fence) {
            self.tell_lost(instance.as_deref(), fence);
        }
    }

    /// This node was declared dead: no live frame can be trusted, and no lease goes on.
    pub(crate) fn drop_live(self: &Arc<Self>) {
        self.end_all_kept();
        let frames = self.lock().drop_live();
        self.outbox.evict(frames);
    }

    pub(super) fn adopt(&self, claimed: Vec<ClaimedTurn>, node: &NodeKey) -> Vec<ClaimedTurn> {
        let mut table = self.lock();
        let mut fresh = Vec::with_capacity(claimed.len());
        let mut lost = Vec::new();
        for claimed in claimed {
            match table.adopt(&claimed, node) {
                Some(adoption) => {
                    if let Some(ended) = adoption.ended() {
                        self.keeper.let_go(Kind::Turn, ended);
                    }
                }
                None => {
                    // A lease that went on is over, or the row could not be claimed.
                    if let Some((ended, open)) = table.kept.remove(&claimed.instance) {
                        self.keeper.let_go(Kind::Turn, ended);
                        lost.extend(open);
                    }
                    fresh.push(claimed);
                }
            }
        }
        drop(table);
        self.lose(lost);
        fresh
    }

    /// Live frames of the claimed turns, and the keys of those that must be read.
    fn take_live(&self, fresh: &[ClaimedTurn]) -> (BTreeMap<String, LiveFrame>, Vec<(String, i64)>) {
        let mut table = self.lock();
        let mut live = BTreeMap::new();
        let mut cold = Vec::new();
        for claimed in fresh {
            if claimed.cut_off {
                self.outbox.evict(table.take_frame(&claimed.instance).map(|live| live.frame));
                cold.push((claimed.instance.clone(), claimed.execution));
                continue;
            }
            match table.take_live(claimed) {
                Ok(Some(frame)) => {
                    live.insert(claimed.instance.clone(), frame);
                    continue;
                }
                Ok(None) => {}
                Err(frame) => self.outbox.evict([frame]),
            }
            if claimed.history_len > 0 {
                cold.push((claimed.instance.clone(), claimed.execution));
            }
        }
        (live, cold)
    }

    fn count(&self, loaded: &Loaded, warm: usize, all: usize) {
        let counters = self.provider.counters();
        counters.history_rows_read.add(loaded.history_rows() as u64);
        counters.warm_turns.add(warm as u64);
        counters.cold_turns.add((all - warm) as u64);
    }

    pub(super) fn activate(
        self: &Arc<Self>,
        fresh: Vec<ClaimedTurn>,
        mut live: BTreeMap<String, LiveFrame>,
        loaded: &mut Loaded,
        node: &NodeKey,
        isolated: bool,
    ) -> (Vec<Activation>, Vec<Unreadable>) {
        let mut activations = Vec::with_capacity(fresh.len());
        let mut unreadable = Vec::new();
        for mut claimed in fresh {
            let version = self.version(&claimed);
            let frame = live.remove(&claimed.instance);
            let stored = loaded.take_history(&claimed.instance);
            let (frame, read) = match frame {
                Some(live) => (live.frame, Ok((live.execution, Vec::new()))),
                None => {
                    let read = load::execution(&mut claimed, &version, self.limits, stored, isolated);
                    (self.lock().new_frame(), read)
                }
            };
            let messages = loaded.take_messages(&claimed.instance);
            let cancel = cancel_reason(&messages);
            let read = match loaded.take_fault(&claimed.instance) {
                Some(fault) if cancel.is_none() => read.and(Err(fault)),
                _ => read,
            };
            let (mut execution, belated) = match read {
                Ok(read) => read,
                Err(error) => {
                    self.outbox.evict([frame]);
                    unreadable.push(Unreadable { claimed, version, error, cancel });
                    continue;
                }
            };
            // A poisoned turn uses nothing up: a retry finds its messages where they are.
            let messages = if claimed.poisoned { Vec::new() } else { messages };
            let accepted = execution.accept(messages, claimed.now_ms);
            self.provider.counters().messages_dropped.add(accepted.dropped.len() as u64);
            let mut consumed = accepted.accepted;
            consumed.extend(accepted.dropped.iter().map(|(id, _)| *id));
            let poisoned = claimed.poisoned.then(|| poison(&claimed, self.max_attempts));
            let flight =
                Flight { isolated, consumed, belated, ..Flight::new(claimed, node.clone(), version, frame) };
            let instance = flight.claimed.instance.clone();
            self.lock().insert(flight);
            if let Some(error) = poisoned {
                let result = execution.abort(error);
                self.settle(frame, execution, result);
            } else {
                activations.push(execution.activation(frame));
                self.lock().give_execution(&instance, execution);
            }
        }
        (activations, unreadable)
    }

    fn version(&self, claimed: &ClaimedTurn) -> String {
        match &claimed.version {
            Some(version) => version.clone(),
            None => self.newest.get(&claimed.name).cloned().unwrap_or_default(),
        }
    }

    /// Takes a flight out of the table; a lease that waited for its end goes back unstarted.
    pub(super) fn take_out(&self, instance: &str) -> Option<Flight> {
        let flight = self.lock().remove(instance)?;
        self.give_waiting(flight.waiting);
        Some(flight)
    }

    /// A lease that waited for the end of a flight goes back unstarted.
    pub(super) fn give_waiting(&self, waiting: Option<Fence>) {
        if let Some(waiting) = waiting {
            self.returns.push(Kind::Turn, waiting, Return::Unstarted);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TurnTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn poison(claimed: &ClaimedTurn, max_attempts: u32) -> Payload {
    let text = format!(
        "poison: orchestration {} exceeded {} attempts (max {max_attempts})",
        claimed.instance, claimed.deliveries
    );
    error_payload("PoisonError", "POISONED", &text)
}
