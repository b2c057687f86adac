//! What was reported to go wrong around leases and liveness in systems of this kind, each report as a test.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use holdfast_core::{
    config::EngineConfig,
    store::{commit::CommitOutcome, node},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    store_harness::{Store, TurnWords, request, times, turn_of},
    support::{
        FaultProxy, TestDatabase, TestServer,
        host::{Code, sequence},
        load::audit,
        world::{World, run, sql_at, start, steps},
    },
};

/// Fast heartbeats, and leases that no test outlives: only liveness frees anything.
fn quick(interval_ms: u64, stale_ms: u64) -> EngineConfig {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(interval_ms);
    config.liveness.stale_after = Duration::from_millis(stale_ms);
    config.lease.worker_lock_timeout = Duration::from_secs(600);
    config.lease.orchestrator_lock_timeout = Duration::from_secs(600);
    config
}

/// A body that counts how often it ran, and waits until it is told to end.
fn counted(code: Code, name: &str, told: watch::Receiver<bool>) -> (Code, Arc<AtomicU64>) {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let mut code = code;
    let body: crate::support::host::Body = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut told = told.clone();
        Box::pin(async move {
            told.wait_for(|go| *go).await.expect("the test tells it");
            Some(Ok(json!(1)))
        })
    });
    code.bodies.insert(name.to_owned(), body);
    (code, runs)
}

const HELD: &str = "select count(*) from @activity_queue where owner is not null";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_in_the_middle_of_a_recovery_leaves_nothing_behind() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let url = server.url();
    let silent = Code::default().program("steps", sequence).silent("work");
    let world = World::at(&url, silent, quick(500, 600_000)).await;
    for i in 0..60 {
        start(&world.client, &format!("i{i}"), "steps", json!(1)).await;
    }
    let held = async || sql_at(&url, &world.schema, HELD).await[0].get::<_, i64>(0);
    // As many as its slots take.
    let slots = i64::try_from(EngineConfig::default().dispatch.worker_concurrency.min(60)).expect("few");
    while held().await < slots {
        tokio::task::yield_now().await;
    }
    // It is not the node that dies but the row that lets it speak; its work is a dead node's from then on.
    world.engine.shutdown(Duration::ZERO).await;
    let killed = "update @activity_queue set owner = 'killed', owner_epoch = 0, leased_at = now(), \
                  due_at = now() + interval '10 min'";
    sql_at(&url, &world.schema, killed).await;
    let (engine, host) = run(&world.provider, steps(), quick(500, 3_000)).await;
    // It has begun: the first of them is free.
    while held().await >= 60 {
        tokio::task::yield_now().await;
    }
    let restarting = Arc::clone(&server);
    tokio::task::spawn_blocking(move || restarting.restart()).await.expect("it restarts");
    for i in 0..60 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(0));
    }
    audit(&url, &world).await;
    engine.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_starts_does_not_recover_what_it_has_just_taken() {
    let (tell, told) = watch::channel(true);
    let world = World::new(Code::default().program("other", sequence), quick(100, 600_000)).await;
    let (code, runs) = counted(Code::default().program("steps", sequence), "work", told);
    let starting = run(&world.provider, code, quick(100, 600_000));
    let starts = async {
        for i in 0..200 {
            world.start(&format!("i{i}"), "steps", json!(1)).await;
        }
    };
    let ((engine, host), ()) = tokio::join!(starting, starts);
    for i in 0..200 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(1));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 200, "each body ran once");
    drop(tell);
    engine.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test]
