//! The engine of one runtime: it wires the rooms, owns every task, and starts and stops them in order.
//!
//! Start: register the node, then claim. Stop: claim nothing new, give back what has not started, let the rest finish
//! or stop it after the grace, settle, say goodbye last.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    activity::{self, ActivityLimits, ActivityRunner},
    config::EngineConfig,
    crossing::{AbortReason, ActivityAnswer, Answers, Broken, Outbox, Whose},
    dispatch::{Claimer, Handlers},
    error::Result,
    failpoint,
    lease::{Keeper, Kind, LeaseTimes, Returns},
    liveness::{Liveness, LivenessEvents, Node, Standing},
    provider::Provider,
    session::{SessionBook, SessionLimits},
    store::{Fence, NodeKey},
    telemetry::RunCounters,
    turn::{FrameCache, TurnRunner, TurnSetup},
};

/// A running engine.
pub struct Engine {
    outbox: Arc<Outbox>,
    /// Bounded by the slots: each turn and job that was handed out is answered once, and nothing is claimed for a slot
    /// before its answer was settled. `complete` runs on the JavaScript thread and must not wait.
    answers: mpsc::UnboundedSender<String>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
    claimer: Arc<Claimer>,
    provider: Arc<Provider>,
    counters: Arc<RunCounters>,
    stop: watch::Sender<bool>,
    parts: tokio::sync::Mutex<Option<Parts>>,
}

/// What a stop takes down, once.
struct Parts {
    claiming: JoinSet<()>,
    answering: JoinSet<()>,
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
        let Rooms { keeper, outbox, returns, sessions, turns, activities } =
            Rooms::new(&provider, &counters, &config, &handlers);
        let wake = provider.wakes().register();
        let node = Node {
            provider: Arc::clone(&provider),
            key: Arc::new(Mutex::new(NodeKey { id: config.liveness.node_id(), epoch: 0 })),
            standing: Arc::new(Standing::new(&config)),
            config,
            keeper,
            sessions,
        };
        let events = Arc::new(Events {
            turns: Arc::clone(&turns),
            activities: Arc::clone(&activities),
            wake: Arc::clone(&wake),
        });
        let liveness = Liveness::start(node.clone(), events).await?;
        let Node { config, keeper, sessions, key, standing, .. } = node;
        let claimer = Arc::new(Claimer {
            provider: Arc::clone(&provider),
            counters: Arc::clone(&counters),
            config,
            handlers,
            node: key,
            keeper,
            standing,
            returns,
            sessions,
            turns: Arc::clone(&turns),
            activities: Arc::clone(&activities),
            wake,
        });
        let (stop, stopping) = watch::channel(false);
        let (answers, received) = mpsc::unbounded_channel();
        let mut claiming = JoinSet::new();
        claiming.spawn(activity::sweep(Arc::clone(&provider), stopping.clone()));
        claiming.spawn(Arc::clone(&claimer).run(stopping));
        let mut answering = JoinSet::new();
        answering.spawn(answer_loop(
            received,
            Arc::clone(&outbox),
            Arc::clone(&turns),
            Arc::clone(&activities),
        ));
        let parts = tokio::sync::Mutex::new(Some(Parts { claiming, answering, liveness }));
        Ok(Arc::new(Self { outbox, answers, turns, activities, claimer, provider, counters, stop, parts }))
    }

    /// The next batch for JavaScript; `None` once the engine has stopped. Dropping the future loses nothing.
    pub async fn next(&self, max: usize) -> Option<String> {
        failpoint::hit("crossing.next.before");
        let batch = self.outbox.next(max).await;
        self.provider.counters().crossings.add(1);
        failpoint::hit("crossing.next.after");
        batch
    }

    /// A batch of answers from JavaScript. Never waits; slots bound how much can be on its way.
    pub fn complete(&self, text: String) {
        failpoint::hit("crossing.complete.before");
        // After a stop nobody listens: what is answered then was abandoned before.
        let _ = self.answers.send(text);
        failpoint::hit("crossing.complete.after");
    }

    /// Stops: drains for at most `grace`, then tells bodies to stop, then lets go, at most a second later. Idempotent; a
    /// second call waits for the first. Dropped half way the tasks end all the same, and the node says goodbye.
    pub async fn shutdown(&self, grace: Duration) {
        let mut parts = self.parts.lock().await;
        let Some(mut taken) = parts.take() else { return };
        // The claimer sees this at its next step.
        let _ = self.stop.send(true);
        self.claimer.wake.notify_one();
        let deadline = Instant::now() + grace.min(LONGEST_GRACE);
        let claimed = async { while taken.claiming.join_next().await.is_some() {} };
        let patience = deadline.max(Instant::now() + GOODBYE_LIMIT);
        if tokio::time::timeout_at(patience.into(), claimed).await.is_err() {
            // A claim that hangs must not hold up the stop; the goodbye frees what it may have taken.
            taken.claiming.shutdown().await;
        }
        let unstarted = self.outbox.drain();
        self.turns.give_back(unstarted.turns);
        self.activities.give_back(unstarted.activities);
        self.give_back().await;
        self.idle_until(deadline).await;
        if self.running() > 0 {
            self.activities.abort_all(AbortReason::Shutdown);
            self.idle_until(Instant::now() + ABORT_GRACE).await;
        }
        self.outbox.close();
        self.turns.stop_all();
        self.activities.stop_all();
        self.give_back().await;
        taken.answering.shutdown().await;
        taken.liveness.stop(GOODBYE_LIMIT).await;
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    /// What this runtime did so far, as one JSON object.
    pub fn metrics_json(&self) -> String {
        let all: serde_json::Map<String, serde_json::Value> =
            self.counters.all().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        serde_json::Value::from(all).to_string()
    }

    /// Turns and activities in progress.
    pub fn running(&self) -> usize {
        self.turns.running() + self.activities.running()
    }

    async fn give_back(&self) {
        let what = "leases were not given back; the other nodes recover them";
        match tokio::time::timeout(GOODBYE_LIMIT, self.claimer.give_back()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error = %error.full_text(), what),
            Err(_) => tracing::debug!(limit_ms = GOODBYE_LIMIT.as_millis() as u64, what),
        }
    }

    /// Waits until nothing is in progress, at most until `deadline`.
    async fn idle_until(&self, deadline: Instant) {
        while self.running() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // Each settled item rings the claimer's bell; the pause only bounds a bell that rang before.
            tokio::select! {
                () = self.claimer.wake.notified() => {}
                () = tokio::time::sleep(left.min(Duration::from_millis(20))) => {}
            }
        }
    }
}

