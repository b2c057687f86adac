//! The end of a turn: from its result to the commit, and what follows from the outcome.
//!
//! A frame is kept only when its turn was committed. It never talks to JavaScript but to have a frame forgotten.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use holdfast_replay::{Execution, FrameId, TurnResult};

use crate::{
    clock,
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Kind, Reserved, Return},
    store::{
        Fence,
        commit::{CommitItem, CommitOutcome, HandedTask, NewActivity, Park, SettledTurn, TurnCommit},
        replay_version,
        turn::ClaimedTurn,
    },
    telemetry::error_payload,
    turn::{
        Flight, LiveFrame, Next, Proof, TurnRunner, TurnTable,
        commit::{park_commit, rescued_cancel, turn_commit},
        keeping,
        local::{Queued, taken},
        tally::Tally,
    },
};

/// What is kept of a turn until the outcome of its commit is known.
struct Left {
    /// Becomes a live frame.
    execution: Option<Box<Execution>>,
    /// What is tried when a cancellation is refused.
    rescue: Option<TurnCommit>,
    park: Option<Park>,
    /// Slots for the activities that this node takes.
    reserved: Reserved,
    queued: Option<Queued>,
    /// Activities that run under the lease of the turn.
    rowless: Vec<NewActivity>,
    /// Its lease goes on when it is written.
    keeps: bool,
    /// Nothing but the end of a lease that went on.
    bare: bool,
    cancelled: Vec<i32>,
    asked_at: Instant,
}

impl TurnRunner {
    /// Commits what a turn decided.
    pub(super) fn settle(self: &Arc<Self>, frame: FrameId, execution: Box<Execution>, result: TurnResult) {
        let (mut commit, poisoned, isolated) = {
            let mut table = self.lock();
            let Some(flight) = table.by_frame(frame) else { return };
            let commit = turn_commit(flight, result, execution.history_len());
            (commit, flight.claimed.poisoned, flight.isolated)
        };
        if !poisoned && failpoint::drops_turn(&commit.instance) {
            return self.drop_turn(&commit);
        }
        let taker = if commit.end.is_none() { self.taker(isolated) } else { None };
        let reserved = Reserved::of(taker.clone(), &mut commit.activities);
        let rowless = self.keep_lease(&mut commit, taker.as_ref());
        self.retake_lease(&mut commit, taker.as_ref());
        self.submit(commit, Some(execution), reserved, rowless);
    }

    /// A turn that ends without a commit: its lease goes back with its delivery counted.
    fn drop_turn(self: &Arc<Self>, commit: &TurnCommit) {
        let Some(flight) = self.take_out(&commit.instance) else { return };
        self.outbox.evict(vec![flight.frame]);
        self.let_go(flight, Return::Abandoned);
    }

    pub(super) fn submit(
        self: &Arc<Self>,
        mut commit: TurnCommit,
        execution: Option<Box<Execution>>,
        reserved: Reserved,
        rowless: Vec<NewActivity>,
    ) {
        self.bring_belated(&mut commit);
        let ended = commit.end.is_some();
        let tally = Tally::of(&commit);
        let (instance, fence) = (commit.instance.clone(), commit.fence);
        let proof = Proof { execution: commit.execution, history_len: commit.history_len, last_fence: fence };
        self.lock().settles(&instance, clock::now());
        let left = Left {
            execution: execution.filter(|_| !ended),
            rescue: self.lock().by_instance(&instance).and_then(|flight| rescued_cancel(flight, &commit)),
            park: commit.park.clone(),
            reserved,
            queued: Queued::of(&commit),
            rowless,
            keeps: commit.keeps,
            bare: commit.events.is_empty() && commit.consumed.is_empty() && commit.park.is_none(),
            cancelled: commit.cancelled_activities.clone(),
            asked_at: clock::now(),
        };
        let runner = Arc::clone(self);
        failpoint::hit("turn.submit.before");
        self.provider.committer().settle(
            CommitItem::Turn(Box::new(commit)),
            Box::new(move |outcome| {
                let settled = AssertUnwindSafe(|| {
                    if is_written(&outcome) {
                        tally.add_to(&runner.counters);
                    }
                    Arc::clone(&runner).settled(&instance, fence, proof, left, outcome);
                });
                if catch_unwind(settled).is_err() {
                    runner.dismiss(&instance, fence);
                }
            }),
        );
        failpoint::hit("turn.submit.after");
    }

