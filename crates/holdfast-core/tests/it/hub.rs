//! The notification hub against a real server, a test for each row of its table, and hints between processes.
//!
//! Two providers stand for two processes where only what goes through the database can tell the one about the other; poll
//! intervals are so long that a poll cannot be what found the work.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use holdfast_core::{
    client::Client,
    config::EngineConfig,
    notify::{HubState, Hubs, Opening, Subscriber},
    pool::{CallerClass, Pool, PoolConfig, PoolerMode, SessionPurpose, Statement},
    provider::{Provider, ProviderConfig},
    store::{Statements, notify},
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::json;
use tokio::runtime::Handle;

use crate::support::{
    FaultProxy, TestDatabase,
    host::{Code, Move},
    world::{PATIENCE, World, start, steps},
};

/// No test lasts that long.
pub(crate) const NEVER: Duration = Duration::from_secs(600);

pub(crate) fn patient() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.dispatch.poll_interval = NEVER;
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    config
}

pub(crate) async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looking).await.is_ok(), "not in time: {what}");
}

pub(crate) async fn listens(provider: &Provider) {
    until("the hub listens", async || provider.hints().is_listening()).await;
}

/// Another process on the schema of a world.
pub(crate) async fn other(world: &World) -> Arc<Provider> {
    let database = TestDatabase::get();
    let connected = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    connected.expect("connect")
}

/// Ends with the third event.
pub(crate) fn waits() -> Code {
    Code::default().program("waits", |seen| match seen.events.len() {
        3 => Move::End(json!({ "completed": { "output": null } })),
        heard if seen.commands == heard => Move::Ask(vec![json!({ "event": { "name": "go" } })]),
        _ => Move::Wait,
    })
}

