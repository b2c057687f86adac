//! Hints inside one process: commits wake the claimers and the waiters of the same provider.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Notify;

/// The hints of one provider.
#[derive(Debug, Default)]
pub struct Wakes {
    claimers: Mutex<Vec<Weak<Notify>>>,
    watched: Mutex<HashMap<String, Watched>>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    /// To be looked at: newly watched, or known to have ended.
    fresh: bool,
}

impl Wakes {
    /// A hint receiver for one claimer; it leaves by being dropped.
    pub fn register(&self) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        lock(&self.claimers).push(Arc::downgrade(&notify));
        notify
    }

    /// Work may be ready.
    pub fn work(&self) {
        lock(&self.claimers).retain(|claimer| {
            claimer.upgrade().is_some_and(|notify| {
                notify.notify_one();
                true
            })
        });
    }

    /// Somebody waits for the end of an instance.
    pub fn watch(&self, instance: &str) {
        let mut watched = lock(&self.watched);
        let entry = watched.entry(instance.to_owned()).or_default();
        entry.watchers += 1;
        entry.fresh = true;
        drop(watched);
        self.news.notify_one();
    }

    /// Somebody does not wait any more.
    pub fn unwatch(&self, instance: &str) {
        let mut watched = lock(&self.watched);
        if let Some(entry) = watched.get_mut(instance) {
            entry.watchers -= 1;
            if entry.watchers == 0 {
                watched.remove(instance);
            }
        }
    }

    /// An instance ended in this process.
    pub fn ended(&self, instance: &str) {
        if let Some(entry) = lock(&self.watched).get_mut(instance) {
            entry.fresh = true;
            self.news.notify_one();
        }
    }

    /// All watched instances.
    pub fn watched(&self) -> Vec<String> {
        lock(&self.watched).keys().cloned().collect()
    }

    /// Watched instances worth a look: newly watched, or ended in this process. Each is returned once.
    pub fn fresh(&self) -> Vec<String> {
        let mut watched = lock(&self.watched);
        let fresh = watched.iter_mut().filter(|(_, entry)| entry.fresh);
        fresh
            .map(|(instance, entry)| {
                entry.fresh = false;
                instance.clone()
            })
            .collect()
    }

    /// Waits until [`Self::fresh`] may have something to tell.
    pub async fn news(&self) {
        self.news.notified().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watched_instances_are_remembered_and_told_once() {
        let wakes = Wakes::default();
        wakes.ended("unknown");
        assert!(wakes.fresh().is_empty());
        wakes.watch("a");
        assert_eq!(wakes.fresh(), ["a"]);
        assert!(wakes.fresh().is_empty());
        wakes.ended("a");
        assert_eq!(wakes.fresh(), ["a"]);
        wakes.unwatch("a");
        assert!(wakes.watched().is_empty());
    }

    #[test]
    fn a_dropped_claimer_is_forgotten() {
        let wakes = Wakes::default();
        drop(wakes.register());
        wakes.work();
        assert!(lock(&wakes.claimers).is_empty());
    }
}
