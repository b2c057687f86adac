//! Hints inside one process: commits wake the claimers and the waiters of the same provider.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::{
    notify::{Bell, Watches},
    store::{ActivityKey, instance::InstanceRow},
};

/// Hears that a task is gone; says whether it still listens.
type Gone = Box<dyn Fn(&ActivityKey) -> bool + Send + Sync>;

/// Hears of the end of an instance that somebody waits for.
type Told = Box<dyn Fn(InstanceRow) + Send + Sync>;

/// The hints of one provider.
#[derive(Default)]
pub struct Wakes {
    claimers: Mutex<Vec<Weak<Bell>>>,
    gone: Mutex<Vec<Gone>>,
    told: OnceLock<Told>,
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

    /// Calls `told` for every end of this process that somebody waits for; the first caller only.
    pub fn on_end(&self, told: impl Fn(InstanceRow) + Send + Sync + 'static) {
        // Set once, by the provider.
        let _ = self.told.set(Box::new(told));
    }

    /// An instance has ended in this process, so.
    pub fn tell_end(&self, end: InstanceRow) {
        if let Some(told) = self.told.get() {
            told(end);
        }
    }

    /// Who waits for the ends of instances.
    pub fn instances(&self) -> &Watches {
        &self.instances
    }

    /// Something ended elsewhere, whatever it was.
    pub fn ended_elsewhere(&self, id: &str) {
        self.instances.look_at(id);
        self.standalone.look_at(id);
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
