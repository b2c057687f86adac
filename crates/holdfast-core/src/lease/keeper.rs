//! The table of leases this node holds. It is told `now`; the liveness thread asks it what to renew.
//!
//! Invariants: a fence stands in the table from its claim until it is settled, released or lost; a renewal that does
//! not name a fence any more means that it is lost. It never talks to the database.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{lease::LeaseTimes, store::Fence};

/// What a lease is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    table: Mutex<BTreeMap<(Kind, Fence), Instant>>,
}

impl Keeper {
    /// An empty table.
    pub fn new(turns: LeaseTimes, activities: LeaseTimes) -> Self {
        Self { turns, activities, table: Mutex::new(BTreeMap::new()) }
    }

    /// A claim returned this fence; `asked_at` is the time before the claim was sent, so the schedule errs early.
    pub fn hold(&self, kind: Kind, fence: Fence, asked_at: Instant) {
        let renew_at = asked_at + self.times(kind).first_try();
        self.lock().insert((kind, fence), renew_at);
    }

    /// A lease ended: settled, released or lost. False when it was not held any more.
    pub fn let_go(&self, kind: Kind, fence: Fence) -> bool {
        self.lock().remove(&(kind, fence)).is_some()
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

    /// A renewal sent at `asked_at` renewed these. A fence it left out may only have been locked at that moment: it is
    /// tried again, and the heartbeat alone says which leases are gone.
    pub fn renewed(&self, kind: Kind, renewed: &[Fence], asked_at: Instant) {
        let renew_at = asked_at + self.times(kind).first_try();
        let mut table = self.lock();
        for fence in renewed {
            if let Some(held) = table.get_mut(&(kind, *fence)) {
                *held = renew_at;
            }
        }
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Kind, Fence), Instant>> {
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
        assert_eq!(due, [Fence(1)]);
        keeper.renewed(Kind::Activity, &due, asked);
        assert_eq!(keeper.next_due(), Some(asked + Duration::from_millis(4_000)));
    }

    #[test]
    fn a_lease_that_a_renewal_left_out_is_kept_and_tried_again() {
        let keeper = keeper(8_000);
        let start = Instant::now();
        keeper.hold(Kind::Turn, Fence(1), start);
        let asked = start + Duration::from_millis(4_000);
        assert_eq!(keeper.due(Kind::Turn, asked), [Fence(1)]);
        keeper.renewed(Kind::Turn, &[], asked);
        assert_eq!(keeper.held(Kind::Turn), [Fence(1)]);
        assert_eq!(keeper.next_due(), Some(asked + Duration::from_millis(1_000)));
    }

    #[test]
    fn sh_09_a_lease_that_was_settled_meanwhile_is_not_held_again() {
        let keeper = keeper(8_000);
        let start = Instant::now();
        keeper.hold(Kind::Turn, Fence(1), start);
        keeper.let_go(Kind::Turn, Fence(1));
        keeper.renewed(Kind::Turn, &[Fence(1)], start);
        assert!(keeper.held(Kind::Turn).is_empty());
    }

    #[test]
    fn kinds_do_not_mix() {
        let keeper = keeper(10);
        keeper.hold(Kind::Turn, Fence(1), Instant::now());
        assert!(keeper.held(Kind::Activity).is_empty());
        assert_eq!(keeper.held(Kind::Turn), [Fence(1)]);
    }
}
