//! Hints inside one process: commits wake the claimers and the waiters of the same provider.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{
    notify::{Bell, Watches},
    store::ActivityKey,
};

/// Hears that a task is gone; says whether it still listens.
type Gone = Box<dyn Fn(&ActivityKey) -> bool + Send + Sync>;

/// The hints of one provider.
#[derive(Default)]
pub struct Wakes {
    claimers: Mutex<Vec<Weak<Bell>>>,
    gone: Mutex<Vec<Gone>>,
    instances: Watches,
    standalone: Watches,
}

impl Wakes {
    /// The bell of one claimer; it leaves by being dropped.
    pub fn register(&self) -> Arc<Bell> {
        let bell = Bell::new();
        lock(&self.claimers).push(Arc::downgrade(&bell));
        bell
    }

    /// Work may be ready.
    pub fn work(&self) {
        lock(&self.claimers).retain(|claimer| {
            claimer.upgrade().is_some_and(|bell| {
                bell.ring();
                true
            })
        });
    }

    /// Slots may be free.
    pub fn slots_are_free(&self) {
        for bell in lock(&self.claimers).iter().filter_map(Weak::upgrade) {
            bell.slot_is_free();
        }
    }

    /// Calls `gone` for every task that this process cancels, until it says that it does not listen any more.
    pub fn on_gone(&self, gone: impl Fn(&ActivityKey) -> bool + Send + Sync + 'static) {
        lock(&self.gone).push(Box::new(gone));
    }

    /// A task was cancelled: nobody wants it any more.
    pub fn gone(&self, key: &ActivityKey) {
        lock(&self.gone).retain(|gone| gone(key));
    }

    /// Who waits for the ends of instances.
    pub fn instances(&self) -> &Watches {
        &self.instances
    }

    /// Something ended elsewhere, whatever it was.
    pub fn ended_elsewhere(&self, id: &str) {
        self.instances.ended(id);
        self.standalone.ended(id);
    }

    /// Anything may have ended elsewhere.
    pub fn all_may_have_ended(&self) {
        self.instances.all_may_have_ended();
        self.standalone.all_may_have_ended();
    }

    /// Who waits for the ends of standalone activities.
    pub fn standalone(&self) -> &Watches {
        &self.standalone
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_claimer_is_forgotten() {
        let wakes = Wakes::default();
        drop(wakes.register());
        wakes.work();
        assert!(lock(&wakes.claimers).is_empty());
    }
}