async fn a_successor_with_the_same_name_is_not_taken_for_the_owner_of_the_old_work() {
    let store = Store::new().await;
    let old = store.node("host-1").await;
    store.start("order").await;
    let claimed = store.claim_one(&old).await;
    let new = store.node("host-1").await;
    assert!(store.claim(&request(&new)).await.is_empty());
    assert_eq!(store.commit_one(turn_of(&claimed, &new).completed().item()).await, CommitOutcome::Fenced);
    let kill = format!(
        "update @node set heartbeat_at = clock_timestamp() - interval '31 s' where epoch = {}",
        old.epoch
    );
    store.run(&kill).await;
    let told =
        node::heartbeat(&store.session, &store.statements, &new, (&[], &[]), times(), node::Along::default())
            .await
            .expect("a heartbeat");
    assert_eq!((told.alive, told.recovered_nodes), (true, vec!["host-1".to_owned()]));
    assert_eq!(node::sweep(&store.session, &store.statements).await.expect("a sweep").freed, 1);
    let mut ask = request(&new);
    ask.isolated = true;
    assert_eq!(store.claim(&ask).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_cannot_be_stored_at_first_is_stored_once_and_its_session_goes_on() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let (tell, told) = watch::channel(false);
    // Two tasks of one session: the second waits until the session's lane is free again.
    let task = || json!({ "activity": { "name": "work", "input": null, "session": "s" } });
    let program = crate::support::world::all(vec![task(), task()]);
    let (code, runs) = counted(Code::default().program("pair", program), "work", told);
    let world = World::at(proxy.url(), code, quick(500, 600_000)).await;
    world.start("order", "pair", Value::Null).await;
    world.until(HELD, 2).await;
    proxy.cut();
    tell.send(true).expect("the bodies wait");
    // The commit fails, and is tried again, a few times.
    while world.provider.pool().stats().connection_errors < 3 {
        tokio::task::yield_now().await;
    }
    proxy.pass();
    assert_eq!(world.output("order").await, json!([1, 1]));
    assert_eq!(runs.load(Ordering::Relaxed), 2, "no body ran twice");
    audit(database.url(), &world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_know_a_kind_of_work_frees_it_for_those_who_do() {
    let (_tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let world = World::new(code, quick(500, 600_000)).await;
    world.start("order", "steps", json!(1)).await;
    world.until(HELD, 1).await;
    world.engine.shutdown(Duration::ZERO).await;
    world
        .sql(
            "update @activity_queue set owner = 'killed', owner_epoch = 0, leased_at = now(), \
             due_at = now() + interval '10 min'",
        )
        .await;
    let (stranger, host) =
        run(&world.provider, Code::default().program("other", sequence), quick(500, 600_000)).await;
    let freed = "select count(*) from @activity_queue where owner is null and isolated and deliveries = 1 \
                 and lost_by = 'killed'";
    world.until(freed, 1).await;
    stranger.shutdown(Duration::ZERO).await;
    host.ended().await;
    assert_eq!(world.number("select count(*) from @inbox").await, 0, "it was not failed");
    let (engine, host) = run(&world.provider, steps(), quick(500, 600_000)).await;
    assert_eq!(world.output("order").await, json!(0));
    engine.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_under_a_running_activity_leaves_it_with_its_owner() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let (tell, told) = watch::channel(false);
    let (code, runs) = counted(Code::default().program("steps", sequence), "work", told);
    let mut config = quick(250, 600_000);
    config.lease.worker_lock_timeout = Duration::from_secs(10);
    let world = World::at(&server.url(), code, config).await;
    start(&world.client, "order", "steps", json!(1)).await;
    let number = async |sql: &str| sql_at(&server.url(), &world.schema, sql).await[0].get::<_, i64>(0);
    while number(HELD).await == 0 {
        tokio::task::yield_now().await;
    }
    let lease_end = "select (extract(epoch from max(due_at)) * 1000)::bigint from @activity_queue";
    let before = number(lease_end).await;
    let restarting = Arc::clone(&server);
    tokio::task::spawn_blocking(move || restarting.restart()).await.expect("it restarts");
    while number(lease_end).await <= before {
        tokio::task::yield_now().await;
    }
    assert_eq!(number("select max(deliveries)::bigint from @activity_queue").await, 1, "renewed, not taken");
    tell.send(true).expect("the body waits");
    assert_eq!(world.output("order").await, json!(1));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    world.stop().await;
}
