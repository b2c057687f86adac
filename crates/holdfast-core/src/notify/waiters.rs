//! Waiters for the ends of instances or standalone activities: one look at the database serves all of one kind.
//!
//! An end committed in this process is told at once; ends of other processes are told by hints while a hub listens, and
//! found by a shared poll.

use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    notify::{Awaited, HintUser, Hints, Wakes, Watches},
    pool::{CallerClass, Loan, Pool},
    store::Statements,
};

struct Waiting<E> {
    by_id: HashMap<String, Vec<oneshot::Sender<E>>>,
    closed: bool,
}

impl<E> Default for Waiting<E> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), closed: false }
    }
}

/// The waiters of one provider for one kind of thing.
pub struct Waiters<A: Awaited> {
    waiting: Arc<Mutex<Waiting<A::End>>>,
    wakes: Arc<Wakes>,
    hints: Arc<Hints>,
    worker: tokio::sync::Mutex<JoinSet<()>>,
}

impl<A: Awaited> Waiters<A> {
    /// Starts the worker on the current tokio runtime.
    pub fn start(
        pool: &Arc<Pool>,
        statements: &Arc<Statements>,
        wakes: &Arc<Wakes>,
        hints: &Arc<Hints>,
    ) -> Self {
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let worker = Worker::<A> {
            kind: PhantomData,
            waiting: Arc::clone(&waiting),
            wakes: Arc::clone(wakes),
            hints: Arc::clone(hints),
            pool: Arc::clone(pool),
            statements: Arc::clone(statements),
        };
        let mut workers = JoinSet::new();
        workers.spawn(worker.run());
        Self {
            waiting,
            wakes: Arc::clone(wakes),
            hints: Arc::clone(hints),
            worker: tokio::sync::Mutex::new(workers),
        }
    }

    /// Waits for an end; `None` when `limit` runs out first, an error when the provider closes. Dropping the future gives up
    /// the wait.
    pub async fn wait(&self, id: &str, limit: Duration) -> Result<Option<A::End>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(closed());
            }
            waiting.by_id.entry(id.to_owned()).or_default().push(sender);
        }
        A::watches(&self.wakes).watch(id);
        // What goes on here is told when it ends.
        if !A::is_under_way(&self.hints, id) {
            A::watches(&self.wakes).look_at(id);
        }
        let _watch = Watch { waiters: self, id };
        match tokio::time::timeout(limit, receiver).await {
            Ok(Ok(end)) => Ok(Some(end)),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Ok(None),
        }
    }

    /// What tells the waiters of one thing that it has ended.
    pub fn teller(&self) -> impl Fn(&str, &A::End) + Send + Sync + use<A> {
        let waiting = Arc::clone(&self.waiting);
        move |id, end| tell(&waiting, id, end)
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
struct Watch<'a, A: Awaited> {
    waiters: &'a Waiters<A>,
    id: &'a str,
}

impl<A: Awaited> Drop for Watch<'_, A> {
    fn drop(&mut self) {
        A::watches(&self.waiters.wakes).unwatch(self.id);
        let mut waiting = lock(&self.waiters.waiting);
        if let Some(senders) = waiting.by_id.get_mut(self.id) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.by_id.remove(self.id);
            }
        }
    }
}

struct Worker<A: Awaited> {
    kind: PhantomData<A>,
    waiting: Arc<Mutex<Waiting<A::End>>>,
    wakes: Arc<Wakes>,
    hints: Arc<Hints>,
    pool: Arc<Pool>,
    statements: Arc<Statements>,
}

impl<A: Awaited> Worker<A> {
    fn watches(&self) -> &Watches {
        A::watches(&self.wakes)
    }

    async fn run(self) {
        let mut poll = limits::WAIT_POLL_BASE;
        // News, however many, do not put it off.
        let mut polls_at = Instant::now() + poll;
        let mut hears: Option<HintUser> = None;
        loop {
            let ids = if self.watches().watched().is_empty() {
                hears = None;
                poll = limits::WAIT_POLL_BASE;
                self.watches().news().await;
                polls_at = Instant::now() + poll;
                self.watches().fresh()
            } else {
                tokio::select! {
                    () = self.watches().news() => self.watches().fresh(),
                    () = tokio::time::sleep_until(polls_at) => {
                        poll = (poll * 2).min(self.longest_poll());
                        polls_at = Instant::now() + poll;
                        // A wait that lasts is worth a listener.
                        if poll >= limits::WAIT_POLL_MAX {
                            hears.get_or_insert_with(|| self.hints.join_waiters()).adjust();
                        }
                        self.watches().watched()
                    }
                }
            };
            if let Err(error) = self.look_at_all(&ids).await {
                tracing::debug!(waiting = ids.len(), error = %error.full_text(), "no look for what has ended");
                // The database is away: the poll goes on and each waiter has its own limit.
                tokio::time::sleep(limits::WAIT_POLL_MAX).await;
            }
        }
    }

    fn longest_poll(&self) -> Duration {
        if self.hints.is_listening() { limits::WAIT_POLL_LISTENING } else { limits::WAIT_POLL_MAX }
    }

    /// However many wait, one statement asks for few: those in front do not wait for the answer to all.
    async fn look_at_all(&self, ids: &[String]) -> Result<()> {
        for some in ids.chunks(limits::WAIT_LOOK_IDS) {
            self.look(some).await?;
        }
        Ok(())
    }

    async fn look(&self, ids: &[String]) -> Result<()> {
        let statements = &self.statements;
        let look = |session: Loan| async move { A::ended(&session, statements, ids).await };
        for (id, end) in self.pool.run(CallerClass::Ordinary, look).await? {
            tell(&self.waiting, &id, &end);
        }
        Ok(())
    }
}

fn tell<E: Clone>(waiting: &Mutex<Waiting<E>>, id: &str, end: &E) {
    let senders = lock(waiting).by_id.remove(id).unwrap_or_default();
    for sender in senders {
        // A waiter that ran out meanwhile is not interested any more.
        let _ = sender.send(end.clone());
    }
}

fn lock<E>(waiting: &Mutex<Waiting<E>>) -> MutexGuard<'_, Waiting<E>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