    fn settled(
        self: Arc<Self>,
        instance: &str,
        fence: Fence,
        proof: Proof,
        left: Left,
        outcome: Result<CommitOutcome>,
    ) {
        failpoint::hit("turn.settled.before");
        if let Ok(CommitOutcome::Kept) = outcome {
            self.goes_on(instance, proof, left);
            return failpoint::hit("turn.settled.after");
        }
        // A lease that is not held any more was told as lost when that was found out.
        let held = self.keeper.let_go(Kind::Turn, fence);
        let Left { execution, rescue, park, reserved, queued, keeps, bare, asked_at, .. } = left;
        let written = is_written(&outcome);
        let mut table = self.lock();
        // The tasks begin under the table's lock: nobody here cancels what has not begun, and who answers one at once finds the
        // frame.
        if let (Ok(CommitOutcome::Settled(settled)), Some(mut queued)) = (&outcome, queued) {
            let tasks = taken(&mut queued, &settled.handed, settled.now_ms);
            reserved.give(tasks, queued.node, queued.asked_at);
        }
        let Some(mut flight) = table.remove(instance) else {
            // It was given up meanwhile.
            if let Ok(CommitOutcome::Settled(SettledTurn { retaken: true, next, .. })) = outcome {
                self.returns.push(Kind::Turn, next, Return::Unstarted);
            }
            return;
        };
        if written && let Some(taker) = self.taker(false).filter(|_| !flight.moving.is_empty()) {
            let handed: &[HandedTask] = match &outcome {
                Ok(CommitOutcome::Settled(settled)) => &settled.handed,
                _ => &[],
            };
            taker.moved(std::mem::take(&mut flight.moving), handed, &flight.node, asked_at);
        }
        match execution.filter(|_| written) {
            Some(execution) => {
                let evicted = self.keep_frame(&mut table, flight, execution, proof, &outcome, asked_at);
                drop(table);
                self.kept.notify_one();
                self.provider.counters().turns_settled.add(u64::from(!bare));
                self.outbox.evict(evicted);
            }
            None => {
                let none = flight.belated.is_empty() && flight.moving.is_empty();
                let rowless = keeps || !none || table.kept.contains(instance);
                drop(table);
                self.give_waiting(flight.waiting);
                let frame = flight.frame;
                match outcome {
                    Ok(_) if written => {
                        self.provider.counters().turns_settled.add(u64::from(!bare));
                        if let Some(park) = &park {
                            self.tell_parked(&flight, park);
                        } else if flight.claimed.poisoned {
                            self.tell_poisoned(&flight.claimed);
                        }
                    }
                    Ok(outcome) => self.fell(&flight, outcome, held, rowless),
                    Err(error) => self.failed(flight, held, rowless, rescue, &error),
                }
                self.outbox.evict([frame]);
            }
        }
        failpoint::hit("turn.settled.after");
    }

    /// Keeps the frame of a turn that was written; the frames that go for it.
    fn keep_frame(
        &self,
        table: &mut TurnTable,
        flight: Flight,
        execution: Box<Execution>,
        proof: Proof,
        outcome: &Result<CommitOutcome>,
        asked_at: Instant,
    ) -> Vec<FrameId> {
        let (instance, frame, waiting) = (flight.claimed.instance.clone(), flight.frame, flight.waiting);
        let next = match outcome {
            Ok(CommitOutcome::Settled(settled)) if settled.retaken => {
                self.keeper.hold(Kind::Turn, settled.next, asked_at);
                if waiting.is_some() {
                    self.returns.push(Kind::Turn, settled.next, Return::Unstarted);
                } else {
                    table.kept.retake(&instance, next(flight, proof, settled));
                }
                None
            }
            Ok(CommitOutcome::Settled(settled)) if table.may_begin(&flight.claimed.name) => {
                Some(next(flight, proof, settled))
            }
            _ => None,
        };
        self.give_waiting(waiting);
        table.keep(instance, LiveFrame { frame, execution, proof, next })
    }

    /// A turn was not written: its lease is gone, or something that it needs.
    fn fell(&self, flight: &Flight, outcome: CommitOutcome, held: bool, rowless: bool) {
        let (instance, fence) = (flight.claimed.instance.as_str(), flight.claimed.fence);
        match outcome {
            CommitOutcome::Yielded => {}
            // A result that it used may not count, while the claim that it went on under stands: what the claim is for is
            // not done. Where the lease is gone as well, giving it back changes nothing.
            _ if held && !flight.leased => {
                self.returns.push(Kind::Turn, fence, Return::Stopped);
                self.provider.wakes().work();
            }
            CommitOutcome::Overtaken if held => self.tell_overtaken(instance, fence),
            _ if held => self.tell_lost(Some(instance), fence),
            _ => {}
        }
        if rowless {
            self.cut_off(flight);
            self.provider.wakes().work();
        }
    }

