//! Leases that end without a result: they are collected here and given back by the claimer, in batches, beside its claims. Slots
//! bound how many a claim adds.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    lease::{Kind, Unregistered},
    store::Fence,
};

/// Why a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// Its body has not started: the delivery is given back too.
    Unstarted,
    /// Its body was stopped: the delivery counts, and it is due at once.
    Stopped,
    /// This node has no handler for it: the delivery is given back too, and it is due after this many ms.
    Unregistered(u64),
    /// Its result cannot be stored: the delivery counts, and it is due when its lease would have ended, with back-off.
    Abandoned,
    /// A turn's, under which activities ran without a row: the delivery counts, it is due at once, and whoever claims it finds
    /// them.
    CutOff,
}

impl Return {
    /// How long it stays away, in ms, where this node has no handler for it.
    pub fn delay(self) -> Option<u64> {
        match self {
            Self::Unregistered(delay) => Some(delay),
            Self::Unstarted | Self::Stopped | Self::Abandoned | Self::CutOff => None,
        }
    }

    /// For want of a handler, for so long.
    pub fn unregistered(delay: Duration) -> Self {
        Self::Unregistered(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
    }
}

/// One lease to give back.
#[derive(Debug, Clone, Copy)]
pub struct Returned {
    /// Turn or activity.
    pub kind: Kind,
    /// The lease.
    pub fence: Fence,
    /// Why.
    pub why: Return,
}

/// The leases to give back.
#[derive(Debug, Default)]
pub struct Returns {
    leases: Mutex<Leases>,
    delays: Unregistered,
}

#[derive(Debug, Default)]
struct Leases {
    waiting: Vec<Returned>,
    /// Those that are being given back: gone for the database, and not yet for the table of held leases.
    leaving: Vec<Returned>,
}

impl Returns {
    /// None yet; `delays` say how long what has no handler here stays away.
    pub fn new(delays: Unregistered) -> Self {
        Self { leases: Mutex::default(), delays }
    }

    /// How long something whose name has no handler here stays away; it was met once more.
    pub fn delay(&self, kind: Kind, name: &str) -> Duration {
        self.delays.met(kind, name)
    }

    /// Adds one.
    pub fn push(&self, kind: Kind, fence: Fence, why: Return) {
        self.lock().waiting.push(Returned { kind, fence, why });
    }

    /// Takes all, also those that an earlier taker never reported on; they are on their way until [`Returns::given_back`] or
    /// [`Returns::put_back`] is called.
    pub fn take(&self) -> Vec<Returned> {
        let mut leases = self.lock();
        let mut waiting = std::mem::take(&mut leases.waiting);
        leases.leaving.append(&mut waiting);
        leases.leaving.clone()
    }

    /// Whether this lease is given back, or soon will be: it ends by this node's own will and is not lost.
    pub fn has(&self, kind: Kind, fence: Fence) -> bool {
        let leases = self.lock();
        leases.all().any(|returned| returned.kind == kind && returned.fence == fence)
    }

    /// The leases that wait here or are on their way.
    pub fn fences(&self) -> Vec<Fence> {
        self.lock().all().map(|returned| returned.fence).collect()
    }

    /// Those that were taken are the database's again.
    pub fn given_back(&self) {
        self.lock().leaving.clear();
    }

    /// Those that were taken could not be given back.
    pub fn put_back(&self) {
        let mut leases = self.lock();
        let leaving = std::mem::take(&mut leases.leaving);
        leases.waiting.extend(leaving);
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leases {
    fn all(&self) -> impl Iterator<Item = &Returned> {
        self.waiting.iter().chain(&self.leaving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_on_its_way_back_is_known_until_it_is_given_back() {
        let returns = Returns::default();
        returns.push(Kind::Turn, Fence(1), Return::Stopped);
        assert!(returns.has(Kind::Turn, Fence(1)) && !returns.has(Kind::Activity, Fence(1)));
        assert_eq!(returns.take().len(), 1);
        assert!(returns.has(Kind::Turn, Fence(1)));
        returns.given_back();
        assert!(!returns.has(Kind::Turn, Fence(1)));
    }

    #[test]
    fn what_a_taker_never_reported_on_is_taken_again() {
        let returns = Returns::default();
        returns.push(Kind::Turn, Fence(1), Return::Stopped);
        returns.take();
        returns.push(Kind::Turn, Fence(2), Return::Stopped);
        assert_eq!(returns.take().len(), 2);
    }

    #[test]
    fn what_could_not_be_given_back_waits_again() {
        let returns = Returns::default();
        returns.push(Kind::Turn, Fence(1), Return::Stopped);
        returns.take();
        returns.push(Kind::Turn, Fence(2), Return::Unstarted);
        returns.put_back();
        assert_eq!(returns.take().len(), 2);
    }
}