pub(crate) async fn go(client: &Client, instance: &str) {
    let go = MessageBody::EventRaised { name: "go".to_owned(), data: Payload::of(&1) };
    client.send(instance.to_owned(), go).await.expect("sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_of_another_process_is_found_by_a_hint() {
    let mut config = patient();
    // Heartbeats as often as in the other tests take a listener that a busy machine holds up for deaf, and find the work, too.
    config.liveness.heartbeat_interval = Duration::from_secs(5);
    let world = World::new(steps(), config).await;
    listens(&world.provider).await;
    let client = Client::new(other(&world).await);
    start(&client, "a", "steps", json!(0)).await;
    world.end("a").await;
    until("a hint was heard", async || world.provider.counters().hints_heard.get() > 0).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_of_another_process_hears_the_end() {
    let world = World::new(waits(), patient()).await;
    let elsewhere = other(&world).await;
    let client = Client::new(Arc::clone(&elsewhere));
    let waiting = client.wait("a", PATIENCE);
    tokio::pin!(waiting);
    // A wait that lasts leases a hub.
    tokio::select! {
        _ = &mut waiting => panic!("nothing has ended"),
        () = listens(&elsewhere) => {}
    }
    world.start("a", "waits", json!(0)).await;
    for _ in 0..3 {
        go(&world.client, "a").await;
    }
    assert!(waiting.await.expect("no error").is_some());
    until("the end was told", async || elsewhere.counters().hints_heard.get() > 0).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_stays_here_sends_no_hint() {
    let world = World::new(waits(), patient()).await;
    world.start("a", "waits", json!(0)).await;
    // Whether an instance is at home here is known from its first turn on.
    until("its first turn is over", async || {
        world.provider.counters().turns_settled.get() == 1 && world.engine.running() == 0
    })
    .await;
    for at in 1..3 {
        assert!(!world.kinds("a", 1).await.is_empty());
        go(&world.client, "a").await;
        until("the turn is over", async || {
            world.provider.counters().turns_settled.get() == at + 1 && world.engine.running() == 0
        })
        .await;
    }
    until("the events are in", async || {
        world.kinds("a", 1).await.iter().filter(|kind| *kind == "ExternalEvent").count() == 2
    })
    .await;
    assert_eq!(world.provider.counters().hints_sent.get(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_made_in_a_process_whose_runtime_has_stopped_is_told_to_others() {
    let world = World::new(waits(), patient()).await;
    listens(&world.provider).await;
    until("nobody else listens", async || world.provider.hints().others() == Some(0)).await;
    world.engine.shutdown(Duration::from_secs(5)).await;
    world.provider.hints().close();
    assert_eq!(world.provider.counters().hints_sent.get(), 0, "there is nobody to be told");
    world.start("a", "waits", json!(0)).await;
    until("the start was told", async || world.provider.counters().hints_sent.get() == 1).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_was_lost_comes_back_and_sweeps_once() {
    let world = World::new(steps(), patient()).await;
    listens(&world.provider).await;
    let elsewhere = other(&world).await;
    let client = Client::new(elsewhere);
    let kill = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '{}-listener'",
        world.application
    );
    for at in 0..5 {
        assert_eq!(world.number(&kill).await, 1);
        let id = format!("i{at}");
        // Its hint may come while nobody listens.
        start(&client, &id, "steps", json!(0)).await;
        world.end(&id).await;
        listens(&world.provider).await;
        let sessions = format!(
            "select count(*) from pg_stat_activity where application_name = '{}-listener'",
            world.application
        );
        world.until(&sessions, 1).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_prove_the_listener_alive() {
    let world = World::new(steps(), patient()).await;
    until("hints to itself come back", async || world.provider.counters().hub_proofs.get() > 5).await;
    assert_eq!(world.provider.hints().hub_state(), Some(HubState::Listening));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ev_09_two_missed_proofs_mean_down_also_when_the_socket_looks_alive() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let provider = Provider::connect(proxy.url(), &database.schema(), database.pool_config()).await;
    let provider = provider.expect("through the proxy");
    let user = provider.hints().join(Default::default());
    listens(&provider).await;
    proxy.black_hole();
    for _ in 0..2 {
        assert!(provider.hints().is_listening(), "one missed hint may be on its way");
        assert!(user.begin_proof().is_some());
        user.end_proof(true);
    }
    until("it is down", async || !provider.hints().is_listening()).await;
    proxy.pass();
    listens(&provider).await;
}

#[tokio::test]
async fn listen_never_goes_through_a_pooler() {
    let database = TestDatabase::get();
    let pool = PoolConfig { pooled: PoolerMode::Yes, ..database.pool_config() };
    let config = ProviderConfig { pool, ..ProviderConfig::default() };
    let provider = Provider::connect(database.url(), &database.schema(), config).await.expect("connect");
    let _user = provider.hints().join(Default::default());
    match provider.hints().hub_state() {
        Some(HubState::Down { cause, .. }) => assert!(cause.contains("directUrl"), "{cause}"),
        state => panic!("no way past the pooler is known: {state:?}"),
    }
}

/// What one subscriber heard.
#[derive(Default)]
pub(crate) struct Heard {
    states: Mutex<Vec<HubState>>,
    hints: Mutex<Vec<String>>,
    pub(crate) failed_closes: AtomicUsize,
}

impl Heard {
    pub(crate) fn last(&self) -> Option<HubState> {
        self.states.lock().expect("not poisoned").last().cloned()
    }
}

impl Subscriber for Heard {
    fn state(&self, state: &HubState) {
        self.states.lock().expect("not poisoned").push(state.clone());
    }

    fn hint(&self, payload: &str) {
        self.hints.lock().expect("not poisoned").push(payload.to_owned());
    }

    fn proof(&self) {}

    fn close_failed(&self) {
        self.failed_closes.fetch_add(1, Ordering::Relaxed);
    }
}

struct Panics;

impl Subscriber for Panics {
    fn state(&self, _state: &HubState) {
        panic!("a subscriber that panics");
    }

    fn hint(&self, _payload: &str) {
        panic!("a subscriber that panics");
    }

    fn proof(&self) {}

    fn close_failed(&self) {}
}

/// A process of its own: its hubs and its pool.
pub(crate) struct Process {
    pub(crate) hubs: Arc<Hubs>,
    pub(crate) pool: Arc<Pool>,
    application: String,
    pub(crate) opening: Opening,
}

impl Process {
    async fn new(idle_for: Duration) -> Self {
        Self::at(TestDatabase::get().url(), idle_for).await
    }

    pub(crate) async fn at(url: &str, idle_for: Duration) -> Self {
        let config = TestDatabase::get().pool_config();
        let application = config.application_name.clone();
        let pool = Pool::connect(url, config).await.expect("a pool");
        let statements = Arc::new(Statements::new("unused"));
        let opening = Opening { way: pool.direct(), statements, runtime: Handle::current() };
        Self { hubs: Hubs::new(idle_for), pool, application, opening }
    }

    pub(crate) async fn listeners(&self) -> i64 {
        let text = format!(
            "select count(*) from pg_stat_activity where application_name = '{}-listener'",
            self.application
        );
        let session = self.pool.acquire(CallerClass::Ordinary).await.expect("a session");
        let count = Statement { name: "test/count", text, types: (&[]).into() };
        session.query(&count, &[]).await.expect("an answer")[0].get(0)
    }
}

pub(crate) fn channel(name: &str) -> String {
    format!("{name} \"quoted\" 'too' {}", TestDatabase::get().schema())
}

#[tokio::test]
async fn observers_get_the_present_state_at_once_and_one_that_panics_stops_no_other() {
    let process = Process::new(NEVER).await;
    let channel = channel("observed");
    let (first, late) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    let lease = |subscriber| process.hubs.lease(&process.opening, &channel, None, subscriber);
    let _panics = lease(Arc::new(Panics)).expect("a place");
    let _first = lease(Arc::clone(&first) as Arc<dyn Subscriber>).expect("a share");
    until("it listens", async || first.last() == Some(HubState::Listening)).await;
    let _late = lease(Arc::clone(&late) as Arc<dyn Subscriber>).expect("a share");
    assert_eq!(late.last(), Some(HubState::Listening));
    let session = process.opening.way.open(SessionPurpose::Listener).await.expect("one");
    notify::send(&session, &process.opening.statements, &channel, "hello").await.expect("sent");
    until("both hear it", async || {
        [&first, &late].iter().all(|heard| *heard.hints.lock().expect("not poisoned") == ["hello"])
    })
    .await;
}

#[tokio::test]
async fn four_hubs_at_most_and_the_idle_one_used_least_recently_makes_room() {
    let process = Process::new(NEVER).await;
    let names = ["a", "b", "c", "d", "e"].map(channel);
    let lease =
        |at: usize| process.hubs.lease(&process.opening, &names[at], None, Arc::new(Heard::default()));
    let mut leases: Vec<_> = (0..4).map(|at| lease(at).expect("a place")).collect();
    assert!(lease(4).is_none(), "all are leased");
    drop(leases.remove(1));
    until("the idle one has made room", async || match lease(4) {
        Some(share) => {
            leases.push(share);
            true
        }
        None => {
            assert!(process.hubs.len() <= 4);
            false
        }
    })
    .await;
    assert_eq!(process.hubs.len(), 4);
}

#[tokio::test]
async fn the_last_release_starts_the_idle_time_then_it_closes() {
    let process = Process::new(Duration::from_millis(50)).await;
    let channel = channel("idle");
    let heard = Arc::new(Heard::default());
    let lease =
        || process.hubs.lease(&process.opening, &channel, None, Arc::clone(&heard) as Arc<dyn Subscriber>);
    let (one, two) = (lease().expect("a place"), lease().expect("a share"));
    until("it listens", async || heard.last() == Some(HubState::Listening)).await;
    drop(one);
    assert_eq!(process.hubs.len(), 1);
    drop(two);
    until("it is closed", async || process.hubs.is_empty()).await;
    until("its session is gone", async || process.listeners().await == 0).await;
}

#[tokio::test]
async fn with_a_leader_key_one_session_listens_and_the_loser_closes_its_own() {
    let (one, two) = (Process::new(NEVER).await, Process::new(NEVER).await);
    let (channel, key) = (channel("elected"), channel("leader"));
    let (first, second) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    let _one = one.hubs.lease(&one.opening, &channel, Some(&key), Arc::clone(&first) as Arc<dyn Subscriber>);
    until("the first listens", async || first.last() == Some(HubState::Listening)).await;
    let _two = two.hubs.lease(&two.opening, &channel, Some(&key), Arc::clone(&second) as Arc<dyn Subscriber>);
    until("the second stands by", async || second.last() == Some(HubState::Standby)).await;
    until("its session is gone", async || two.listeners().await == 0).await;
    assert_eq!(one.listeners().await, 1);
}

#[tokio::test]
async fn a_stop_is_idempotent_and_nobody_is_called_after_it() {
    let process = Process::new(NEVER).await;
    let heard = Arc::new(Heard::default());
    let subscriber = Arc::clone(&heard) as Arc<dyn Subscriber>;
    let _lease =
        process.hubs.lease(&process.opening, &channel("stopped"), None, subscriber).expect("a place");
    // The connect may be in flight.
    process.hubs.close_all().await;
    let calls = heard.states.lock().expect("not poisoned").len();
    assert!(process.hubs.is_empty());
    process.hubs.close_all().await;
    until("its session is gone", async || process.listeners().await == 0).await;
    assert_eq!(heard.states.lock().expect("not poisoned").len(), calls);
}
