//! Activities that go back without a result: not begun, not answered, or answered in a way that was lost. And what
//! JavaScript has in hand.

use std::{sync::Arc, time::Duration};

use crate::{
    activity::{ActivityRunner, flight::Flight, rowless::Place},
    clock,
    crossing::AbortReason,
    lease::{Kind, Return},
    store::Fence,
};

impl ActivityRunner {
    /// Handling an answer went wrong half way: the activity goes back and runs again. Its delivery counts.
    pub(crate) fn abandon(self: &Arc<Self>, h: u32) {
        self.goes(h, Return::Abandoned);
    }

    /// JavaScript does not answer for a long time: the leases go back and the bodies are told to stop, but stay in progress.
    /// One that ends after all is settled if nobody took it, or goes on under a new lease if this node claims it again.
    pub(crate) fn hand_over(&self) {
        for (h, flight) in self.lock().flights().filter(|(_, flight)| !flight.settling) {
            // One without a row goes back with its turn.
            if matches!(flight.place, Place::Row) {
                self.returns.push(Kind::Activity, flight.claimed.fence, Return::Stopped);
            }
            self.outbox.abort(h, AbortReason::Lost);
        }
    }

    /// Every lease that an activity in progress stands on.
    pub(crate) fn fences(&self) -> Vec<Fence> {
        let table = self.lock();
        let own = |flight: &Flight| matches!(flight.place, Place::Row).then_some(flight.claimed.fence);
        table.flights().flat_map(|(_, flight)| [own(flight), flight.waiting]).flatten().collect()
    }

    /// What JavaScript has in hand, with the time since it was claimed.
    pub(crate) fn in_hand(&self) -> Vec<(String, Duration)> {
        let table = self.lock();
        let running = table.flights().filter(|(_, flight)| !flight.settling);
        running
            .map(|(_, flight)| {
                let claimed = &flight.claimed;
                let name = format!("activity {:?} of {:?}", claimed.name, claimed.key.instance);
                (name, clock::since(flight.since))
            })
            .collect()
    }

    /// JavaScript may never answer the jobs it has: they go back and run again. Their deliveries count.
    pub(crate) fn give_up(self: &Arc<Self>, unstarted: &[u32]) {
        let handles = self.lock().all();
        for h in handles {
            let awaited = self.lock().runs(h) && !unstarted.contains(&h);
            if awaited {
                self.goes(h, Return::Abandoned);
            }
        }
    }

    /// Jobs that were never pulled go back unstarted, with their delivery.
    pub(crate) fn give_back(self: &Arc<Self>, handles: Vec<u32>) {
        for h in handles {
            self.goes(h, Return::Unstarted);
        }
    }

    /// Hearing of the outcome went wrong: whatever it was, the task is over here, and its lease goes back if it stands.
    pub(super) fn dismiss(&self, h: u32, fence: Fence) {
        self.provider.counters().parts_restarted.add(1);
        self.keeper.let_go(Kind::Activity, fence);
        self.take_out(h);
        self.returns.push(Kind::Activity, fence, Return::Abandoned);
    }
}
