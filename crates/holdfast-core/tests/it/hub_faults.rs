//! The hub when things fail: a close that does not come through, a full server, a server that restarts again and again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use holdfast_core::{
    client::Client,
    notify::{HubState, Subscriber},
    pool::PoolConfig,
    provider::Provider,
};
use serde_json::json;

use crate::{
    hub::{Heard, NEVER, Process, channel, listens, patient, until},
    support::{
        FaultProxy, TestDatabase, TestServer,
        world::{World, sql_at, start, steps},
    },
};

#[tokio::test]
async fn a_close_that_failed_keeps_its_place_and_says_so() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let process = Process::at(proxy.url(), NEVER).await;
    let channel = channel("unclosed");
    let heard = Arc::new(Heard::default());
    let subscriber = || Arc::clone(&heard) as Arc<dyn Subscriber>;
    let _lease = process.hubs.lease(&process.opening, &channel, None, subscriber()).expect("a place");
    until("it listens", async || heard.last() == Some(HubState::Listening)).await;
    proxy.black_hole();
    let closing = process.hubs.close_all();
    tokio::pin!(closing);
    tokio::select! {
        () = &mut closing => panic!("the session cannot say goodbye"),
        () = until("it is told", async || heard.failed_closes.load(Ordering::Relaxed) == 1) => {}
    }
    assert_eq!(process.hubs.len(), 1, "its session may still be there");
    assert!(
        process.hubs.lease(&process.opening, &channel, None, subscriber()).is_none(),
        "nobody gets its place"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_server_it_tries_again_after_half_a_minute_or_so() {
    let server =
        TestServer::start(|_| "max_connections = 6\nsuperuser_reserved_connections = 0\n".to_owned());
    let process = Process::at(&server.url(), NEVER).await;
    let mut taken = Vec::new();
    while let Ok(session) = process.opening.way.open(holdfast_core::pool::SessionPurpose::Migration).await {
        taken.push(session);
        assert!(taken.len() < 10, "the server was to be full");
    }
    let heard = Arc::new(Heard::default());
    let lease = process.hubs.lease(
        &process.opening,
        &channel("full"),
        None,
        Arc::clone(&heard) as Arc<dyn Subscriber>,
    );
    assert!(lease.is_some());
    until("it has tried", async || matches!(heard.last(), Some(HubState::Down { .. }))).await;
    let Some(HubState::Down { cause, retry_in }) = heard.last() else { panic!("it is down") };
    assert!(cause.contains("too many clients"), "{cause}");
    let delay = Duration::from_secs(15)..=Duration::from_secs(30);
    assert!(delay.contains(&retry_in), "{retry_in:?}");
    process.hubs.close_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ev_12_after_ten_restarts_of_the_server_the_listener_hears_each_time() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let world = World::at(&server.url(), steps(), patient()).await;
    listens(&world.provider).await;
    let config = TestDatabase::get().pool_config();
    let elsewhere =
        Provider::connect(&server.url(), &world.schema, PoolConfig { retry_attempts: 9, ..config }).await;
    let client = Client::new(elsewhere.expect("another process"));
    let listener = format!(
        "select count(*) from pg_stat_activity where application_name = '{}-listener'",
        world.application
    );
    for at in 0..10 {
        let restarting = Arc::clone(&server);
        tokio::task::spawn_blocking(move || restarting.restart()).await.expect("it restarts");
        // The one that it had is gone, so that this is a new one.
        until("a listener is there", async || {
            let count: i64 = sql_at(&server.url(), &world.schema, &listener).await[0].get(0);
            count == 1
        })
        .await;
        listens(&world.provider).await;
        // No poll finds it, only the hint.
        let id = format!("order-{at}");
        start(&client, &id, "steps", json!(0)).await;
        world.end(&id).await;
    }
    world.stop().await;
}
