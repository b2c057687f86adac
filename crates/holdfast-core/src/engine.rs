//! The engine of one runtime: it wires the rooms, owns every task, and starts and stops them in order.
//!
//! Start: register the node, then claim. Stop: claim nothing new, give back what has not started, let the rest finish
//! or stop it after the grace, settle, say goodbye last.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::watch, task::JoinSet};

use crate::{
    activity::{ActivityLimits, ActivityRunner},
    clock::{self, Moment},
    config::{EngineConfig, ms},
    crossing::{AbortReason, Outbox, Pulled},
    dispatch::{Claimer, FreeSlots, Handlers},
    error::Result,
    failpoint,
    lease::{Keeper, LeaseTimes, Returns, Unregistered},
    limits,
    liveness::{Liveness, Node, Standing},
    provider::Provider,
    session::{SessionBook, SessionLimits},
    store::NodeKey,
    telemetry::{Gauges, Progress, RunCounters},
    turn::{FrameCache, TurnRunner, TurnSetup},
};

mod depths;
mod events;
mod health;
mod parts;
mod sweep_pace;
mod sweeper;
mod unserved;

use events::Events;
pub use health::{Health, Slots};
use parts::{Answering, keep_house, keep_running};

/// A running engine.
pub struct Engine {
    outbox: Arc<Outbox>,
    answering: Answering,
    /// Where its tasks run; JavaScript brings answers on a thread of its own.
    runtime: Handle,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
    claimer: Arc<Claimer>,
    node: Node,
    counters: Arc<RunCounters>,
    gauges: Arc<Gauges>,
    stop: watch::Sender<bool>,
    /// A stop that does not wait any longer.
    hurry: watch::Sender<bool>,
    parts: tokio::sync::Mutex<Option<Parts>>,
}

/// What a stop takes down, once.
struct Parts {
    claiming: JoinSet<()>,
    liveness: Liveness,
}

impl Engine {
    /// Starts a runtime on a provider: registers its node and begins to claim. Dropping the future before it resolves may
    /// leave a node row, which goes stale.
    pub async fn start(
        provider: Arc<Provider>,
        config: EngineConfig,
        handlers: Handlers,
    ) -> Result<Arc<Self>> {
        config.validate()?;
        let counters = Arc::new(RunCounters::default());
        let claiming = Arc::new(Progress::new("claimer", failpoint::patience(limits::CLAIM_LIMIT)));
        let answering = Arc::new(Progress::new("answers", Duration::ZERO));
        let node = new_node(&provider, config, [&claiming, &answering]);
        let Rooms { outbox, returns, turns, activities } = Rooms::new(&node, &counters, &handlers);
        let wake = provider.wakes().register();
        let events = Arc::new(Events {
            turns: Arc::clone(&turns),
            activities: Arc::clone(&activities),
            outbox: Arc::clone(&outbox),
            wake: Arc::clone(&wake),
            hints: Arc::clone(provider.hints()),
        });
        let liveness = Liveness::start(node.clone(), events).await?;
        node.hints.claims(&node.key, &wake);
        let (stop, stopping) = watch::channel(false);
        let slots = FreeSlots::offer(&node, &handlers, &turns, &activities, stopping.clone());
        let claimer = Arc::new(Claimer {
            _slots: slots,
            provider: Arc::clone(&provider),
            counters: Arc::clone(&counters),
            config: node.config.clone(),
            handlers,
            node: Arc::clone(&node.key),
            keeper: Arc::clone(&node.keeper),
            standing: Arc::clone(&node.standing),
            along: Arc::clone(&node.along),
            progress: claiming,
            returns,
            sessions: Arc::clone(&node.sessions),
            turns: Arc::clone(&turns),
            activities: Arc::clone(&activities),
            wake,
        });
        let mut claims = JoinSet::new();
        let claiming = Arc::clone(&claimer);
        let gauges = keep_house(&mut claims, &provider, &node.config, (&turns, &activities), &stopping);
        claims.spawn(keep_running(Arc::clone(&provider), "claimer", move |again| {
            Arc::clone(&claiming).run(stopping.clone(), again)
        }));
        let answering = Answering {
            outbox: Arc::clone(&outbox),
            turns: Arc::clone(&turns),
            activities: Arc::clone(&activities),
            counters: Arc::clone(provider.counters()),
            progress: answering,
        };
        Ok(Arc::new(Self {
            outbox,
            answering,
            runtime: Handle::current(),
            turns,
            activities,
            claimer,
            node,
            counters,
            gauges,
            stop,
            hurry: watch::Sender::new(false),
            parts: tokio::sync::Mutex::new(Some(Parts { claiming: claims, liveness })),
        }))
    }

