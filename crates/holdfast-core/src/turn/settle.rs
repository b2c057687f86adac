//! The end of a turn: from its result to the commit, and what follows from the outcome.
//!
//! A frame is kept only when its turn was committed. It never talks to JavaScript but to have a frame forgotten.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use holdfast_replay::{Execution, FrameId, TurnResult};

use crate::{
    clock,
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::{Kind, Reserved, Return},
    store::{
        Fence,
        commit::{CommitItem, CommitOutcome, Park, SettledTurn, TurnCommit},
        turn::ClaimedTurn,
    },
    telemetry::error_payload,
    turn::{
        Flight, LiveFrame, Next, Proof, TurnRunner,
        commit::{park_commit, rescued_cancel, turn_commit},
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
            return self.lose(&commit);
        }
        let taker = if commit.end.is_none() { self.taker(isolated) } else { None };
        let reserved = Reserved::of(taker, &mut commit.activities);
        self.submit(commit, Some(execution), reserved);
    }

    /// A turn that ends without a commit: its lease goes back with its delivery counted.
    fn lose(&self, commit: &TurnCommit) {
        let Some(flight) = self.take_out(&commit.instance) else { return };
        self.returns.push(Kind::Turn, commit.fence, Return::Abandoned);
        self.outbox.evict(vec![flight.frame]);
    }

    pub(super) fn submit(
        self: &Arc<Self>,
        commit: TurnCommit,
        execution: Option<Box<Execution>>,
        reserved: Reserved,
    ) {
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
        };
        let runner = Arc::clone(self);
        failpoint::hit("turn.submit.before");
        self.provider.committer().settle(
            CommitItem::Turn(Box::new(commit)),
            Box::new(move |outcome| {
                let settled = AssertUnwindSafe(|| {
                    if matches!(
                        outcome,
                        Ok(CommitOutcome::Done { .. } | CommitOutcome::Settled(_) | CommitOutcome::Ended(_))
                    ) {
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
        // A lease that is not held any more was told as lost when that was found out.
        let held = self.keeper.let_go(Kind::Turn, fence);
        let Left { execution, rescue, park, reserved, queued } = left;
        let mut table = self.lock();
        // The tasks begin under the table's lock: nobody here cancels what has not begun, and who answers one at once finds the
        // frame.
        if let (Ok(CommitOutcome::Settled(settled)), Some(mut queued)) = (&outcome, queued) {
            let tasks = taken(&mut queued, &settled.handed, settled.now_ms);
            reserved.give(tasks, queued.node, queued.asked_at);
        }
        let Some(flight) = table.remove(instance) else { return };
        let written = matches!(
            outcome,
            Ok(CommitOutcome::Done { .. } | CommitOutcome::Settled(_) | CommitOutcome::Ended(_))
        );
        if let Some(execution) = execution.filter(|_| written) {
            let (frame, waiting) = (flight.frame, flight.waiting);
            let next = match &outcome {
                Ok(CommitOutcome::Settled(settled)) if table.may_begin(&flight.claimed.name) => {
                    Some(next(flight, proof, settled))
                }
                _ => None,
            };
            let evicted = table.keep(instance.to_owned(), LiveFrame { frame, execution, proof, next });
            drop(table);
            self.give_waiting(waiting);
            self.provider.counters().turns_settled.add(1);
            self.outbox.evict(evicted);
            return failpoint::hit("turn.settled.after");
        }
        drop(table);
        self.give_waiting(flight.waiting);
        let frame = flight.frame;
        match outcome {
            Ok(_) if written => {
                self.provider.counters().turns_settled.add(1);
                if let Some(park) = &park {
                    self.tell_parked(&flight, park);
                } else if flight.claimed.poisoned {
                    self.tell_poisoned(&flight.claimed);
                }
            }
            Ok(CommitOutcome::Yielded) => {}
            // A result that it used may not count, while the claim that it went on under stands: what the claim is for is
            // not done. Where the lease is gone as well, giving it back changes nothing.
            Ok(_) if held && flight.is_local() => {
                self.returns.push(Kind::Turn, fence, Return::Stopped);
                self.provider.wakes().work();
            }
            Ok(CommitOutcome::Overtaken) if held => self.tell_overtaken(instance, fence),
            Ok(_) if held => self.tell_lost(Some(instance), fence),
            Ok(_) => {}
            Err(_) if flight.waiting.is_some() => self.tell_lost(Some(instance), fence),
            Err(error) => self.refused(flight, held, rescue, &error),
        }
        self.outbox.evict([frame]);
        failpoint::hit("turn.settled.after");
    }

    /// Hearing of the outcome went wrong: whatever it was, the turn is over here, and its lease goes back if it stands.
    fn dismiss(&self, instance: &str, fence: Fence) {
        self.provider.counters().parts_restarted.add(1);
        self.keeper.let_go(Kind::Turn, fence);
        if let Some(flight) = self.take_out(instance) {
            self.outbox.evict([flight.frame]);
        }
        self.returns.push(Kind::Turn, fence, Return::Abandoned);
    }

    /// The server refused what this turn writes: the instance is parked with the reason, or, when it was to be cancelled, ends
    /// without what was refused. If that is refused as well the lease goes back and its count grows until the item is
    /// poisoned.
    fn refused(self: &Arc<Self>, flight: Flight, held: bool, rescue: Option<TurnCommit>, error: &Error) {
        self.counters.provider_errors.add(1);
        if error.kind() == ErrorKind::Closed || flight.refused {
            self.returns.push(Kind::Turn, flight.claimed.fence, Return::Abandoned);
            return;
        }
        let payload = error_payload("InfrastructureError", error.kind().code(), &error.text_without_data());
        let commit = rescue.unwrap_or_else(|| park_commit(&flight, &payload));
        if held {
            self.keeper.hold(Kind::Turn, flight.claimed.fence, clock::now());
        }
        self.lock().insert(Flight { refused: true, execution: None, ..flight });
        self.submit(commit, None, Reserved::default());
    }
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
        last_fence: proof.last_fence,
        start: None,
        now_ms: settled.now_ms,
        ..claimed
    };
    Box::new(Next { claimed, node, version, since: clock::now() })
}
