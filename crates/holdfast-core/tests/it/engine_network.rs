//! Faults outside: replies that are lost, sessions that end, a server that restarts, a node that is declared dead.

use std::{sync::Arc, time::Duration};

use holdfast_core::{client::Client, config::EngineConfig, provider::Provider, store::commit::Start};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    FaultProxy, TestDatabase, TestServer,
    world::{World, sql_at, start, steps},
};

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
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut ids = Vec::new();
    while Instant::now() < deadline {
        ids.extend(start_some(&world, &format!("r{}", ids.len())).await);
        world.sql(&kill).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(ids.len() > 50, "there was a load");
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
    let mut ids = Vec::new();
    for round in 0..25_u64 {
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
    assert!(ids.len() > 40, "there was a load");
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    assert_eq!(world.provider.counters().poisoned.get(), 0);
    audit(TestDatabase::get().url(), &world).await;
    world.stop().await;
}

/// Starts eight instances and returns those that were accepted.
async fn start_some(world: &World, prefix: &str) -> Vec<String> {
    let names: Vec<String> = (0..8).map(|i| format!("{prefix}-{i}")).collect();
    let starts = names.iter().map(|name| one_start(name, 6)).collect();
    let outcomes = world.client.start(starts).await;
    names.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(name, _)| name).collect()
}

fn one_start(instance: &str, steps: i64) -> Start {
    Start {
        instance: instance.to_owned(),
        name: "steps".to_owned(),
        version: None,
        input: steps.to_string(),
        parent: None,
        ..Start::default()
    }
}

/// Histories have no gap, every scheduled task has one completion, nothing is left in a queue.
async fn audit(url: &str, world: &World) {
    let number = async |sql: &str| -> i64 { sql_at(url, &world.schema, sql).await[0].get(0) };
    let gaps = "select count(*) from (select instance, execution from @history group by 1, 2 \
                having count(*) <> max(event_id) or min(event_id) <> 1) broken";
    assert_eq!(number(gaps).await, 0, "gaps in histories");
    let doubles = "select count(*) from (select 1 from @history where source is not null \
                   group by instance, execution, source having count(*) > 1) twice";
    assert_eq!(number(doubles).await, 0, "a step has two results");
    let ends = "select count(*) from (select 1 from @history where kind in \
                ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationCancelled') \
                group by instance, execution having count(*) > 1) twice";
    assert_eq!(number(ends).await, 0, "an execution ended twice");
    for queue in ["turn_queue", "activity_queue", "inbox"] {
        assert_eq!(number(&format!("select count(*) from @{queue}")).await, 0, "{queue}");
    }
}
