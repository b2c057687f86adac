//! One simulated process: a runtime of its own on a virtual clock, an engine or a client on it, and the wire to the world.
//!
//! Stopping it is not running it; when it goes on its clock is where the world's is, and everything due meanwhile is due at
//! once. Killing it is dropping it.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use super::{
    host::{self, Ground},
    port::{Call, SimStore, Wire},
    program::Dice,
};
use crate::{
    chance,
    client::{Client, Sent, StartOutcome},
    clock,
    config::EngineConfig,
    dispatch::Handlers,
    engine::Engine,
    error::Result,
    pool::Pool,
    provider::Provider,
    store::{Store, commit::Start},
};

/// What a client's call came to.
pub(super) enum Told {
    Start(Start, Result<StartOutcome>),
    Raise(String, u64, Result<Sent>),
    Cancel(String, Result<Sent>),
}

/// See the module.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) wire: Arc<Wire>,
    pub(super) ground: Ground,
    /// The world's time up to which it ran.
    pub(super) clock: u64,
    /// Not run before.
    pub(super) stopped_until: u64,
    pub(super) told: Arc<Mutex<Vec<Told>>>,
    /// Calls of clients in it whose outcome was not heard yet.
    pub(super) calls_open: u64,
    begin: Instant,
    born: u64,
    chance: u64,
    /// Dropped inside the runtime, which goes last.
    inside: Option<Inside>,
    runtime: Runtime,
}

struct Inside {
    provider: Arc<Provider>,
    tasks: JoinSet<()>,
}

/// The pool of a provider that has none: every call of it is refused, without I/O.
fn no_pool() -> Arc<Pool> {
    thread_local! {
        static NONE: Arc<Pool> = Pool::refusing();
    }
    NONE.with(Arc::clone)
}

impl Process {
    /// A process without an engine: a client.
    pub(super) fn new(name: &str, born: u64, seed: u64) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without I/O");
        let begin = runtime.block_on(async { clock::now() });
        let wire = Arc::<Wire>::default();
        let mut process = Self {
            name: name.to_owned(),
            wire: Arc::clone(&wire),
            ground: Ground::default(),
            clock: born,
            stopped_until: 0,
            told: Arc::default(),
            calls_open: 0,
            begin,
            born,
            chance: seed,
            inside: None,
            runtime,
        };
        let store: Arc<dyn Store> = Arc::new(SimStore(wire));
        process.inside = process.within(|| {
            let provider = Provider::simulated(no_pool(), store);
            Some(Inside { provider, tasks: JoinSet::new() })
        });
        process
    }

    /// Starts an engine; one that cannot register tries again.
    pub(super) fn start_engine(&mut self, config: EngineConfig, ground: Ground, watched: bool) {
        self.ground = ground.clone();
        let dice = Dice(self.chance ^ 0xd1ce);
        self.spawn(move |provider| async move {
            let handlers = Handlers::parse(
                r#"{"orchestrations":[{"name":"program","version":"1.0.0"}],"activities":["fine","fails","flaky","slow","kills"]}"#,
            )
            .expect("handlers");
            loop {
                match Engine::start(Arc::clone(&provider), config.clone(), handlers.clone()).await {
                    Ok(engine) => return host::run(engine, ground, dice, watched).await,
                    Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
                }
            }
        });
    }

    pub(super) fn start_instance(&mut self, start: Start) {
        self.calls_open += 1;
        let told = Arc::clone(&self.told);
        self.spawn(move |provider| async move {
            let mut outcomes = Client::new(provider).start(vec![start.clone()]).await;
            if let Some(outcome) = outcomes.pop() {
                told.lock().unwrap_or_else(PoisonError::into_inner).push(Told::Start(start, outcome));
            }
        });
    }

    pub(super) fn raise(&mut self, instance: String, name: &'static str, number: u64) {
        self.calls_open += 1;
        let told = Arc::clone(&self.told);
        self.spawn(move |provider| async move {
            let data = holdfast_replay::Payload::of(&number);
            let body = holdfast_replay::MessageBody::EventRaised { name: name.to_owned(), data };
            let outcome = Client::new(provider).send(instance.clone(), body).await;
            told.lock().unwrap_or_else(PoisonError::into_inner).push(Told::Raise(instance, number, outcome));
        });
    }

    pub(super) fn cancel(&mut self, instance: String) {
        self.calls_open += 1;
        let told = Arc::clone(&self.told);
        self.spawn(move |provider| async move {
            let body = holdfast_replay::MessageBody::CancelRequested { reason: "wanted".to_owned() };
            let outcome = Client::new(provider).send(instance.clone(), body).await;
            told.lock().unwrap_or_else(PoisonError::into_inner).push(Told::Cancel(instance, outcome));
        });
    }

    /// A hint of another process comes in.
    pub(super) fn hear(&mut self, payload: &str) {
        self.within(|| ());
        let Some(inside) = &self.inside else { return };
        let _context = self.runtime.enter();
        inside.provider.hints().hear(payload);
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&mut self, task: impl FnOnce(Arc<Provider>) -> F) {
        let Some(mut inside) = self.inside.take() else { return };
        self.within(|| {
            while inside.tasks.try_join_next().is_some() {}
            let task = task(Arc::clone(&inside.provider));
            inside.tasks.spawn(task);
        });
        self.inside = Some(inside);
    }

    /// Runs it until the world's time is `until`, or until it has sent something; what it sent.
    pub(super) fn run(&mut self, until: u64) -> Vec<Call> {
        let (wire, begin) = (Arc::clone(&self.wire), self.begin);
        let deadline = Duration::from_millis(until.saturating_sub(self.born));
        self.enter();
        let now = self.runtime.block_on(async move {
            let end = tokio::time::Instant::from_std(begin + deadline);
            tokio::select! {
                biased;
                () = wire.sent.notified() => {}
                () = tokio::time::sleep_until(end) => {}
            }
            clock::since(begin)
        });
        self.leave();
        self.clock = self.born + u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.wire.take()
    }

    /// It was stopped and goes on: the machine's clock did not wait for it.
    pub(super) fn wake_up(&mut self, now: u64) {
        let slept = Duration::from_millis(now.saturating_sub(self.clock));
        self.ground.lock().slept = true;
        self.enter();
        self.runtime.block_on(tokio::time::advance(slept));
        self.leave();
        self.clock = self.clock.max(now);
    }

    /// Its JavaScript loop stands still for so long.
    pub(super) fn block(&self, time: Duration) {
        let now = self.begin + Duration::from_millis(self.clock.saturating_sub(self.born));
        self.ground.block(now + time);
    }

    /// Whether its connections are lost, and for how long there is none to be had.
    pub(super) fn set_down(&self, down: bool) {
        self.wire.down.store(down, Ordering::Relaxed);
        if down {
            self.wire.generation.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self) {
        clock::simulated::count_from(Some((self.begin, Duration::ZERO)));
        chance::seeded::seed(Some(self.chance));
    }

    fn leave(&mut self) {
        self.chance = chance::bits();
        clock::simulated::count_from(None);
        chance::seeded::seed(None);
    }

    fn within<T>(&mut self, act: impl FnOnce() -> T) -> T {
        self.enter();
        let acted = {
            let _context = self.runtime.enter();
            act()
        };
        self.leave();
        acted
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let inside = self.inside.take();
        self.within(|| drop(inside));
    }
}
