//! One pool for one URL and options in the process, shared by all who ask for it.
//!
//! Invariants: equal requests get shares of the same pool; each share counts once, however often it is closed; the
//! last share closed or dropped closes the pool. The lock is never held across an await.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use once_cell::sync::Lazy;

use super::{
    config::{PoolConfig, PoolerMode},
    connector::Connector,
    direct::DirectWay,
    endpoint::Endpoints,
    gate::CallerClass,
    lease::{Lease, Loan},
    retry,
    session::{Session, SessionPurpose},
    shared::{Shared, closed},
    stats::PoolStats,
};
use crate::{error::Result, telemetry::Audience};

/// One user's share of a pool. Asking again for the same URL and options gives another share of the same pool; the
/// last share closed or dropped closes it.
pub struct Pool {
    key: PoolKey,
    shared: Arc<Shared>,
    closed: AtomicBool,
}

/// What makes two requests ask for the same pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    endpoints: Endpoints,
    config: PoolConfig,
}

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
        let endpoints = Endpoints::new(url, config.direct_url.as_deref(), config.pooled)?;
        // Where sessions go is told by the end points alone; however that was said makes no other pool.
        let key = PoolKey {
            endpoints,
            config: PoolConfig { direct_url: None, pooled: PoolerMode::Auto, ..config },
        };
        // Outside the lock, because it reads certificates; a second maker's work is dropped.
        let connector = Connector::new(key.endpoints.clone(), &key.config)?;
        let shared = {
            let mut pools = pools();
            let entry = pools.entry(key.clone()).or_insert_with(|| Registered {
                shared: Shared::start(connector, key.config.clone()),
                shares: 0,
            });
            entry.shares += 1;
            Arc::clone(&entry.shared)
        };
        let pool = Arc::new(Self { key, shared, closed: AtomicBool::new(false) });
        if !pool.shared.is_proved() {
            drop(pool.acquire(CallerClass::Ordinary).await?);
        }
        Ok(pool)
    }

    /// A share of no pool: every call is refused as by a closed one. It does no I/O.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn refusing() -> Arc<Self> {
        let config = PoolConfig::default();
        let url = "postgresql://nobody@127.0.0.1:1/none?sslmode=disable";
        let endpoints = Endpoints::new(url, None, PoolerMode::No).expect("a valid URL");
        let connector = Connector::new(endpoints.clone(), &config).expect("no certificates are read");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime without I/O");
        // What looks after idle sessions ends with this runtime: there are none.
        let shared = {
            let _context = runtime.enter();
            Shared::start(connector, config.clone())
        };
        Arc::new(Self { key: PoolKey { endpoints, config }, shared, closed: AtomicBool::new(true) })
    }

    /// Whether these options, or the URL itself, say that a transaction pooler is in between; no I/O.
    pub fn expects_pooler(url: &str, config: &PoolConfig) -> Result<bool> {
        Ok(Endpoints::new(url, config.direct_url.as_deref(), config.pooled)?.hot_pooled)
    }

    /// A runtime uses the pool, until this is dropped: it may have all its clients.
    pub fn used_by_a_runtime(&self) -> Runtimes {
        self.shared.runtimes(|count| count + 1);
        Runtimes { shared: Arc::clone(&self.shared) }
    }

    /// Waits for a session, for `acquire_timeout` at most. Dropping the future leaves the queue.
    pub async fn acquire(self: &Arc<Self>, class: CallerClass) -> Result<Lease> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.shared.acquire(class).await
    }

    /// Runs an operation that may be run twice, and runs the whole of it again, up to `retry_attempts` times, when the
    /// connection was lost, a time limit ran out or a transaction lost against another. Dropping the future gives the
    /// operation up and breaks its session if a call is in flight.
    pub async fn run<T, F>(&self, class: CallerClass, operation: impl Fn(Loan) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        retry::run(&self.shared, class, operation).await
    }

    /// Makes sure that a session is there and answers, so that the first real call need not wait for a connection, or
    /// for a database that was asleep. Dropping the future gives it up.
    pub async fn warm(&self) -> Result<()> {
        let limit = self.shared.config.query_timeout;
        let prove = |session: Loan| async move { session.prove(limit).await };
        self.run(CallerClass::Ordinary, prove).await
    }

    /// Opens a session outside the pool, on the direct URL. The caller owns it and counts it.
    pub async fn open_session(&self, purpose: SessionPurpose) -> Result<Session> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.shared.connector().open_direct(purpose).await
    }

    /// Proves that a session outside the pool can be had, see [`DirectWay::probe`].
    pub async fn probe_direct(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.direct().probe().await
    }

    /// The way past the pool, for what must outlive this share.
    pub fn direct(&self) -> DirectWay {
        DirectWay { shared: Arc::clone(&self.shared) }
    }

    /// Who hears what happens to the pool, all its shares alike.
    pub fn audience(&self) -> &Audience {
        &self.shared.health.audience
    }

    /// The pool's numbers at this moment.
    pub fn stats(&self) -> PoolStats {
        self.shared.stats()
    }

    /// Gives up this share; the last one closes the idle sessions and refuses who waits. Sessions on loan are closed
    /// when they come back. Idempotent.
    pub async fn close(&self) {
        say_goodbye(self.give_up()).await;
    }

    /// Sessions opened from here on show this password instead of the URL's; those that are open stay. It counts for every
    /// share of the pool.
    pub fn set_password(&self, password: String) {
        self.shared.connector().set_password(password);
    }

    /// The URL without credentials.
    pub fn redacted_url(&self) -> &str {
        self.shared.connector().redacted_url()
    }

    /// Closes every pool of the process, whoever has shares of it.
    pub async fn close_all() {
        let all: Vec<Arc<Shared>> = pools().drain().map(|(_, entry)| entry.shared).collect();
        for shared in all {
            say_goodbye(shared.shut()).await;
        }
    }

    /// The sessions to close, when this was the last share.
    fn give_up(&self) -> Vec<Session> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut pools = pools();
        let Some(entry) = pools.get_mut(&self.key).filter(|entry| Arc::ptr_eq(&entry.shared, &self.shared))
        else {
            return Vec::new();
        };
        entry.shares -= 1;
        if entry.shares > 0 {
            return Vec::new();
        }
        pools.remove(&self.key);
        drop(pools);
        self.shared.shut()
    }
}

/// A runtime that uses a pool.
pub struct Runtimes {
    shared: Arc<Shared>,
}

impl Drop for Runtimes {
    fn drop(&mut self) {
        self.shared.runtimes(|count| count.saturating_sub(1));
    }
}

async fn say_goodbye(sessions: Vec<Session>) {
    futures_util::future::join_all(sessions.into_iter().map(Session::close)).await;
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
