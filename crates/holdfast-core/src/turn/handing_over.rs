//! Turns whose answer may not come, or was lost on its way in: their leases go back. And what JavaScript has in hand.

use std::{sync::Arc, time::Duration};

use holdfast_replay::FrameId;

use crate::{
    clock,
    lease::{Kind, Return},
    store::Fence,
    turn::{Flight, TurnRunner},
};

impl TurnRunner {
    /// Handling an answer went wrong half way: the turn goes back and is replayed. Its delivery counts. One that began without
    /// a claim came to a local step: the claim that it may have gone on under is needed again at once.
    pub(crate) fn abandon(self: &Arc<Self>, frame: FrameId) {
        let instance = self.lock().by_frame(frame).map(|flight| flight.claimed.instance.clone());
        if let Some(flight) = instance.and_then(|instance| self.take_out(&instance)) {
            let mut why = Return::Abandoned;
            if !flight.leased {
                self.lock().claim_always(&flight.claimed.name);
                why = Return::Stopped;
            }
            self.let_go(flight, why);
            self.outbox.evict([frame]);
            self.provider.wakes().work();
        }
    }

    /// JavaScript has no function for this turn: it goes back for a while, with its delivery.
    pub(crate) fn unregistered(self: &Arc<Self>, frame: FrameId) {
        let instance = self.lock().by_frame(frame).map(|flight| flight.claimed.instance.clone());
        let Some(flight) = instance.and_then(|instance| self.take_out(&instance)) else { return };
        let delay = self.returns.delay(Kind::Turn, &flight.claimed.name);
        self.outbox.evict([frame]);
        self.tell_unregistered(&flight, delay);
        self.let_go(flight, Return::unregistered(delay));
        self.provider.wakes().work();
    }

    /// Instances whose answer is awaited for longer than this, unless they are cancelled already.
    pub(crate) fn long(&self, longer: Duration) -> Vec<String> {
        let table = self.lock();
        let runs = |flight: &&Flight| {
            flight.execution.as_ref().is_some_and(|execution| !execution.is_cancelled())
                && clock::since(flight.since) >= longer
        };
        table.flights().filter(runs).map(|flight| flight.claimed.instance.clone()).collect()
    }

    /// Somebody asked to cancel an instance whose turn waits for a step of its code. The turn is given up, and the step told to
    /// stop; the next turn reads the request. True: so it was done. A turn that has read the request goes on.
    pub(crate) fn cancel_asked(self: &Arc<Self>, instance: &str, message: i64) -> bool {
        let waits = |flight: &Flight| flight.execution.is_some() && !flight.consumed.contains(&message);
        if !self.lock().by_instance(instance).is_some_and(waits) {
            return false;
        }
        let Some(flight) = self.take_out(instance) else { return false };
        self.outbox.forget(flight.frame);
        self.let_go(flight, Return::Stopped);
        true
    }

    /// JavaScript does not answer for a long time: the leases go back, the turns stay in progress. One that is answered
    /// after all is settled if nobody took it, or goes on under a new lease if this node claims it again.
    pub(crate) fn hand_over(&self) {
        let mut table = self.lock();
        for flight in table.flights().filter(|flight| flight.execution.is_some()) {
            let kept = table.kept.contains(&flight.claimed.instance);
            let why = if kept { Return::CutOff } else { Return::Stopped };
            self.returns.push(Kind::Turn, flight.claimed.fence, why);
        }
        // Bodies under leases that go on are told by who runs them.
        for instance in table.kept.idle() {
            if let Some((fence, _)) = table.kept.remove(&instance) {
                self.returns.push(Kind::Turn, fence, Return::CutOff);
            }
        }
    }

    /// Every lease that a turn in progress stands on.
    pub(crate) fn fences(&self) -> Vec<Fence> {
        let table = self.lock();
        let flights = table.flights().flat_map(|flight| [Some(flight.claimed.fence), flight.waiting]);
        flights.flatten().chain(table.kept.fences()).collect()
    }

    /// What JavaScript has in hand, with the time since it was handed over.
    pub(crate) fn in_hand(&self) -> Vec<(String, Duration)> {
        let table = self.lock();
        let awaited = table.flights().filter(|flight| flight.execution.is_some());
        awaited
            .map(|flight| {
                let name =
                    format!("orchestration {:?} of {:?}", flight.claimed.name, flight.claimed.instance);
                (name, clock::since(flight.since))
            })
            .collect()
    }
}
