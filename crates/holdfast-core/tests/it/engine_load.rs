//! Loads of awkward shapes: floods, herds of timers, tiny caches, slow networks, runtimes without slots, and rest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use holdfast_core::{config::EngineConfig, provider::Provider};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};

use crate::support::{
    FaultProxy, TestDatabase,
    host::{Code, Move, Seen, sequence},
    world::{World, all, run, steps},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_events_arrives_once_each_and_starves_nobody() {
    const EVENTS: usize = 2_500;
    let collects = |seen: &Seen| {
        if seen.commands <= seen.events.len() && seen.commands < EVENTS {
            return Move::Ask(vec![json!({ "event": { "name": "e" } })]);
        }
        if seen.events.len() < EVENTS {
            return Move::Wait;
        }
        let all: Vec<&Value> = seen.events.iter().map(|(_, data)| data).collect();
        Move::End(json!({ "completed": { "output": all } }))
    };
    let world = World::new(steps().program("collects", collects), EngineConfig::default()).await;
    world.start("hot", "collects", Value::Null).await;
    for chunk in 0..EVENTS / 100 {
        let sends = (0..100).map(|i| {
            let body =
                MessageBody::EventRaised { name: "e".to_owned(), data: Payload::of(&(chunk * 100 + i)) };
            world.client.send("hot".to_owned(), body)
        });
        for sent in futures_util::future::join_all(sends).await {
            sent.expect("accepted");
        }
    }
    world.start("cold", "steps", json!(3)).await;
    assert_eq!(world.output("cold").await, json!(3));
    let mut got: Vec<u64> = serde_json::from_value(world.output("hot").await).expect("numbers");
    // Sends that do not wait for each other have no order among them.
    got.sort_unstable();
    assert_eq!(got, (0..EVENTS as u64).collect::<Vec<_>>());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_of_timers_fires_once_each() {
    let timers = (0..500).map(|_| json!({ "timer": { "delayMs": 300 } })).collect();
    let world = World::new(steps().program("timers", all(timers)), EngineConfig::default()).await;
    for i in 0..4 {
        world.start(&format!("t{i}"), "timers", Value::Null).await;
    }
    for i in 0..4 {
        assert_eq!(world.output(&format!("t{i}")).await, json!(vec![Value::Null; 500]));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_of_two_frames_serves_many_instances() {
    let mut config = EngineConfig::default();
    config.cache.sticky_cache_size = 2;
    let world = World::new(steps(), config).await;
    for i in 0..30 {
        world.start(&format!("i{i}"), "steps", json!(8)).await;
    }
    for i in 0..30 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(28));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_slower_than_their_leases_settle() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let mut config = EngineConfig::default();
    config.lease.orchestrator_lock_timeout = Duration::from_millis(100);
    config.lease.worker_lock_timeout = Duration::from_millis(100);
    let world = World::at(proxy.url(), steps(), config.clone()).await;
    let direct = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    let direct = direct.expect("connect");
    config.liveness.worker_node_id = Some("other".to_owned());
    let (engine, host) = run(&direct, steps(), config).await;
    proxy.delay_replies(Duration::from_millis(150));
    for i in 0..10 {
        world.start(&format!("i{i}"), "steps", json!(3)).await;
    }
    for i in 0..10 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(3));
    }
    assert_eq!(world.provider.counters().poisoned.get() + direct.counters().poisoned.get(), 0);
    proxy.pass();
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    direct.close(Duration::from_secs(5)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_and_activities_run_in_runtimes_of_their_own() {
    let mut config = EngineConfig::default();
    config.dispatch.worker_concurrency = 0;
    let world = World::new(steps(), config).await;
    let database = TestDatabase::get();
    let other = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    let other = other.expect("connect");
    let mut config = EngineConfig::default();
    config.dispatch.orchestration_concurrency = 0;
    config.liveness.worker_node_id = Some("bodies".to_owned());
    let bodies = Code::default().body("work", |job| Ok(job["input"].clone()));
    let (engine, host) = run(&other, bodies, config).await;
    world.start("s", "steps", json!(3)).await;
    assert_eq!(world.output("s").await, json!(3));
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    other.close(Duration::from_secs(5)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_at_their_ends_are_kept() {
    let commands = vec![
        json!({ "timer": { "delayMs": u64::MAX } }),
        json!({ "timer": { "delayMs": 1_u64 << 40 } }),
        json!({ "activity": { "name": "work", "input": 1, "timeoutMs": u64::MAX } }),
        json!({ "activity": { "name": "work", "input": 2, "timeoutMs": 1_u64 << 62 } }),
    ];
    let ends = move |seen: &Seen| {
        if seen.commands == 0 {
            return Move::Ask(commands.clone());
        }
        match (seen.results.get(&2), seen.results.get(&3)) {
            (Some(a), Some(b)) => Move::End(json!({ "completed": { "output": [a, b] } })),
            _ => Move::Wait,
        }
    };
    let world = World::new(steps().program("ends", ends), EngineConfig::default()).await;
    world.start("e", "ends", Value::Null).await;
    assert_eq!(world.output("e").await, json!([1, 2]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_with_many_tries_on_two_nodes_uses_each_try_once() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let code = Code::default().program("steps", sequence).body("shaky", move |job| {
        let attempt = counted.fetch_add(1, Ordering::Relaxed) + 1;
        assert_eq!(job["attempt"], json!(attempt));
        if attempt < 40 { Err(json!({ "name": "Error", "message": "not yet" })) } else { Ok(json!(attempt)) }
    });
    let retry = json!({ "maxAttempts": 50, "backoff": "fixed", "baseDelayMs": 0, "jitterPercent": 0 });
    let commands = vec![json!({ "activity": { "name": "shaky", "input": null, "retry": retry } })];
    let code = code.program("tries", all(commands));
    let world = World::new(code.clone(), EngineConfig::default()).await;
    let database = TestDatabase::get();
    let other = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    let other = other.expect("connect");
    let mut config = EngineConfig::default();
    config.liveness.worker_node_id = Some("other".to_owned());
    let (engine, host) = run(&other, code, config).await;
    world.start("t", "tries", Value::Null).await;
    assert_eq!(world.output("t").await, json!([40]));
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    other.close(Duration::from_secs(5)).await;
    world.stop().await;
}
