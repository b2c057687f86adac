//! A provider: one database and schema, with the pool, the committer and the hints that clients and runtimes share.

use std::{sync::Arc, time::Duration};

use crate::{
    commit::Committer,
    error::Result,
    lease::Starters,
    limits,
    notify::{Hints, Instances, Standalone, Waiters, Wakes},
    pool::{Pool, PoolConfig, SessionPurpose},
    store::{PostgresStore, Statements, Store, migrate},
    telemetry::{Counters, Events},
};

/// Whether connecting may change the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrateMode {
    /// Brings the schema up to this version.
    #[default]
    Apply,
    /// Refuses a schema of another version.
    Verify,
}

/// Options of a provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderConfig {
    /// The pool's.
    pub pool: PoolConfig,
    /// Whether connecting may change the schema; default apply.
    pub migrate: MigrateMode,
}

impl From<PoolConfig> for ProviderConfig {
    fn from(pool: PoolConfig) -> Self {
        Self { pool, ..Self::default() }
    }
}

/// What clients and runtimes share.
pub struct Provider {
    pool: Arc<Pool>,
    statements: Arc<Statements>,
    store: Arc<dyn Store>,
    /// A simulation: what has a thread of its own elsewhere is a task here.
    one_thread: bool,
    committer: Committer,
    starters: Starters,
    waiters: Waiters<Instances>,
    standalone_waiters: Waiters<Standalone>,
    wakes: Arc<Wakes>,
    hints: Arc<Hints>,
    counters: Arc<Counters>,
    events: Arc<Events>,
}

impl Provider {
    /// Connects, brings the schema up to this version, and starts the committer. Dropping the future leaves nothing
    /// half-made: migrations are transactions.
    pub async fn connect(url: &str, schema: &str, config: impl Into<ProviderConfig>) -> Result<Arc<Self>> {
        let ProviderConfig { pool, migrate } = config.into();
        let statements = Arc::new(Statements::new(schema));
        let pool = Pool::connect(url, pool).await?;
        let events = Arc::new(Events::default());
        pool.audience().join(&events);
        let session = pool.open_session(SessionPurpose::Migration).await?;
        match migrate {
            MigrateMode::Apply => migrate::run(&session, &statements).await?,
            MigrateMode::Verify => migrate::verify(&session, &statements).await?,
        }
        drop(session);
        let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&pool, &statements));
        Ok(Self::over(pool, statements, store, events, false))
    }

    /// A provider whose engines work on another store than the pool's. It takes no session of the pool by itself.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn simulated(pool: Arc<Pool>, store: Arc<dyn Store>) -> Arc<Self> {
        Self::over(pool, Arc::new(Statements::new("sim")), store, Arc::new(Events::default()), true)
    }

    fn over(
        pool: Arc<Pool>,
        statements: Arc<Statements>,
        store: Arc<dyn Store>,
        events: Arc<Events>,
        one_thread: bool,
    ) -> Arc<Self> {
        let wakes = Arc::new(Wakes::default());
        let counters = Arc::new(Counters::default());
        let hints = Hints::start(&pool, &statements, &store, &wakes, (&counters, &events));
        // A simulation has few instances; both workers are to have something there, too.
        let crowd = if one_thread { 2 } else { limits::COMMIT_CROWD };
        let committer = Committer::start(&store, &hints, (&counters, &events), crowd);
        let waiters = Waiters::start(&pool, &statements, &wakes, &hints);
        let tell = Waiters::<Instances>::teller(&waiters);
        wakes.on_end(move |end| tell(&end.instance, &end));
        let standalone_waiters = Waiters::start(&pool, &statements, &wakes, &hints);
        Arc::new(Self {
            pool,
            statements,
            store,
            one_thread,
            committer,
            starters: Starters::default(),
            waiters,
            standalone_waiters,
            wakes,
            hints,
            counters,
            events,
        })
    }

    /// Commits what is queued and gives up this provider's share of the pool; idempotent. Takes at most `limit` and what the
    /// pool needs to close.
    pub async fn close(&self, limit: Duration) {
        self.committer.close(limit).await;
        self.waiters.close().await;
        self.standalone_waiters.close().await;
        self.hints.close();
        self.pool.close().await;
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The statements of this schema.
    pub fn statements(&self) -> &Arc<Statements> {
        &self.statements
    }

    /// What the running rooms of an engine work on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn has_one_thread(&self) -> bool {
        self.one_thread
    }

    /// Who begins first turns in this process.
    pub(crate) fn starters(&self) -> &Starters {
        &self.starters
    }

    /// The committer.
    pub fn committer(&self) -> &Committer {
        &self.committer
    }

    /// The waiters for ends of instances.
    pub fn waiters(&self) -> &Waiters<Instances> {
        &self.waiters
    }

    /// The waiters for ends of standalone activities.
    pub fn standalone_waiters(&self) -> &Waiters<Standalone> {
        &self.standalone_waiters
    }

    /// Hints.
    pub fn wakes(&self) -> &Arc<Wakes> {
        &self.wakes
    }

    /// Hints between processes.
    pub fn hints(&self) -> &Arc<Hints> {
        &self.hints
    }

    /// Counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// What happened, for a listener.
    pub fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Counters and pool state as one JSON object, for people and tests.
    pub fn stats_json(&self) -> String {
        let pool = self.pool.stats();
        let pool = serde_json::json!({
            "url": pool.url,
            "max": pool.max,
            "total": pool.total,
            "idle": pool.idle,
            "waiting": pool.waiting,
            "acquires": pool.acquires,
            "acquireWaitP50Ms": ms(pool.acquire_wait_p50),
            "acquireWaitP95Ms": ms(pool.acquire_wait_p95),
            "saturationRejections": pool.saturation_rejections,
            "capacityRejections": pool.capacity_rejections,
            "breakerRejections": pool.breaker_rejections,
            "breakerOpen": pool.breaker_open,
            "connectionErrors": pool.connection_errors,
            "queryErrors": pool.query_errors,
            "retries": pool.retries,
            "peakTotal": pool.peak_total,
            "peakWaiting": pool.peak_waiting,
        });
        let counters: serde_json::Map<String, serde_json::Value> =
            self.counters.all().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        serde_json::json!({ "pool": pool, "counters": counters }).to_string()
    }
}

/// In ms, to the microsecond.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