    /// The next batch for JavaScript; `None` once the engine has stopped. What [`Engine::complete`] finds ready from this call on
    /// is given there. Dropping the future loses nothing.
    pub fn next(self: &Arc<Self>, max: usize) -> impl Future<Output = Option<String>> + Send + use<> {
        failpoint::hit("crossing.next.before");
        let next = self.outbox.next(max);
        let engine = Arc::clone(self);
        async move {
            let pulled = next.await;
            engine.node.provider.counters().crossings.add(1);
            failpoint::hit("crossing.next.after");
            pulled.map(|pulled| engine.handed(pulled))
        }
    }

    /// A batch of answers from JavaScript. Never waits. After a stop what is answered was abandoned before. Gives what is ready for
    /// JavaScript then, at most `max` items, as [`Engine::next`] would bring it: what follows from the answers at once needs no
    /// other thread.
    pub fn complete(&self, text: &str, max: usize) -> Option<String> {
        let _entered = self.runtime.enter();
        failpoint::hit("crossing.complete.before");
        let pulled = self.outbox.after(max, || self.answering.hand_out(text));
        failpoint::hit("crossing.complete.after");
        pulled.map(|pulled| self.handed(pulled))
    }

    /// The text of a batch that JavaScript gets now.
    fn handed(&self, pulled: Pulled) -> String {
        self.activities.started(&pulled.activities);
        pulled.text
    }

    /// Stops: drains for at most `grace`, then tells bodies to stop, then lets go, at most a second later. Idempotent; a
    /// second call waits for the first. Dropped half way the tasks end all the same, and the node says goodbye.
    pub async fn shutdown(&self, grace: Duration) {
        let mut parts = self.parts.lock().await;
        let Some(mut taken) = parts.take() else { return };
        // The claimer sees this at its next step.
        let _ = self.stop.send(true);
        self.claimer.wake.ring();
        let deadline = clock::now() + grace.min(LONGEST_GRACE);
        let claimed = async { while taken.claiming.join_next().await.is_some() {} };
        let patience = deadline.max(clock::now() + CLAIM_PATIENCE);
        if tokio::time::timeout_at(patience.into(), claimed).await.is_err() {
            // A claim that hangs must not hold up the stop; the goodbye frees what it may have taken.
            taken.claiming.shutdown().await;
        }
        // Work that was made ready here told nobody else.
        self.node.provider.hints().tell_released(u64::MAX);
        let unstarted = self.outbox.drain();
        self.turns.give_back(unstarted.turns);
        self.activities.give_back(unstarted.activities);
        self.turns.end_all_kept();
        self.give_back(deadline + GIVING_BACK).await;
        self.idle_until(deadline).await;
        if self.running() > 0 {
            self.activities.abort_all(AbortReason::Shutdown);
            self.hurry.send_replace(false);
            self.idle_until(clock::now() + ABORT_GRACE).await;
        }
        // What running bodies told last goes with their tasks to who runs them next.
        let last = deadline + AFTER_GRACE - GOODBYE_LIMIT;
        let _ = tokio::time::timeout_at(last.into(), self.activities.write_beats()).await;
        self.outbox.close();
        self.turns.stop_all();
        self.activities.stop_all();
        self.give_back(last).await;
        taken.liveness.stop(GOODBYE_LIMIT).await;
    }

