//! What the liveness thread sets off in the other rooms. Calls are short and never wait.

use std::{sync::Arc, time::Duration};

use crate::{
    activity::ActivityRunner,
    crossing::{AbortReason, Outbox},
    liveness::LivenessEvents,
    notify::{Bell, Hints},
    store::{ActivityKey, Fence},
    turn::TurnRunner,
};

pub(super) struct Events {
    pub(super) turns: Arc<TurnRunner>,
    pub(super) activities: Arc<ActivityRunner>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) wake: Arc<Bell>,
    pub(super) hints: Arc<Hints>,
}

impl Events {
    /// What JavaScript has not begun goes back, with its delivery.
    fn give_back_unstarted(&self) {
        let unstarted = self.outbox.drain();
        self.turns.give_back(unstarted.turns);
        self.activities.give_back(unstarted.activities);
        self.wake.ring();
    }
}

impl LivenessEvents for Events {
    fn lost_turn(&self, fence: Fence) {
        self.turns.lost(fence);
    }

    fn lost_activity(&self, fence: Fence, taken: bool) {
        self.activities.lost(fence, if taken { AbortReason::Lost } else { AbortReason::Cancelled });
    }

    fn task_of(&self, fence: Fence) -> Option<ActivityKey> {
        self.activities.task_of(fence)
    }

    fn long_turns(&self, longer: Duration) -> Vec<String> {
        self.turns.long(longer)
    }

    fn cancel_asked(&self, instance: &str, message: i64) {
        if self.turns.cancel_asked(instance, message) {
            self.wake.ring();
        }
    }

    fn declared_dead(&self) {
        self.turns.drop_live();
        self.activities.abort_all(AbortReason::Lost);
    }

    fn released(&self, work: u64) {
        self.wake.ring();
        self.hints.tell_released(work);
    }

    fn fenced(&self) {
        self.give_back_unstarted();
        self.activities.abort_all(AbortReason::Lost);
    }

    fn loop_stalled(&self) {
        self.give_back_unstarted();
    }

    fn loop_hung(&self) {
        self.give_back_unstarted();
        self.turns.hand_over();
        self.activities.hand_over();
        self.wake.ring();
    }

    fn may_go_on(&self) {
        self.outbox.nudge();
        self.wake.ring();
    }

    fn running(&self) -> Vec<(String, Duration)> {
        let mut all = self.turns.in_hand();
        all.extend(self.activities.in_hand());
        all.sort_by(|(a, a_time), (b, b_time)| (a_time, a).cmp(&(b_time, b)));
        all
    }
}
