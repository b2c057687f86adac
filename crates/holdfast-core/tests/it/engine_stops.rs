//! Runtimes that stop at any moment and without a database, and time limits that meet the answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_core::{config::EngineConfig, error::ErrorKind, store::commit::Start};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    FaultProxy, TestDatabase,
    host::{Body, Code, sequence},
    world::{World, all, run, steps},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runtimes_of_one_provider_stop_at_any_moment_and_lose_nothing() {
    let world = World::new(steps(), EngineConfig::default()).await;
    for i in 0..60 {
        world.start(&format!("i{i}"), "steps", json!(12)).await;
    }
    for round in 0..24_u64 {
        let (engine, host) = run(&world.provider, steps(), EngineConfig::default()).await;
        tokio::time::sleep(Duration::from_millis(round * 13 % 60)).await;
        let grace = Duration::from_millis(round % 4 * 10);
        let asked = Instant::now();
        engine.shutdown(grace).await;
        host.ended().await;
        let took = asked.elapsed();
        assert!(took < grace + Duration::from_secs(1), "a stop with {grace:?} of grace took {took:?}");
    }
    let (id, epoch) = ("owner", "owner_epoch");
    for queue in ["turn_queue", "activity_queue"] {
        let orphans = format!(
            "select count(*) from @{queue} q where q.owner is not null \
             and not exists (select from @node n where n.id = q.{id} and n.epoch = q.{epoch})"
        );
        assert_eq!(world.number(&orphans).await, 0, "{queue}: leases of runtimes that are gone");
    }
    for i in 0..60 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(66));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_limit_and_an_answer_at_the_same_moment_give_one_result() {
    let count = Arc::new(AtomicU64::new(0));
    let body: Body = Arc::new(move |_| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20 + n % 20)).await;
            Some(Ok(json!("in time")))
        })
    });
    let mut code = Code::default().program("steps", sequence);
    code.bodies.insert("close".to_owned(), body);
    let commands: Vec<Value> = (0..100)
        .map(|_| json!({ "activity": { "name": "close", "input": null, "timeoutMs": 30 } }))
        .collect();
    let mut config = EngineConfig::default();
    config.activity.cancellation_grace_period = Duration::from_millis(2);
    let world = World::new(code.program("limits", all(commands)), config).await;
    for i in 0..4 {
        world.start(&format!("l{i}"), "limits", Value::Null).await;
    }
    for i in 0..4 {
        let results = world.output(&format!("l{i}")).await;
        for result in results.as_array().expect("a list") {
            let late = result["error"]["code"] == json!("TIMEOUT");
            assert!(late || *result == json!("in time"), "{result}");
        }
    }
    let doubles = "select count(*) from (select 1 from @history where source is not null \
                   group by instance, execution, source having count(*) > 1) twice";
    assert_eq!(world.number(doubles).await, 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_closes_first_does_not_hold_up_the_stop_of_its_runtime() {
    let world = World::new(steps(), EngineConfig::default()).await;
    for i in 0..20 {
        world.start(&format!("i{i}"), "steps", json!(50)).await;
    }
    let World { provider, engine, host, .. } = world;
    provider.close(Duration::from_millis(100)).await;
    let asked = Instant::now();
    engine.shutdown(Duration::from_millis(200)).await;
    host.ended().await;
    let took = asked.elapsed();
    assert!(took < Duration::from_millis(1_200), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_without_a_database_leaves_nobody_waiting() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let world = World::at(proxy.url(), steps(), EngineConfig::default()).await;
    proxy.black_hole();
    let mut starts = JoinSet::new();
    for i in 0..600 {
        let client = world.client.clone();
        starts.spawn(async move {
            let start = Start {
                instance: format!("s{i}"),
                name: "steps".to_owned(),
                version: None,
                input: "0".to_owned(),
                parent: None,
                ..Start::default()
            };
            client.start(vec![start]).await.remove(0)
        });
    }
    let World { provider, engine, .. } = world;
    let stopped = async {
        engine.shutdown(Duration::from_millis(200)).await;
        provider.close(Duration::from_millis(200)).await;
        provider.close(Duration::from_millis(200)).await;
        engine.shutdown(Duration::from_millis(200)).await;
    };
    tokio::time::timeout(Duration::from_secs(10), stopped).await.expect("stops in time");
    while let Some(outcome) =
        tokio::time::timeout(Duration::from_secs(30), starts.join_next()).await.expect("all are told")
    {
        let error = outcome.expect("no panic").expect_err("nothing was stored");
        assert_eq!(error.kind(), ErrorKind::Closed, "{}", error.full_text());
    }
}