    /// The JavaScript loop turns. From the first call on it is watched: calls must come at [`Engine::life_interval`].
    pub fn sign_of_life(&self) {
        self.node.life.sign();
    }

    /// How often the JavaScript loop is to give a sign of life; `None` when nobody asks.
    pub fn life_interval(&self) -> Option<Duration> {
        self.node.config.watchdog.life_interval()
    }

    /// A stop in progress waits no longer for what runs. Without a stop it counts for the next one.
    pub fn hurry(&self) {
        // Nobody may be waiting yet.
        self.hurry.send_replace(true);
    }

    /// How this engine does at this moment. Never waits.
    pub fn health(&self) -> Health {
        let slots = |used: usize, free: usize| Slots { used, free };
        health::Findings {
            standing: &self.node.standing,
            node: self.node.key.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            late_after: 2 * self.node.config.liveness.heartbeat_interval,
            stopping: *self.stop.borrow(),
            orchestration_slots: slots(self.turns.running(), self.turns.free()),
            activity_slots: slots(self.activities.running(), self.activities.free()),
        }
        .judge(Moment::now())
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<Provider> {
        &self.node.provider
    }

    /// What this runtime did so far and the depths of the queues as it saw them last, as one JSON object.
    pub fn metrics_json(&self) -> String {
        let mut all: serde_json::Map<String, serde_json::Value> =
            self.counters.all().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let depths = self.gauges.last();
        all.insert("orchQueueDepth".to_owned(), depths.map(|depths| depths.turns).into());
        all.insert("workerQueueDepth".to_owned(), depths.map(|depths| depths.activities).into());
        serde_json::Value::from(all).to_string()
    }

    /// Turns and activities in progress.
    pub fn running(&self) -> usize {
        self.turns.running() + self.activities.running()
    }

    async fn give_back(&self, last: Instant) {
        let what = "leases were not given back; the other nodes recover them";
        let until = last.min(clock::now() + GOODBYE_LIMIT);
        match tokio::time::timeout_at(until.into(), self.claimer.give_back()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error = %error.full_text(), what),
            Err(_) => tracing::debug!(limit_ms = GOODBYE_LIMIT.as_millis() as u64, what),
        }
    }

    /// Waits until nothing is in progress, at most until `deadline`, and not for somebody in a hurry.
    async fn idle_until(&self, deadline: Instant) {
        let mut hurry = self.hurry.subscribe();
        while self.running() > 0 && !*hurry.borrow_and_update() {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            // Each settled item rings the claimer's bell; the pause only bounds a bell that rang before.
            tokio::select! {
                biased;
                _ = self.claimer.wake.rung() => {}
                () = tokio::time::sleep(left.min(Duration::from_millis(20))) => {}
                _ = hurry.changed() => {}
            }
        }
    }
}

/// The rooms of a runtime that hold state, wired.
struct Rooms {
    outbox: Arc<Outbox>,
    returns: Arc<Returns>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
}

