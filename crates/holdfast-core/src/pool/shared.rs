//! The pool itself: admission in front, idle sessions behind, one shared pool for one URL and options.
//!
//! Invariant: a caller holds a place of the gate before it takes or opens a session, and opens one only when none is
//! idle, so sessions open never exceed places. The lock is never held across an await.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use once_cell::sync::Lazy;
use tokio::sync::oneshot;

use super::{
    config::PoolConfig,
    connector::Connector,
    gate::{CallerClass, Entry, Gate, Ticket},
    lease::{Lease, Place},
    session::{Session, SessionPurpose},
    stats::PoolStats,
};
use crate::error::{Error, ErrorKind, Result};

/// One user's share of a pool. Asking again for the same URL and options gives another share of the same pool; the
/// last share closed or dropped closes it.
pub struct Pool {
    shared: Arc<Shared>,
    closed: AtomicBool,
}

/// What all shares have in common.
pub(super) struct Shared {
    key: PoolKey,
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
}

struct Idle {
    session: Session,
    since: Instant,
}

type PoolKey = (String, PoolConfig);

/// A pool of the process and the number of its shares.
struct Registered {
    shared: Arc<Shared>,
    shares: usize,
}

static POOLS: Lazy<Mutex<HashMap<PoolKey, Registered>>> = Lazy::new(Mutex::default);

fn pools() -> MutexGuard<'static, HashMap<PoolKey, Registered>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A share of the process's pool for this URL and these options; proves that a session can be had. Dropping the
    /// future gives the share up.
    pub async fn connect(url: &str, config: PoolConfig) -> Result<Arc<Self>> {
        config.validate()?;
        let connector = Connector::new(url, &config)?;
        let key = (connector.identity(), config);
        let shared = {
            let mut pools = pools();
            let entry = pools
                .entry(key.clone())
                .or_insert_with(|| Registered { shared: Arc::new(Shared::new(key, connector)), shares: 0 });
            entry.shares += 1;
            Arc::clone(&entry.shared)
        };
        let pool = Arc::new(Self { shared, closed: AtomicBool::new(false) });
        drop(pool.acquire(CallerClass::Ordinary).await?);
        Ok(pool)
    }

    /// Waits for a session, for `acquire_timeout` at most. Dropping the future leaves the queue.
    pub async fn acquire(self: &Arc<Self>, class: CallerClass) -> Result<Lease> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.shared.acquire(class).await
    }

    /// Opens a session outside the pool, on the direct URL. The caller owns it and counts it.
    pub async fn open_session(&self, purpose: SessionPurpose) -> Result<Session> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.shared.connector.open_direct(purpose).await
    }

    /// The pool's numbers at this moment.
    pub fn stats(&self) -> PoolStats {
        self.shared.stats()
    }

    /// Gives up this share; the last one closes the idle sessions and refuses who waits. Sessions on loan are closed
    /// when they come back. Idempotent.
    pub async fn close(&self) {
        for session in self.give_up() {
            session.close().await;
        }
    }

    /// The URL without credentials.
    pub fn redacted_url(&self) -> &str {
        self.shared.connector.redacted_url()
    }

    /// The sessions to close, when this was the last share.
    fn give_up(&self) -> Vec<Session> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut pools = pools();
        let Some(entry) = pools.get_mut(&self.shared.key) else { return Vec::new() };
        entry.shares -= 1;
        if entry.shares > 0 {
            return Vec::new();
        }
        pools.remove(&self.shared.key);
        drop(pools);
        self.shared.shut()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.give_up());
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("stats", &self.stats()).finish()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the pool is closed")
}

impl Shared {
    fn new(key: PoolKey, connector: Connector) -> Self {
        let state = State {
            gate: Gate::new(key.1.max_clients, key.1.max_waiting),
            waiting: HashMap::new(),
            idle: Vec::new(),
            closed: false,
        };
        Self {
            key,
            connector,
            state: Mutex::new(state),
            acquires: AtomicU64::new(0),
            saturation_rejections: AtomicU64::new(0),
            connection_errors: AtomicU64::new(0),
        }
    }

    fn config(&self) -> &PoolConfig {
        &self.key.1
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn acquire(self: &Arc<Self>, class: CallerClass) -> Result<Lease> {
        let limit = self.config().acquire_timeout;
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
        let limit = self.config().acquire_timeout.as_millis();
        let text = format!("no session of the pool within {limit} ms, {waiting} other callers wait");
        Error::new(ErrorKind::Saturated, text).retry_after(hint)
    }

    fn take_idle(&self, now: Instant) -> Option<Session> {
        let limit = self.config().idle_timeout;
        let mut state = self.state();
        let mut dead = Vec::new();
        let found = loop {
            let Some(idle) = state.idle.pop() else { break None };
            if idle.session.is_broken() || now.saturating_duration_since(idle.since) >= limit {
                dead.push(idle);
            } else {
                break Some(idle.session);
            }
        };
        drop(state);
        drop(dead);
        found
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

    /// A place comes back; the next waiter gets it.
    pub(super) fn leave(&self, now: Instant) {
        let mut state = self.state();
        while let Some((ticket, _waited)) = state.gate.leave(now) {
            let told = state.waiting.remove(&ticket).is_some_and(|tell| tell.send(()).is_ok());
            if told {
                return;
            }
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

    fn shut(&self) -> Vec<Session> {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        state.idle.drain(..).map(|idle| idle.session).collect()
    }

    fn stats(&self) -> PoolStats {
        let state = self.state();
        PoolStats {
            url: self.connector.redacted_url().to_owned(),
            max: self.config().max_clients,
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
