//! Waiters for the end of instances: one look at the database serves all of them.
//!
//! An end committed in this process is told at once; ends of other processes are found by a shared poll.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinSet};

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    notify::Wakes,
    pool::{CallerClass, Loan, Pool},
    store::{
        Statements,
        instance::{self, InstanceRow},
    },
};

#[derive(Default)]
struct Waiting {
    by_instance: HashMap<String, Vec<oneshot::Sender<InstanceRow>>>,
    closed: bool,
}

/// The waiters of one provider.
pub struct Waiters {
    waiting: Arc<Mutex<Waiting>>,
    wakes: Arc<Wakes>,
    worker: tokio::sync::Mutex<JoinSet<()>>,
}

impl Waiters {
    /// Starts the worker on the current tokio runtime.
    pub fn start(pool: &Arc<Pool>, statements: &Arc<Statements>, wakes: &Arc<Wakes>) -> Self {
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let worker = Worker {
            waiting: Arc::clone(&waiting),
            wakes: Arc::clone(wakes),
            pool: Arc::clone(pool),
            statements: Arc::clone(statements),
        };
        let mut workers = JoinSet::new();
        workers.spawn(worker.run());
        Self { waiting, wakes: Arc::clone(wakes), worker: tokio::sync::Mutex::new(workers) }
    }

    /// Waits for the end of an instance, which need not exist yet; `None` when `limit` runs out first, an error when the
    /// provider closes. Dropping the future gives up the wait.
    pub async fn wait(&self, instance: &str, limit: Duration) -> Result<Option<InstanceRow>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(closed());
            }
            waiting.by_instance.entry(instance.to_owned()).or_default().push(sender);
        }
        self.wakes.watch(instance);
        let _watch = Watch { waiters: self, instance };
        match tokio::time::timeout(limit, receiver).await {
            Ok(Ok(row)) => Ok(Some(row)),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Ok(None),
        }
    }

    /// Ends the worker and every wait.
    pub async fn close(&self) {
        self.worker.lock().await.shutdown().await;
        *lock(&self.waiting) = Waiting { closed: true, ..Waiting::default() };
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "wait: the provider is closed")
}

/// Leaves the table however the wait ends.
struct Watch<'a> {
    waiters: &'a Waiters,
    instance: &'a str,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.waiters.wakes.unwatch(self.instance);
        let mut waiting = lock(&self.waiters.waiting);
        if let Some(senders) = waiting.by_instance.get_mut(self.instance) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.by_instance.remove(self.instance);
            }
        }
    }
}

struct Worker {
    waiting: Arc<Mutex<Waiting>>,
    wakes: Arc<Wakes>,
    pool: Arc<Pool>,
    statements: Arc<Statements>,
}

impl Worker {
    async fn run(self) {
        let mut poll = limits::WAIT_POLL_BASE;
        loop {
            let ids = if self.wakes.watched().is_empty() {
                poll = limits::WAIT_POLL_BASE;
                self.wakes.news().await;
                self.wakes.fresh()
            } else {
                tokio::select! {
                    () = self.wakes.news() => self.wakes.fresh(),
                    () = tokio::time::sleep(poll) => {
                        poll = (poll * 2).min(limits::WAIT_POLL_MAX);
                        self.wakes.watched()
                    }
                }
            };
            if !ids.is_empty()
                && let Err(error) = self.look(&ids).await
            {
                tracing::debug!(waiting = ids.len(), error = %error.full_text(), "no look for ended instances");
                // The database is away: the poll goes on and each waiter has its own limit.
                tokio::time::sleep(limits::WAIT_POLL_MAX).await;
            }
        }
    }

    async fn look(&self, ids: &[String]) -> Result<()> {
        let statements = &self.statements;
        let look = |session: Loan| async move {
            let ended = instance::ended(&session, statements, ids).await?;
            if ended.is_empty() {
                return Ok(Vec::new());
            }
            instance::get(&session, statements, &ended).await
        };
        for row in self.pool.run(CallerClass::Ordinary, look).await? {
            for sender in lock(&self.waiting).by_instance.remove(&row.instance).unwrap_or_default() {
                // A waiter that ran out meanwhile is not interested any more.
                let _ = sender.send(row.clone());
            }
        }
        Ok(())
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
