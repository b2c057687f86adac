//! What all shares of a pool have in common: admission in front, idle sessions behind.
//!
//! Invariant: a caller holds a place of the gate before it takes or opens a session, and opens one only when none is
//! idle, so sessions open never exceed places. The lock is never held across an await.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    config::PoolConfig,
    connector::Connector,
    gate::{CallerClass, Entry, Gate, Ticket},
    lease::{Lease, Place},
    session::Session,
    stats::PoolStats,
};
use crate::error::{Error, ErrorKind, Result};

/// What all shares have in common.
pub(super) struct Shared {
    config: PoolConfig,
    connector: Connector,
    state: Mutex<State>,
    acquires: AtomicU64,
    saturation_rejections: AtomicU64,
    connection_errors: AtomicU64,
}

struct State {
    gate: Gate,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
    idle: Vec<Idle>,
    closed: bool,
    /// Closes sessions that were idle too long.
    sweeper: Option<JoinHandle<()>>,
}

struct Idle {
    session: Session,
    since: Instant,
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the pool is closed")
}

impl Shared {
    /// A new pool; idle sessions are swept on the current runtime.
    pub(super) fn start(connector: Connector, config: PoolConfig) -> Arc<Self> {
        let state = State {
            gate: Gate::new(config.max_clients, config.max_waiting),
            waiting: HashMap::new(),
            idle: Vec::new(),
            closed: false,
            sweeper: None,
        };
        // A session lives between one and one and a half times the idle limit.
        let interval = (config.idle_timeout / 2).max(Duration::from_millis(10));
        let shared = Arc::new(Self {
            config,
            connector,
            state: Mutex::new(state),
            acquires: AtomicU64::new(0),
            saturation_rejections: AtomicU64::new(0),
            connection_errors: AtomicU64::new(0),
        });
        shared.state().sweeper = Some(tokio::spawn(sweep(Arc::downgrade(&shared), interval)));
        shared
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Whether a session was ever had.
    pub(super) fn is_proved(&self) -> bool {
        self.acquires.load(Ordering::Relaxed) > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn acquire(self: &Arc<Self>, class: CallerClass) -> Result<Lease> {
        let limit = self.config.acquire_timeout;
        let place = match tokio::time::timeout(limit, self.admit(class)).await {
            Ok(place) => place?,
            Err(_) => return Err(self.waited_too_long()),
        };
        let session = match self.take_idle(Instant::now()) {
            Some(session) => session,
            None => self.connector.open_pooled().await.inspect_err(|_| {
                self.connection_errors.fetch_add(1, Ordering::Relaxed);
            })?,
        };
        self.acquires.fetch_add(1, Ordering::Relaxed);
        Ok(Lease::new(session, place))
    }

    async fn admit(self: &Arc<Self>, class: CallerClass) -> Result<Place> {
        let (ticket, told) = {
            let mut state = self.state();
            if state.closed {
                return Err(closed());
            }
            match state.gate.enter(class, Instant::now()) {
                Entry::Admitted => return Ok(Place { pool: Arc::clone(self) }),
                Entry::Waiting(ticket) => {
                    let (tell, told) = oneshot::channel();
                    state.waiting.insert(ticket, tell);
                    (ticket, told)
                }
                Entry::Full { waiting, retry_after } => {
                    self.saturation_rejections.fetch_add(1, Ordering::Relaxed);
                    let text = format!("{waiting} callers wait for a session of the pool already");
                    return Err(Error::new(ErrorKind::Saturated, text).retry_after(retry_after));
                }
            }
        };
        let mut waiter = Waiter { pool: self, ticket: Some(ticket) };
        match told.await {
            Ok(()) => {
                waiter.ticket = None;
                Ok(Place { pool: Arc::clone(self) })
            }
            Err(_) => Err(closed()),
        }
    }

    fn waited_too_long(&self) -> Error {
        self.saturation_rejections.fetch_add(1, Ordering::Relaxed);
        let (waiting, hint) = {
            let state = self.state();
            (state.gate.waiting(), state.gate.retry_hint())
        };
        let limit = self.config.acquire_timeout.as_millis();
        let text = format!("no session of the pool within {limit} ms, {waiting} other callers wait");
        Error::new(ErrorKind::Saturated, text).retry_after(hint)
    }

    fn take_idle(&self, now: Instant) -> Option<Session> {
        let mut dead = Vec::new();
        let mut state = self.state();
        let found = loop {
            match state.idle.pop() {
                Some(idle) if idle.is_over(now, self.config.idle_timeout) => dead.push(idle),
                Some(idle) => break Some(idle.session),
                None => break None,
            }
        };
        // Sessions close outside the lock.
        drop(state);
        drop(dead);
        found
    }

    fn close_idle(&self, now: Instant) {
        let mut state = self.state();
        let (dead, kept) =
            state.idle.drain(..).partition(|idle: &Idle| idle.is_over(now, self.config.idle_timeout));
        state.idle = kept;
        drop(state);
        let _: Vec<Idle> = dead;
    }

    /// A session comes back from a caller.
    pub(super) fn take_back(&self, session: Session) {
        let mut state = self.state();
        if session.is_reusable() && !state.closed {
            state.idle.push(Idle { session, since: Instant::now() });
        } else {
            drop(state);
            drop(session);
        }
    }

    /// A place comes back; the next waiter gets it. From here on the place is the waiter's: one that is just giving
    /// up, or was told that the pool is closed, gives it back itself.
    pub(super) fn leave(&self, now: Instant) {
        let mut state = self.state();
        if let Some((ticket, _waited)) = state.gate.leave(now)
            && let Some(tell) = state.waiting.remove(&ticket)
        {
            let _ = tell.send(());
        }
    }

    fn withdraw(&self, ticket: Ticket) {
        let mut state = self.state();
        state.waiting.remove(&ticket);
        if !state.gate.withdraw(ticket) {
            drop(state);
            self.leave(Instant::now());
        }
    }

    pub(super) fn shut(&self) -> Vec<Session> {
        let mut state = self.state();
        state.closed = true;
        if let Some(sweeper) = state.sweeper.take() {
            sweeper.abort();
        }
        state.waiting.clear();
        state.idle.drain(..).map(|idle| idle.session).collect()
    }

    pub(super) fn stats(&self) -> PoolStats {
        let state = self.state();
        PoolStats {
            url: self.connector.redacted_url().to_owned(),
            max: self.config.max_clients,
            total: state.gate.admitted() + state.idle.len(),
            idle: state.idle.len(),
            waiting: state.gate.waiting(),
            acquires: self.acquires.load(Ordering::Relaxed),
            saturation_rejections: self.saturation_rejections.load(Ordering::Relaxed),
            connection_errors: self.connection_errors.load(Ordering::Relaxed),
        }
    }
}

/// A caller in the queue; dropped before it was told, it gives up its ticket, or the place that was just handed out.
struct Waiter<'a> {
    pool: &'a Shared,
    ticket: Option<Ticket>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.pool.withdraw(ticket);
        }
    }
}

impl Idle {
    fn is_over(&self, now: Instant, limit: Duration) -> bool {
        self.session.is_broken() || now.saturating_duration_since(self.since) >= limit
    }
}

async fn sweep(pool: Weak<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.close_idle(Instant::now());
    }
}
