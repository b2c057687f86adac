//! What went wrong in systems of this kind, replayed here: connections (CP), notifications (EV), and the budget of sessions
//! (B5). Rows that fit a subject's own file carry their number there.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use holdfast_core::{
    client::Client,
    config::EngineConfig,
    notify::{HubState, Subscriber},
    pool::{CallerClass, Loan, MaxClients, Pool, PoolConfig, PoolerMode, Statement, Type},
    provider::{Provider, ProviderConfig},
    store::Statements,
};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    hub::{Heard, NEVER, Process, listens, until},
    support::{
        TestDatabase, TestServer,
        host::{Code, sequence},
        world::{PATIENCE, World, run, sql_at, start, steps},
    },
};

fn statement(text: &str, types: &'static [Type]) -> Statement {
    Statement { name: "test/statement", text: text.to_owned(), types: types.into() }
}

/// Our sessions never exceed what is configured, and none stays in a transaction while code of the user runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b5_sessions_stay_within_the_budget_under_load() {
    let database = TestDatabase::get();
    let (schema, pool) = (database.schema(), database.pool_config());
    let name = pool.application_name.clone();
    let config = PoolConfig { max_clients: MaxClients::Given(3), ..pool };
    let provider = Provider::connect(database.url(), &schema, config).await.expect("connect");
    let (tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let (engine, host) = run(&provider, code, EngineConfig::default()).await;
    let client = Client::new(Arc::clone(&provider));
    // The pool, one liveness session, one listener.
    let budget = 3 + 1 + 1;
    let count = |what: &str| {
        format!("select count(*) from pg_stat_activity where application_name like '{name}%' and {what}")
    };
    let (all, stuck) = (
        count("true"),
        count("state like 'idle in transaction%' and state_change < clock_timestamp() - interval '1 s'"),
    );
    let number = async |sql: &str| -> i64 { sql_at(database.url(), &schema, sql).await[0].get(0) };
    let starting = join_all((0..200).map(|at| {
        let client = &client;
        async move { start(client, &format!("order-{at}"), "steps", json!(2)).await }
    }));
    tokio::pin!(starting);
    let mut most = 0;
    loop {
        tokio::select! {
            biased;
            _ = &mut starting => break,
            seen = number(&all) => most = most.max(seen),
        }
    }
    for _ in 0..20 {
        most = most.max(number(&all).await);
        assert_eq!(number(&stuck).await, 0, "user code runs, and a transaction waits for it");
    }
    tell.send(true).expect("the bodies wait");
    for at in 0..200 {
        assert!(client.wait(&format!("order-{at}"), PATIENCE).await.expect("no error").is_some());
        if at % 10 == 0 {
            most = most.max(number(&all).await);
        }
    }
    assert!(most > 0 && most <= budget, "{most} sessions with a budget of {budget}");
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn cp_07_a_socket_directory_is_a_host() {
    let server = TestServer::start(|_| String::new());
    let folder = server.folder().display().to_string().replace('/', "%2F");
    let url = format!("postgres://postgres@{folder}/postgres");
    let pool = Pool::connect(&url, TestDatabase::get().pool_config()).await.expect("by the host's part");
    pool.warm().await.expect("an answer");
}

#[tokio::test]
async fn cp_14_when_all_idle_sessions_were_killed_no_caller_sees_an_error() {
    let pool = TestDatabase::get().pool().await;
    let observer = TestDatabase::get().pool().await;
    let held = join_all((0..8).map(|_| pool.acquire(CallerClass::Ordinary))).await;
    let pid = statement("select pg_backend_pid()", &[]);
    let mut pids = Vec::new();
    for session in &held {
        let rows = session.as_ref().expect("a session").query(&pid, &[]).await.expect("an answer");
        pids.push(rows[0].get::<_, i32>(0));
    }
    drop(held);
    let kill = statement("select pg_terminate_backend(pid, 10000) from unnest($1) pid", &[Type::INT4_ARRAY]);
    let watching = observer.acquire(CallerClass::Ordinary).await.expect("a session");
    watching.query(&kill, &[&pids]).await.expect("killed");
    let asked = (0..8).map(|_| {
        pool.run(CallerClass::Ordinary, |session: Loan| async move {
            session.query(&statement("select 1", &[]), &[]).await.map(drop)
        })
    });
    for outcome in join_all(asked).await {
        outcome.expect("nobody sees it");
    }
    assert!(!pool.stats().breaker_open);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cp_20_a_listener_whose_listen_fails_leaves_no_session() {
    let process = Process::at(TestDatabase::get().url(), NEVER).await;
    let heard = Arc::new(Heard::default());
    // A channel without a name is refused.
    let lease = process
        .hubs
        .lease(&process.opening, "", None, Arc::clone(&heard) as Arc<dyn Subscriber>)
        .expect("a place");
    for _ in 0..3 {
        until("it is down", async || matches!(heard.last(), Some(HubState::Down { .. }))).await;
        until("its session is gone", async || process.listeners().await == 0).await;
        until("it tries again", async || !matches!(heard.last(), Some(HubState::Down { .. }))).await;
    }
    drop(lease);
    process.hubs.close_all().await;
    assert_eq!(heard.failed_closes.load(Ordering::Relaxed), 0);
}

/// The lock of a session outlives its caller, and the next caller of the pool has it.
#[test]
fn cp_21_no_statement_of_the_pool_takes_a_lock_of_a_session() {
    let statements = Statements::new("any");
    let takes = |text: &str| text.contains("advisory_lock(") || text.contains("advisory_lock_shared(");
    let found: BTreeSet<&str> =
        statements.all().into_iter().filter(|one| takes(&one.text)).map(|one| one.name).collect();
    // The listener has a session of its own, and its lock goes with it.
    assert_eq!(found, BTreeSet::from(["notify/lead"]));
}

#[tokio::test]
async fn cp_23_transactions_that_share_few_sessions_see_their_own_writes_alone() {
    let config = PoolConfig { max_clients: MaxClients::Given(4), ..TestDatabase::get().pool_config() };
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    let table = TestDatabase::get().schema();
    let create = format!("create table {table} (n int)");
    pool.acquire(CallerClass::Ordinary).await.expect("a session").batch(&create).await.expect("a table");
    let insert = statement(&format!("insert into {table} values ($1)"), &[Type::INT4]);
    let own = statement(&format!("select n from {table} where xmin = pg_current_xact_id()::xid"), &[]);
    let numbers: Vec<i32> = (0..64).collect();
    join_all(numbers.iter().map(|n| {
        let (pool, insert, own) = (&pool, &insert, &own);
        async move {
            let session = pool.acquire(CallerClass::Ordinary).await.expect("a session");
            let rows = session.transaction("", &[(insert, &[n]), (own, &[])]).await.expect("committed");
            assert_eq!(rows[1].iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [*n]);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ev_07_an_end_while_the_server_was_down_reaches_who_waits_elsewhere() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let world = World::at(&server.url(), steps(), EngineConfig::default()).await;
    let elsewhere = Provider::connect(&server.url(), &world.schema, TestDatabase::get().pool_config()).await;
    let elsewhere = elsewhere.expect("another process");
    let client = Client::new(Arc::clone(&elsewhere));
    let waiting = client.wait("order", PATIENCE);
    tokio::pin!(waiting);
    tokio::select! {
        _ = &mut waiting => panic!("nothing has ended"),
        () = listens(&elsewhere) => {}
    }
    // Its hint goes to nobody: every session ends with the server.
    world.start("order", "steps", json!(0)).await;
    let restarting = Arc::clone(&server);
    tokio::task::spawn_blocking(move || restarting.restart()).await.expect("it restarts");
    assert!(waiting.await.expect("no error").is_some());
    world.stop().await;
}

/// LISTEN through a transaction pooler hears nothing and reports no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pooled_listen_and_heartbeats_never_go_through_the_pooler() {
    let Some(url) = std::env::var("HOLDFAST_TEST_POOLER_URL").ok().filter(|url| !url.is_empty()) else {
        return;
    };
    let database = TestDatabase::get();
    let pool = PoolConfig {
        pooled: PoolerMode::Yes,
        direct_url: Some(database.url().to_owned()),
        ..database.pool_config()
    };
    let name = pool.application_name.clone();
    let config = ProviderConfig { pool, ..ProviderConfig::default() };
    let schema = database.schema();
    let provider = Provider::connect(&url, &schema, config).await.expect("the pooler answers");
    let mut engine_config = EngineConfig::default();
    engine_config.liveness.heartbeat_interval = Duration::from_millis(200);
    let (engine, host) = run(&provider, steps(), engine_config).await;
    listens(&provider).await;
    until("hints to itself come back", async || provider.counters().hub_proofs.get() > 3).await;
    // The sessions of a pooler come from its own address, and change hands; these two are the process's own.
    for role in ["listener", "liveness"] {
        let own = format!("select count(*) from pg_stat_activity where application_name = '{name}-{role}'");
        let count: i64 = sql_at(database.url(), &schema, &own).await[0].get(0);
        assert_eq!(count, 1, "{role}");
    }
    let client = Client::new(Arc::clone(&provider));
    join_all((0..50).map(|at| {
        let client = &client;
        async move { start(client, &format!("order-{at}"), "steps", json!(1)).await }
    }))
    .await;
    for at in 0..50 {
        assert!(client.wait(&format!("order-{at}"), PATIENCE).await.expect("no error").is_some());
    }
    // CP-16: nobody was told of a prepared statement that does not exist.
    assert_eq!(provider.pool().stats().query_errors, 0);
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    provider.close(Duration::from_secs(5)).await;
}