/// The rooms of a runtime that hold state, wired.
struct Rooms {
    keeper: Arc<Keeper>,
    outbox: Arc<Outbox>,
    returns: Arc<Returns>,
    sessions: Arc<SessionBook>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
}

impl Rooms {
    fn new(
        provider: &Arc<Provider>,
        counters: &Arc<RunCounters>,
        config: &EngineConfig,
        handlers: &Handlers,
    ) -> Self {
        let keeper = Arc::new(Keeper::new(
            LeaseTimes {
                timeout: config.lease.orchestrator_lock_timeout,
                buffer: config.lease.orchestrator_lock_renewal_buffer,
            },
            LeaseTimes {
                timeout: config.lease.worker_lock_timeout,
                buffer: config.lease.worker_lock_renewal_buffer,
            },
        ));
        let outbox = Arc::new(Outbox::default());
        let returns = Arc::new(Returns::default());
        let limits = SessionLimits {
            lease: config.session.times(),
            most: config.session.max_sessions,
            sweep_every: config.session.cleanup_interval,
        };
        let sessions = Arc::new(SessionBook::new(limits, Instant::now()));
        let turns = Arc::new(TurnRunner::new(
            Arc::clone(provider),
            Arc::clone(&keeper),
            Arc::clone(&returns),
            Arc::clone(&outbox),
            Arc::clone(counters),
            TurnSetup {
                newest: handlers.newest(),
                cache: FrameCache::new(config.cache.sticky_cache_size, config.cache.sticky_cache_bytes)
                    .forgetting(failpoint::evict_percent()),
                slots: config.dispatch.orchestration_concurrency,
                max_attempts: config.lease.max_attempts,
            },
        ));
        let activities = Arc::new(ActivityRunner::new(
            Arc::clone(provider),
            Arc::clone(&keeper),
            Arc::clone(&returns),
            Arc::clone(&outbox),
            Arc::clone(counters),
            Arc::clone(&sessions),
            ActivityLimits {
                slots: config.dispatch.worker_concurrency,
                timeout: config.activity.timeout,
                grace: config.activity.cancellation_grace_period,
            },
        ));
        let runner = Arc::downgrade(&activities);
        provider.wakes().on_gone(move |key| runner.upgrade().is_some_and(|runner| runner.gone(key)));
        Self { keeper, outbox, returns, sessions, turns, activities }
    }
}

/// A longer grace is for ever; beyond it times overflow.
const LONGEST_GRACE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// From the abort signal at a stop until the runtime lets go of what still runs: enough for code that heeds its signal.
const ABORT_GRACE: Duration = Duration::from_millis(200);

/// Longest wait for giving back and for the goodbye: with both and [`ABORT_GRACE`] a stop ends a second after its grace at
/// the latest, also when the database is away. What is not given back by then the other nodes recover.
const GOODBYE_LIMIT: Duration = Duration::from_millis(400);

/// What the liveness thread sets off in the other rooms.
struct Events {
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
    wake: Arc<tokio::sync::Notify>,
}

impl LivenessEvents for Events {
    fn lost(&self, kind: Kind, fence: Fence) {
        match kind {
            Kind::Turn => self.turns.lost(fence),
            Kind::Activity => self.activities.lost(fence, AbortReason::Cancelled),
        }
    }

    fn declared_dead(&self) {
        self.turns.drop_live();
        self.activities.abort_all(AbortReason::Lost);
    }

    fn released(&self) {
        self.wake.notify_one();
    }
}

/// Hands answers to their runners; ends when the engine is dropped or stopped.
async fn answer_loop(
    mut received: mpsc::UnboundedReceiver<String>,
    outbox: Arc<Outbox>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
) {
    while let Some(text) = received.recv().await {
        let answers = Answers::parse(&text);
        for reply in answers.turns {
            turns.answer(reply);
        }
        for answer in answers.activities {
            let ActivityAnswer { h, .. } = answer;
            activities.answer(h, answer.result());
        }
        for Broken { whose, error } in answers.broken {
            tracing::error!(error = %error.full_text(), ?whose, "an answer of JavaScript cannot be read");
            match whose {
                Whose::Turn(frame) => turns.unreadable(frame, &error),
                Whose::Activity(h) => activities.unreadable(h, &error),
                Whose::Unknown => {
                    let unstarted = outbox.unstarted();
                    turns.give_up(&unstarted.turns);
                    activities.give_up(&unstarted.activities);
                }
            }
        }
    }
}
