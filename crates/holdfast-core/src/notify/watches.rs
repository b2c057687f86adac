//! Who waits for which end: ids with the number of their watchers, and which of them are worth a look.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// The watched ids of one kind.
#[derive(Debug, Default)]
pub struct Watches {
    watched: Mutex<HashMap<String, Watched>>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    /// To be looked at: newly watched, or known to have ended.
    fresh: bool,
}

impl Watches {
    /// Somebody waits for an end: whoever looks for ends hears that there is one to look for from time to time.
    pub fn watch(&self, id: &str) {
        self.lock().entry(id.to_owned()).or_default().watchers += 1;
        self.news.notify_one();
    }

    /// Whether somebody waits for it.
    pub fn is_watched(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Somebody does not wait any more.
    pub fn unwatch(&self, id: &str) {
        let mut watched = self.lock();
        if let Some(entry) = watched.get_mut(id) {
            entry.watchers -= 1;
            if entry.watchers == 0 {
                watched.remove(id);
            }
        }
    }

    /// One is worth a look: newly watched, or ended in this process.
    pub fn look_at(&self, id: &str) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.fresh = true;
            self.news.notify_one();
        }
    }

    /// Any may have ended elsewhere.
    pub fn all_may_have_ended(&self) {
        let mut watched = self.lock();
        if watched.is_empty() {
            return;
        }
        for entry in watched.values_mut() {
            entry.fresh = true;
        }
        drop(watched);
        self.news.notify_one();
    }

    /// All watched ids.
    pub fn watched(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Watched ids worth a look: newly watched, or ended in this process. Each is returned once.
    pub fn fresh(&self) -> Vec<String> {
        let mut watched = self.lock();
        let fresh = watched.iter_mut().filter(|(_, entry)| entry.fresh);
        fresh
            .map(|(id, entry)| {
                entry.fresh = false;
                id.clone()
            })
            .collect()
    }

    /// Waits until [`Self::fresh`] may have something to tell.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watched_ids_are_remembered_and_told_once() {
        let watches = Watches::default();
        watches.look_at("unknown");
        assert!(watches.fresh().is_empty());
        watches.watch("a");
        assert!(watches.is_watched("a"));
        assert!(watches.fresh().is_empty());
        watches.look_at("a");
        assert_eq!(watches.fresh(), ["a"]);
        watches.unwatch("a");
        assert!(watches.watched().is_empty());
    }
}
