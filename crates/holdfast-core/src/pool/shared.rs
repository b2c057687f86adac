//! What all shares of a pool have in common: admission in front, idle sessions behind.
//!
//! Invariant: whoever takes or opens a session holds a place of the gate before, and opens one only when none is idle, so
//! sessions open never exceed places. The lock is never held across an await.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    config::PoolConfig,
    connector::Connector,
    gate::{CallerClass, Entry, Gate, Ticket},
    health::{Health, Member},
    lease::{Lease, Loan, Place},
    session::Session,
    stats::PoolStats,
    trace::Trace,
    upkeep,
};
use crate::error::{Error, ErrorKind, Result};

/// What all shares have in common.
pub(super) struct Shared {
    pub(super) config: PoolConfig,
    pub(super) health: Arc<Health>,
    connector: Connector,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) gate: Gate,
    /// Runtimes that use it.
    runtimes: usize,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
    pub(super) idle: Vec<Idle>,
    pub(super) closed: bool,
    /// Looks after idle sessions.
    upkeep: Vec<JoinHandle<()>>,
}

pub(super) struct Idle {
    pub(super) session: Session,
    /// When it was given back.
    pub(super) since: Instant,
    /// When it was last known to answer.
    pub(super) proved: Instant,
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the pool is closed")
}

impl Shared {
    /// A new pool; idle sessions are looked after on the current runtime.
    pub(super) fn start(connector: Connector, config: PoolConfig) -> Arc<Self> {
        let state = State {
            gate: Gate::new(config.max_clients.with(0), config.max_waiting),
            runtimes: 0,
            waiting: HashMap::new(),
            idle: Vec::new(),
            closed: false,
            upkeep: Vec::new(),
        };
        let health = Health::new(&config);
        let shared = Arc::new(Self { config, health, connector, state: Mutex::new(state) });
        shared.state().upkeep = upkeep::start(&shared);
        shared
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Whether a session was ever had.
    pub(super) fn is_proved(&self) -> bool {
        self.health.tally.acquires.get() > 0
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn acquire(self: &Arc<Self>, class: CallerClass) -> Result<Lease> {
        let asked = Instant::now();
        let mut trace = Trace::begin(class);
        let lent = async {
            let place = self.enter(class).await?;
            trace.admitted();
            Ok((self.lend(asked).await?, place))
        };
        let (loan, place) = match lent.await {
            Ok(lent) => lent,
            Err(error) => {
                trace.ended(Err(&error));
                return Err(error);
            }
        };
        trace.lent(&loan);
        Ok(Lease::new(loan, place, trace))
    }

    /// Waits for a place, for the acquire limit at most; refused at once while the breaker is open.
    pub(super) async fn enter(self: &Arc<Self>, class: CallerClass) -> Result<Place> {
        self.health.look(Instant::now())?;
        match tokio::time::timeout(self.config.acquire_timeout, self.admit(class)).await {
            Ok(place) => place,
            Err(_) => Err(self.waited_too_long()),
        }
    }

    /// A session for a caller who holds a place and asked at this time.
    pub(super) async fn lend(self: &Arc<Self>, asked: Instant) -> Result<Loan> {
        // The breaker may have opened while the caller waited.
        let session = match self.health.enter(Instant::now())? {
            Some(trial) => {
                // Sessions from before prove nothing.
                drop(self.drain_idle());
                let opened = self.open_proved().await;
                trial.ended(&opened);
                opened?
            }
            None => match self.take_idle(Instant::now()) {
                Some(session) => session,
                None => self.open().await?,
            },
        };
        self.health.tally.acquired(asked.elapsed());
        Ok(Loan::new(session, self))
    }

    async fn open(&self) -> Result<Session> {
        let member = Member::new(&self.health);
        let opened = self.connector.open_pooled().await;
        let session = opened.inspect_err(|error| self.health.not_opened(error))?;
        session.enlist(member);
        Ok(session)
    }

    /// A pooler accepts connections to a database that is away; only an answer proves the whole way.
    async fn open_proved(&self) -> Result<Session> {
        let session = self.open().await?;
        session.prove(self.config.connect_timeout).await?;
        Ok(session)
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
                    self.health.tally.waiting(state.gate.waiting());
                    let (tell, told) = oneshot::channel();
                    state.waiting.insert(ticket, tell);
                    (ticket, told)
                }
                Entry::Full { waiting, retry_after } => {
                    drop(state);
                    let text = format!("{waiting} callers wait for a session of the pool already");
                    let error = Error::new(ErrorKind::Saturated, text).retry_after(retry_after);
                    self.health.saturated(&error, waiting);
                    return Err(error);
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
        let (waiting, hint) = {
            let state = self.state();
            (state.gate.waiting(), state.gate.retry_hint())
        };
        let limit = self.config.acquire_timeout.as_millis();
        let text = format!("no session of the pool within {limit} ms, {waiting} other callers wait");
        let error = Error::new(ErrorKind::Saturated, text).retry_after(hint);
        self.health.saturated(&error, waiting);
        error
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
        self.let_go(dead);
        found
    }

    /// Closes sessions that were idle; tells of those that were lost meanwhile.
    pub(super) fn let_go(&self, idle: Vec<Idle>) {
        for idle in idle {
            if let Some(reason) = idle.session.lost_by_itself() {
                self.health.lost("idle", &reason);
            }
        }
    }

    fn drain_idle(&self) -> Vec<Idle> {
        std::mem::take(&mut self.state().idle)
    }

    /// A session comes back from a caller.
    pub(super) fn take_back(&self, session: Session) {
        let mut state = self.state();
        if session.is_reusable() && !state.closed {
            let now = Instant::now();
            state.idle.push(Idle { session, since: now, proved: now });
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

    /// So many runtimes more, or fewer, use it.
    pub(super) fn runtimes(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.state();
        state.runtimes = change(state.runtimes);
        let capacity = self.config.max_clients.with(state.runtimes);
        for ticket in state.gate.resize(capacity) {
            // One that is just giving up gives its place back itself.
            if let Some(tell) = state.waiting.remove(&ticket) {
                let _ = tell.send(());
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

    pub(super) fn shut(&self) -> Vec<Session> {
        let mut state = self.state();
        state.closed = true;
        for task in state.upkeep.drain(..) {
            task.abort();
        }
        state.waiting.clear();
        state.idle.drain(..).map(|idle| idle.session).collect()
    }

    pub(super) fn stats(&self) -> PoolStats {
        let (idle, waiting, max) = {
            let state = self.state();
            (state.idle.len(), state.gate.waiting(), state.gate.capacity())
        };
        let tally = &self.health.tally;
        let (total, peak_total) = tally.open();
        let (acquire_wait_p50, acquire_wait_p95) = tally.waits();
        PoolStats {
            url: self.connector.redacted_url().to_owned(),
            max,
            total,
            idle,
            waiting,
            acquires: tally.acquires.get(),
            acquire_wait_p50,
            acquire_wait_p95,
            saturation_rejections: tally.saturation_rejections.get(),
            capacity_rejections: tally.capacity_rejections.get(),
            breaker_rejections: tally.breaker_rejections.get(),
            breaker_open: self.health.breaker_is_open(),
            connection_errors: tally.connection_errors.get(),
            query_errors: tally.query_errors.get(),
            retries: tally.retries.get(),
            peak_total,
            peak_waiting: tally.peak_waiting(),
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
    pub(super) fn is_over(&self, now: Instant, limit: Duration) -> bool {
        self.session.is_broken() || now.saturating_duration_since(self.since) >= limit
    }
}
