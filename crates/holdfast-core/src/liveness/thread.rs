//! The liveness thread: it runs the loop of heartbeats from the registration of the node to its goodbye.
//!
//! Invariant: `start` returns once the node is registered; a loop that panicked is started again, with its node. It decides
//! nothing about heartbeats. In a simulation, which has one thread for all, it is a task.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{
    config::EngineConfig,
    error::{Error, ErrorKind, Result},
    lease::Keeper,
    limits,
    liveness::{LookAlong, LoopLife, Standing, body::Body, watch::Watch},
    notify::HintUser,
    pool::Runtimes,
    provider::Provider,
    session::SessionBook,
    store::{ActivityKey, Fence, NodeKey},
    telemetry::{Backoff, Progress},
};

/// What the liveness thread tells the runtime. Calls are short and never wait.
pub(crate) trait LivenessEvents: Send + Sync {
    /// The lease of a turn is not this node's any more.
    fn lost_turn(&self, fence: Fence);
    /// The lease of an activity is not this node's any more: somebody else has `taken` the task, or it was cancelled.
    fn lost_activity(&self, fence: Fence, taken: bool);
    /// The task that runs here under a lease.
    fn task_of(&self, fence: Fence) -> Option<ActivityKey>;
    /// Instances whose turn waits for its answer for longer than this.
    fn long_turns(&self, longer: Duration) -> Vec<String>;
    /// Somebody asked to cancel an instance whose turn runs here, by this message.
    fn cancel_asked(&self, instance: &str, message: i64);
    /// The node row was gone: live frames cannot be trusted any more.
    fn declared_dead(&self);
    /// Others' work was released, or own claims came back: there may be something to claim.
    fn released(&self, work: u64);
    /// The node fences itself: nothing may be started, what runs is told to stop.
    fn fenced(&self);
    /// The JavaScript loop stands still: what it has not begun goes back.
    fn loop_stalled(&self);
    /// It stands still for too long: its leases are given up.
    fn loop_hung(&self);
    /// What held the node up is over.
    fn may_go_on(&self);
    /// What JavaScript has in hand and for how long, the youngest first.
    fn running(&self) -> Vec<(String, Duration)>;
}

/// What a runtime shares with its liveness thread.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) provider: Arc<Provider>,
    pub(crate) config: EngineConfig,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) sessions: Arc<SessionBook>,
    /// The key it is registered under.
    pub(crate) key: Arc<Mutex<NodeKey>>,
    pub(crate) standing: Arc<Standing>,
    /// Its heartbeats look for the claimer while that sleeps.
    pub(crate) along: Arc<LookAlong>,
    /// Its heartbeats prove the listener alive.
    pub(crate) hints: Arc<HintUser>,
    /// Signs of life of the JavaScript loop.
    pub(crate) life: Arc<LoopLife>,
    /// The parts that are watched.
    pub(crate) parts: Vec<Arc<Progress>>,
}

/// The running thread.
pub(crate) struct Liveness {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// Instead of the thread where there is one for all.
    _task: JoinSet<()>,
    /// Resolves when the thread has said goodbye.
    ended: Option<oneshot::Receiver<()>>,
    /// As long as this runtime lives the pool may have all its clients.
    _clients: Runtimes,
}

impl Liveness {
    /// Starts the thread; returns once the node is registered.
    pub(crate) async fn start(node: Node, events: Arc<dyn LivenessEvents>) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let (registered, registration) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let watch = Watch::new(node.clone(), Arc::clone(&events));
        let clients = node.provider.pool().used_by_a_runtime();
        let one_thread = node.provider.has_one_thread();
        let body = Body::new(node, events);
        let (mut task, mut thread) = (JoinSet::new(), None);
        if one_thread {
            task.spawn(async move {
                run(body, watch, stopped, registered).await;
                // The stopper may have given up waiting.
                let _ = ending.send(());
            });
        } else {
            let builder = std::thread::Builder::new().name("holdfast-liveness".to_owned());
            let spawned = builder.spawn(move || run_thread(body, watch, stopped, registered, ending));
            thread = Some(spawned.map_err(|error| {
                Error::new(ErrorKind::Internal, "start the liveness thread").caused_by(error)
            })?);
        }
        let dead =
            || Error::new(ErrorKind::Internal, "the liveness thread ended before it registered the node");
        registration.await.unwrap_or_else(|_| Err(dead()))?;
        Ok(Self { stop, thread, _task: task, ended: Some(ended), _clients: clients })
    }

    /// Says goodbye and ends the thread; waits at most `limit`.
    pub(crate) async fn stop(&mut self, limit: Duration) {
        // A thread that is gone already needs no signal.
        let _ = self.stop.send(true);
        if let Some(ended) = self.ended.take()
            && tokio::time::timeout(limit, ended).await.is_ok()
            && let Some(thread) = self.thread.take()
        {
            // The loop has ended, so this does not wait; a panic was logged by the hook.
            let _ = thread.join();
        }
    }
}

fn run_thread(
    body: Body,
    watch: Watch,
    stopped: watch::Receiver<bool>,
    registered: oneshot::Sender<Result<()>>,
    ending: oneshot::Sender<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(body, watch, stopped, registered)),
        Err(error) => {
            let error = Error::new(ErrorKind::Internal, "start the liveness runtime").caused_by(error);
            // The starter waits for this answer.
            let _ = registered.send(Err(error));
        }
    }
    // The stopper may have given up waiting.
    let _ = ending.send(());
}

/// From the registration to the goodbye. Dropped half way the node goes stale.
async fn run(
    mut body: Body,
    mut watch: Watch,
    mut stopped: watch::Receiver<bool>,
    registered: oneshot::Sender<Result<()>>,
) {
    let outcome = body.register().await;
    let failed = outcome.is_err();
    // The starter waits for this answer.
    let _ = registered.send(outcome);
    if !failed {
        tokio::select! {
            biased;
            () = keep_beating(&mut body, &mut stopped) => {}
            () = keep_watching(&mut watch) => {}
        }
    }
}

/// Runs the loop until it is stopped; one that panicked begins again.
async fn keep_beating(body: &mut Body, stopped: &mut watch::Receiver<bool>) {
    let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
    while AssertUnwindSafe(body.run(stopped)).catch_unwind().await.is_err() {
        body.restarted();
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Watches until it is dropped.
async fn keep_watching(watch: &mut Watch) {
    while AssertUnwindSafe(watch.run()).catch_unwind().await.is_err() {
        watch.restarted();
    }
}
