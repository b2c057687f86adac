//! Faults outside: replies that are lost, sessions that end, a server that restarts, a node that is declared dead.

use std::{sync::Arc, time::Duration};

use holdfast_core::{client::Client, config::EngineConfig, provider::Provider};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    FaultProxy, TestDatabase, TestServer,
    load::{audit, start_some},
    world::{World, start, steps},
};

/// A machine that is busy takes longer until enough was started among the faults.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_reply_is_lost_costs_no_delivery_and_little_time() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let world = World::at(proxy.url(), steps(), EngineConfig::default()).await;
    let connected = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    let direct = connected.expect("connect");
    proxy.delay_replies(Duration::from_secs(2));
    start(&Client::new(Arc::clone(&direct)), "lost", "steps", json!(1)).await;
    world.until("select count(*) from @turn_queue where owner is not null", 1).await;
    proxy.cut();
    proxy.pass();
    let client = Client::new(Arc::clone(&direct));
    let ended = client.wait("lost", Duration::from_secs(20)).await.expect("wait");
    assert_eq!(ended.expect("ends long before the claim's limit").status, "Completed");
    assert_eq!(world.provider.counters().poisoned.get(), 0);
    world.stop().await;
    direct.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_declared_dead_registers_again_and_loses_nothing() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(200);
    config.liveness.stale_after = Duration::from_millis(1_000);
    let world = World::new(steps(), config).await;
    for round in 0..5 {
        for i in 0..10 {
            world.start(&format!("d{round}-{i}"), "steps", json!(5)).await;
        }
        world.sql("delete from @node").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for round in 0..5 {
        for i in 0..10 {
            assert_eq!(world.output(&format!("d{round}-{i}")).await, json!(10));
        }
    }
    audit(TestDatabase::get().url(), &world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_at_random_lose_nothing() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(500);
    config.liveness.stale_after = Duration::from_millis(3_000);
    let world = World::new(steps(), config).await;
    let kill = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where application_name like '{}%' and random() < 0.3",
        world.application
    );
    let (from, mut ids) = (Instant::now(), Vec::new());
    while from.elapsed() < Duration::from_secs(10) || ids.len() <= 50 {
        assert!(from.elapsed() < LOAD_LIMIT, "there was a load, not {} starts only", ids.len());
        ids.extend(start_some(&world, &format!("r{}", ids.len())).await);
        world.sql(&kill).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    audit(TestDatabase::get().url(), &world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_under_load_loses_nothing_that_was_accepted() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(500);
    config.liveness.stale_after = Duration::from_millis(3_000);
    let world = World::at(&server.url(), steps(), config).await;
    let mut ids = Vec::new();
    for round in 0..3 {
        let restarting = Arc::clone(&server);
        let restart = tokio::task::spawn_blocking(move || restarting.restart());
        while !restart.is_finished() {
            ids.extend(start_some(&world, &format!("r{round}-{}", ids.len())).await);
        }
        restart.await.expect("it restarts");
        ids.extend(start_some(&world, &format!("a{round}")).await);
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    audit(&server.url(), &world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_is_cut_and_frozen_at_random_moments_loses_nothing() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(500);
    config.liveness.stale_after = Duration::from_millis(3_000);
    let world = World::at(proxy.url(), steps(), config).await;
    let (from, mut ids) = (Instant::now(), Vec::new());
    for round in 0_u64.. {
        if round >= 25 && ids.len() > 40 {
            break;
        }
        assert!(from.elapsed() < LOAD_LIMIT, "there was a load, not {} starts only", ids.len());
        ids.extend(start_some(&world, &format!("n{round}")).await);
        tokio::time::sleep(Duration::from_millis(round * 37 % 110)).await;
        if round % 2 == 0 {
            proxy.hold_replies();
            tokio::time::sleep(Duration::from_millis(round * 53 % 90)).await;
        }
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(20)).await;
        proxy.pass();
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    assert_eq!(world.provider.counters().poisoned.get(), 0);
    audit(TestDatabase::get().url(), &world).await;
    world.stop().await;
}
