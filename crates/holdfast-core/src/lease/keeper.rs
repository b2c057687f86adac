//! The table of leases this node holds. It is told `now`; the liveness thread asks it what to renew.
//!
//! Invariants: a fence stands in the table from its claim until it is settled, released or lost; a renewal that does
//! not name a fence any more means that it is lost. It never talks to the database.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{lease::LeaseTimes, store::Fence};

/// What a lease is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A turn.
    Turn,
    /// An activity.
    Activity,
}

/// The leases of one node.
#[derive(Debug)]
pub struct Keeper {
    turns: LeaseTimes,
    activities: LeaseTimes,
    /// Next try to renew, by fence.
    table: Mutex<HashMap<(Kind, Fence), Instant>>,
}

impl Keeper {
    /// An empty table.
    pub fn new(turns: LeaseTimes, activities: LeaseTimes) -> Self {
        Self { turns, activities, table: Mutex::new(HashMap::new()) }
    }

    /// A claim returned this fence; `asked_at` is the time before the claim was sent, so the schedule errs early.
    pub fn hold(&self, kind: Kind, fence: Fence, asked_at: Instant) {
        let renew_at = asked_at + self.times(kind).first_try();
        self.lock().insert((kind, fence), renew_at);
    }

    /// A lease ended: settled, released or lost.
    pub fn let_go(&self, kind: Kind, fence: Fence) {
        self.lock().remove(&(kind, fence));
    }

    /// Fences of one kind, for the heartbeat.
    pub fn held(&self, kind: Kind) -> Vec<Fence> {
        self.lock().keys().filter(|(held, _)| *held == kind).map(|(_, fence)| *fence).collect()
    }

    /// Fences whose renewal is due; their next try is set, so that a lost reply is tried again.
    pub fn due(&self, kind: Kind, now: Instant) -> Vec<Fence> {
        let next = now + self.times(kind).later_tries();
        let mut due = Vec::new();
        for ((held, fence), renew_at) in self.lock().iter_mut() {
            if *held == kind && *renew_at <= now {
                *renew_at = next;
                due.push(*fence);
            }
        }
        due
    }

    /// A renewal sent at `asked_at` named `asked` and renewed `renewed`; returns those that are lost.
    pub fn renewed(&self, kind: Kind, asked: &[Fence], renewed: &[Fence], asked_at: Instant) -> Vec<Fence> {
        let renew_at = asked_at + self.times(kind).first_try();
        let renewed: HashSet<Fence> = renewed.iter().copied().collect();
        let mut table = self.lock();
        let mut lost = Vec::new();
        for fence in asked {
            let Some(held) = table.get_mut(&(kind, *fence)) else { continue };
            if renewed.contains(fence) {
                *held = renew_at;
            } else {
                lost.push(*fence);
            }
        }
        lost
    }

    /// When the next renewal is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().values().min().copied()
    }

    fn times(&self, kind: Kind) -> LeaseTimes {
        match kind {
            Kind::Turn => self.turns,
            Kind::Activity => self.activities,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Kind, Fence), Instant>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keeper(timeout_ms: u64) -> Keeper {
        let times = LeaseTimes { timeout: Duration::from_millis(timeout_ms), buffer: Duration::ZERO };
        Keeper::new(times, times)
    }

    #[test]
    fn a_lease_is_due_at_half_its_length_and_then_every_eighth() {
        let keeper = keeper(8_000);
        let start = Instant::now();
        keeper.hold(Kind::Turn, Fence(1), start);
        assert!(keeper.due(Kind::Turn, start + Duration::from_millis(3_999)).is_empty());
        assert_eq!(keeper.due(Kind::Turn, start + Duration::from_millis(4_000)), [Fence(1)]);
        assert!(keeper.due(Kind::Turn, start + Duration::from_millis(4_999)).is_empty());
        assert_eq!(keeper.due(Kind::Turn, start + Duration::from_millis(5_000)), [Fence(1)]);
    }

    #[test]
    fn a_renewed_lease_starts_anew_from_the_time_it_was_asked_for() {
        let keeper = keeper(8_000);
        let start = Instant::now();
        keeper.hold(Kind::Activity, Fence(1), start);
        let asked = start + Duration::from_millis(4_000);
        let due = keeper.due(Kind::Activity, asked);
        assert!(keeper.renewed(Kind::Activity, &due, &[Fence(1)], asked).is_empty());
        assert_eq!(keeper.next_due(), Some(asked + Duration::from_millis(4_000)));
    }

    #[test]
    fn a_fence_that_is_not_renewed_is_lost_unless_it_was_settled_meanwhile() {
        let keeper = keeper(8_000);
        let start = Instant::now();
        keeper.hold(Kind::Turn, Fence(1), start);
        keeper.hold(Kind::Turn, Fence(2), start);
        keeper.let_go(Kind::Turn, Fence(2));
        assert_eq!(keeper.renewed(Kind::Turn, &[Fence(1), Fence(2)], &[], start), [Fence(1)]);
    }

    #[test]
    fn kinds_do_not_mix() {
        let keeper = keeper(10);
        keeper.hold(Kind::Turn, Fence(1), Instant::now());
        assert!(keeper.held(Kind::Activity).is_empty());
        assert_eq!(keeper.held(Kind::Turn), [Fence(1)]);
    }
}