    /// A turn could not be written.
    fn failed(
        self: &Arc<Self>,
        flight: Flight,
        held: bool,
        rowless: bool,
        rescue: Option<TurnCommit>,
        error: &Error,
    ) {
        let fence = flight.claimed.fence;
        let over = error.kind() == ErrorKind::Closed || flight.refused;
        if flight.waiting.is_some() {
            self.tell_lost(Some(&flight.claimed.instance), fence);
        } else if !over {
            return self.refused(flight, held, rescue, error);
        } else {
            self.counters.provider_errors.add(1);
        }
        if rowless {
            self.cut_off(&flight);
        } else if flight.waiting.is_none() {
            self.returns.push(Kind::Turn, fence, Return::Abandoned);
        }
    }

    /// A turn was committed and its lease goes on: its activities begin, without rows.
    fn goes_on(self: &Arc<Self>, instance: &str, proof: Proof, left: Left) {
        let Left { execution, reserved, rowless, cancelled, .. } = left;
        self.provider.counters().turns_settled.add(1);
        let mut table = self.lock();
        let Some(flight) = table.remove(instance) else {
            // It was given up meanwhile.
            return self.returns.push(Kind::Turn, proof.last_fence, Return::CutOff);
        };
        if flight.waiting.is_some() {
            // The lease lapsed since, and this node has claimed the instance anew.
            drop(table);
            self.keeper.let_go(Kind::Turn, flight.claimed.fence);
            self.give_waiting(flight.waiting);
            self.outbox.evict([flight.frame]);
            return self.cut_off(&flight);
        }
        let passed_ms = i64::try_from(clock::since(flight.since).as_millis()).unwrap_or(0);
        let now_ms = flight.claimed.now_ms.saturating_add(passed_ms);
        let events: Vec<i32> = rowless.iter().map(|task| task.event).collect();
        // The tasks begin under the table's lock, as above.
        reserved.give_rowless(keeping::rowless(&flight, rowless, now_ms), flight.node.clone());
        let frame = flight.frame;
        let ends = table.kept.keep(flight, proof.history_len, now_ms, &events, &cancelled);
        let evicted = match execution {
            Some(execution) => {
                table.keep(instance.to_owned(), LiveFrame { frame, execution, proof, next: None })
            }
            None => vec![frame],
        };
        drop(table);
        self.kept.notify_one();
        self.outbox.evict(evicted);
        let claims = self.taker(false).is_some_and(|taker| taker.claims());
        if ends || !claims {
            self.settle_kept(instance);
        }
    }

    /// Hearing of the outcome went wrong: whatever it was, the turn is over here, and its lease goes back if it stands.
    fn dismiss(&self, instance: &str, fence: Fence) {
        self.provider.counters().parts_restarted.add(1);
        self.keeper.let_go(Kind::Turn, fence);
        let kept = self.lock().kept.remove(instance);
        if let Some(flight) = self.take_out(instance) {
            self.outbox.evict([flight.frame]);
            self.lose(flight.moving);
        }
        // Activities of it may run without a row.
        self.lose(kept.map(|(_, open)| open).unwrap_or_default());
        self.returns.push(Kind::Turn, fence, Return::CutOff);
    }

    /// The server refused what this turn writes: the instance is parked with the reason, or, when it was to be cancelled, ends
    /// without what was refused. If that is refused as well the lease goes back and its count grows until the item is
    /// poisoned.
    fn refused(self: &Arc<Self>, flight: Flight, held: bool, rescue: Option<TurnCommit>, error: &Error) {
        self.counters.provider_errors.add(1);
        let payload = error_payload("InfrastructureError", error.kind().code(), &error.text_without_data());
        let commit = rescue.unwrap_or_else(|| park_commit(&flight, &payload));
        if held {
            self.keeper.hold(Kind::Turn, flight.claimed.fence, clock::now());
        }
        self.lock().insert(Flight { refused: true, execution: None, ..flight });
        self.submit(commit, None, Reserved::default(), Vec::new());
    }
}

/// Whether a turn was committed.
fn is_written(outcome: &Result<CommitOutcome>) -> bool {
    matches!(
        outcome,
        Ok(CommitOutcome::Done { .. }
            | CommitOutcome::Settled(_)
            | CommitOutcome::Kept
            | CommitOutcome::Ended(_))
    )
}

/// The turn that may follow without a claim.
fn next(flight: Flight, proof: Proof, settled: &SettledTurn) -> Box<Next> {
    let Flight { claimed, node, version, .. } = flight;
    let claimed = ClaimedTurn {
        fence: settled.next,
        deliveries: 0,
        poisoned: false,
        version: Some(version.clone()),
        history_len: proof.history_len,
        parked: false,
        cut_off: false,
        last_fence: proof.last_fence,
        replay_version: Some(replay_version::current()),
        start: None,
        now_ms: settled.now_ms,
        ..claimed
    };
    Box::new(Next { claimed, node, version, since: clock::now() })
}
