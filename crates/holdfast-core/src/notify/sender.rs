//! Sends hints to other processes: apart from every commit, on a client of the pool, at most one in a pause.
//!
//! What comes while one is being sent, or in the pause after it, goes with the next. A hint that cannot be sent is lost:
//! the poll finds the work.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    error::Result,
    limits,
    notify::spread::Turns,
    pool::CallerClass,
    store::{Store, notify::Place},
    telemetry::Counters,
};

/// What one hint says.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hint {
    /// So much may be there to claim.
    #[serde(rename = "w", default)]
    pub(super) work: u32,
    /// Where in the row of the listening nodes it is claimed first.
    #[serde(rename = "f", default)]
    pub(super) first: u64,
    /// These instances ended.
    #[serde(rename = "e", default)]
    pub(super) ended: Vec<String>,
    /// So many ended that their ids do not fit: any may have.
    #[serde(rename = "a", default)]
    pub(super) all: bool,
    /// The sender began to listen.
    #[serde(rename = "l", default)]
    pub(super) listens: bool,
    /// Who sends it: what happened there, it knows already.
    #[serde(rename = "s", default)]
    pub(super) sender: u64,
    /// Of the ids, as they are sent.
    #[serde(skip)]
    bytes: usize,
}

impl Hint {
    /// What a hint says that this version does not understand: there may be anything.
    pub(super) fn anything() -> Self {
        Self { work: u32::MAX, all: true, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.work == 0 && self.ended.is_empty() && !self.all && !self.listens
    }

    pub(super) fn add_work(&mut self, work: u32) {
        self.work = self.work.saturating_add(work);
    }

    pub(super) fn add_ended(&mut self, instance: &str) {
        if self.all {
            return;
        }
        // What JSON makes of it, and a comma.
        self.bytes += serde_json::to_string(instance).map_or(0, |text| text.len()) + 1;
        if self.bytes > limits::HINT_BYTES {
            (self.all, self.bytes) = (true, 0);
            self.ended.clear();
        } else {
            self.ended.push(instance.to_owned());
        }
    }
}

/// Collects and sends.
pub(super) struct HintSender {
    pending: Arc<Pending>,
    /// The task that sends; it ends with this.
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Pending {
    hint: Mutex<Hint>,
    news: Notify,
    /// Where this process stands in the row of those that listen.
    own: Mutex<Option<Place>>,
}

impl HintSender {
    /// Starts the task on the current runtime.
    pub(super) fn start(
        store: &Arc<dyn Store>,
        counters: &Arc<Counters>,
        (channel, sender): (String, u64),
    ) -> Self {
        let pending = Arc::new(Pending::default());
        let mut task = JoinSet::new();
        let worker = Worker {
            pending: Arc::clone(&pending),
            store: Arc::clone(store),
            counters: Arc::clone(counters),
            channel,
            sender,
            turns: Turns::new(sender),
        };
        task.spawn(worker.run());
        Self { pending, _task: task }
    }

    /// Hints begin behind this place.
    pub(super) fn stands(&self, own: Option<Place>) {
        *lock(&self.pending.own) = own;
    }

    /// Adds to the next hint.
    pub(super) fn add(&self, add: impl FnOnce(&mut Hint)) {
        add(&mut self.pending.lock());
        self.pending.news.notify_one();
    }
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Hint> {
        lock(&self.hint)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    pending: Arc<Pending>,
    store: Arc<dyn Store>,
    counters: Arc<Counters>,
    channel: String,
    sender: u64,
    turns: Turns,
}

impl Worker {
    async fn run(mut self) {
        loop {
            self.pending.news.notified().await;
            match self.send().await {
                Ok(()) => {}
                Err(error) => {
                    self.counters.hints_lost.add(1);
                    tracing::debug!(error = %error.full_text(), "a hint was not sent");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
            tokio::time::sleep(limits::HINT_PAUSE).await;
        }
    }

    async fn send(&mut self) -> Result<()> {
        if self.pending.lock().is_empty() {
            return Ok(());
        }
        let session = self.store.acquire(CallerClass::Ordinary).await?;
        // As late as possible, so that it says all that came while there was no session.
        let mut hint = Hint { sender: self.sender, ..std::mem::take(&mut *self.pending.lock()) };
        if hint.work > 0 {
            hint.first = self.turns.next(hint.work, *lock(&self.pending.own));
        }
        let payload = serde_json::to_string(&hint).unwrap_or_default();
        session.send_hint(&self.channel, &payload).await?;
        self.counters.hints_sent.add(1);
        Ok(())
    }
}

/// A database in trouble is not asked for a hint at once again.
const AFTER_FAILURE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ev_13_a_hint_names_who_ended_until_the_names_do_not_fit() {
        let mut hint = Hint::default();
        hint.add_ended("order-17");
        assert_eq!(
            serde_json::to_string(&hint).expect("JSON"),
            r#"{"w":0,"f":0,"e":["order-17"],"a":false,"l":false,"s":0}"#
        );
        for number in 0..10_000 {
            hint.add_ended(&format!("order-{number}"));
            assert!(serde_json::to_string(&hint).expect("JSON").len() < 8000);
        }
        assert!(hint.all && hint.ended.is_empty());
        let mut worst = Hint::default();
        for _ in 0..100 {
            worst.add_ended(&"\u{1}".repeat(500));
            assert!(serde_json::to_string(&worst).expect("JSON").len() < 8000);
        }
    }

    #[test]
    fn an_unknown_field_of_a_newer_version_is_no_error() {
        let hint: Hint = serde_json::from_str(r#"{"w":1,"new":1}"#).expect("understood");
        assert!(hint.work == 1 && hint.ended.is_empty());
    }
}
