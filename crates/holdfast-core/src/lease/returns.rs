//! Leases that end without a result: they are collected here and given back by the claimer, in batches. Slots bound how
//! many there are: nothing is claimed before they are given back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{lease::Kind, store::Fence};

/// Why a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// Its body has not started: the delivery is given back too.
    Unstarted,
    /// Its body was stopped: the delivery counts, and it is due at once.
    Stopped,
    /// Its result cannot be stored: the delivery counts, and it is due when its lease would have ended, with back-off.
    Abandoned,
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
pub struct Returns(Mutex<Vec<Returned>>);

impl Returns {
    /// Adds one.
    pub fn push(&self, kind: Kind, fence: Fence, why: Return) {
        self.lock().push(Returned { kind, fence, why });
    }

    /// Takes all.
    pub fn take(&self) -> Vec<Returned> {
        std::mem::take(&mut *self.lock())
    }

    /// The leases that wait here.
    pub fn fences(&self) -> Vec<Fence> {
        self.lock().iter().map(|returned| returned.fence).collect()
    }

    /// Puts back those that could not be given back.
    pub fn put_back(&self, returned: Vec<Returned>) {
        self.lock().extend(returned);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Returned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