impl Rooms {
    fn new(node: &Node, counters: &Arc<RunCounters>, handlers: &Handlers) -> Self {
        let Node { provider, config, keeper, sessions, standing, .. } = node;
        let standing = Arc::clone(standing);
        let outbox = Arc::new(Outbox::guarded(move || !standing.fenced(Moment::now())));
        let dispatch = &config.dispatch;
        let delays = Unregistered::new(dispatch.unregistered_backoff_base, dispatch.unregistered_backoff_max);
        let returns = Arc::new(Returns::new(delays));
        let turns = Arc::new(TurnRunner::new(
            Arc::clone(provider),
            Arc::clone(keeper),
            Arc::clone(&returns),
            Arc::clone(&outbox),
            Arc::clone(counters),
            TurnSetup {
                newest: handlers.newest(),
                cache: FrameCache::new(config.cache.sticky_cache_size, config.cache.sticky_cache_bytes)
                    .forgetting(failpoint::evict_percent()),
                slots: config.dispatch.orchestration_concurrency,
                max_attempts: config.lease.max_attempts,
                kept: config.lease.kept(),
                lease_ms: ms(config.lease.orchestrator_lock_timeout),
                limits: config.limits.of_execution(),
            },
        ));
        let activities = Arc::new(ActivityRunner::new(
            Arc::clone(provider),
            Arc::clone(keeper),
            Arc::clone(&returns),
            Arc::clone(&outbox),
            Arc::clone(counters),
            Arc::clone(sessions),
            ActivityLimits {
                slots: config.dispatch.worker_concurrency,
                lease_ms: ms(config.lease.worker_lock_timeout),
                kept: config.lease.kept(),
                timeout: config.activity.timeout,
                grace: config.activity.cancellation_grace_period,
                max_attempts: i32::try_from(config.lease.max_attempts).unwrap_or(i32::MAX),
            },
        ));
        let runner = Arc::downgrade(&activities);
        provider.wakes().on_gone(move |key| runner.upgrade().is_some_and(|runner| runner.gone(key)));
        Self { outbox, returns, turns, activities }
    }
}

fn new_node(provider: &Arc<Provider>, config: EngineConfig, watched: [&Arc<Progress>; 2]) -> Node {
    Node {
        hints: Arc::new(provider.hints().join(config.liveness.listener)),
        provider: Arc::clone(provider),
        keeper: Arc::new(Keeper::new(turn_times(&config), activity_times(&config))),
        key: Arc::new(Mutex::new(NodeKey { id: config.liveness.node_id(), epoch: 0 })),
        standing: Arc::new(Standing::new(&config)),
        along: Arc::default(),
        life: Arc::default(),
        parts: watched.into_iter().chain(provider.committer().progress()).map(Arc::clone).collect(),
        sessions: Arc::new(session_book(&config)),
        config,
    }
}

fn turn_times(config: &EngineConfig) -> LeaseTimes {
    LeaseTimes {
        timeout: config.lease.orchestrator_lock_timeout,
        buffer: config.lease.orchestrator_lock_renewal_buffer,
    }
}

fn session_book(config: &EngineConfig) -> SessionBook {
    let limits = SessionLimits {
        lease: config.session.times(),
        most: config.session.max_sessions,
        sweep_every: config.session.cleanup_interval,
    };
    SessionBook::new(limits, clock::now())
}

fn activity_times(config: &EngineConfig) -> LeaseTimes {
    LeaseTimes { timeout: config.lease.worker_lock_timeout, buffer: config.lease.worker_lock_renewal_buffer }
}

/// A longer grace is for ever; beyond it times overflow.
const LONGEST_GRACE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// From the abort signal at a stop until the runtime lets go of what still runs: enough for code that heeds its signal.
const ABORT_GRACE: Duration = Duration::from_millis(200);

/// A stop ends so long after its grace at the latest, also when the database is away.
const AFTER_GRACE: Duration = Duration::from_secs(1);

/// Longest wait for giving back, and for the goodbye, the last part of a stop. What is not given back by then the other nodes
/// recover. Of [`AFTER_GRACE`] the goodbye has 400 ms; before it come 300 ms for a claim that is under way and for what it
/// brings, [`ABORT_GRACE`], and what is left for what bodies told last and for giving back what they let go.
const GOODBYE_LIMIT: Duration = Duration::from_millis(400);

/// Longest wait for a claim that is under way, when the grace is shorter.
const CLAIM_PATIENCE: Duration = Duration::from_millis(200);

/// From the grace until what was not started is given back.
const GIVING_BACK: Duration = Duration::from_millis(300);
