//! A node that is not heard fences itself, a JavaScript loop that stands still keeps or gives up its work, a stop in a hurry.

use std::time::{Duration, Instant};

use holdfast_core::config::EngineConfig;
use serde_json::json;
use tokio::sync::watch;

use crate::support::{
    FaultProxy, TestDatabase,
    host::{Code, sequence},
    world::{World, run, sql_at, steps},
};

fn quick() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(250);
    config.liveness.stale_after = Duration::from_millis(2_500);
    config.lease.worker_lock_timeout = Duration::from_secs(600);
    config.lease.orchestrator_lock_timeout = Duration::from_secs(600);
    config
}

async fn until(what: &str, mut look: impl FnMut() -> bool) {
    let seen = async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap_or_else(|_| panic!("{what} never came"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_not_heard_fences_itself_and_settles_what_nobody_took() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let (tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let world = World::at(proxy.url(), code, quick()).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    assert_eq!(world.engine.health().status, "healthy");
    proxy.black_hole();
    until("the fence", || world.engine.health().fenced).await;
    assert_eq!(world.engine.health().claims, "nothing");
    assert_eq!(world.engine.health().status, "unhealthy");
    until("the counter", || world.provider.counters().self_fences.get() == 1).await;
    proxy.cut();
    proxy.pass();
    until("a heartbeat", || !world.engine.health().fenced).await;
    tell.send(true).expect("the body waits");
    // The stand-in for JavaScript pays no heed to the abort signal, so its result comes, and stands.
    assert_eq!(world.end("order").await.status, "Completed");
    assert_eq!(world.kinds("order", 1).await.iter().filter(|kind| *kind == "ActivityCompleted").count(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_stalls_keeps_what_runs_and_gives_back_what_does_not() {
    let (_tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let mut config = quick();
    config.watchdog.stall_timeout = Duration::from_millis(200);
    config.watchdog.hang_timeout = Duration::ZERO;
    let world = World::new(code, config).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    world.engine.sign_of_life();
    until("a stall", || world.engine.health().event_loop == "stalled").await;
    assert_eq!(world.engine.health().status, "degraded");
    world.start("later", "steps", json!(0)).await;
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let (owned, free) = (
        "select count(*) from @activity_queue where owner is not null",
        "select count(*) from @turn_queue where owner is null and due_at <= now()",
    );
    assert_eq!((world.number(owned).await, world.number(free).await), (1, 1));
    let engine = std::sync::Arc::clone(&world.engine);
    let life = tokio::spawn(async move {
        loop {
            engine.sign_of_life();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(world.output("later").await, json!(0));
    assert_eq!(world.engine.health().event_loop, "healthy");
    life.abort();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_hangs_gives_its_work_to_another_node_and_its_late_result_changes_nothing() {
    let (tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let mut config = quick();
    config.watchdog.stall_timeout = Duration::from_millis(100);
    config.watchdog.hang_timeout = Duration::from_millis(400);
    let world = World::new(code, config).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    world.engine.sign_of_life();
    until("a hang", || world.engine.health().event_loop == "hung").await;
    let (other, host) = run(&world.provider, steps(), quick()).await;
    assert_eq!(world.output("order").await, json!(0));
    tell.send(true).expect("the body waits");
    until("the late answer", || world.engine.running() == 0).await;
    assert_eq!(world.kinds("order", 1).await.iter().filter(|kind| *kind == "ActivityCompleted").count(), 1);
    other.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_a_hurry_does_not_wait_for_its_grace() {
    let (_tell, told) = watch::channel(false);
    let world = World::new(Code::default().program("steps", sequence).waiting("work", told), quick()).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    let engine = std::sync::Arc::clone(&world.engine);
    let stop = tokio::spawn(async move { engine.shutdown(Duration::from_secs(3_600)).await });
    until("a stop", || world.engine.health().claims == "nothing").await;
    let asked = Instant::now();
    world.engine.hurry();
    stop.await.expect("the stop ends");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let left = "select count(*) from @activity_queue where owner is null and due_at <= now()";
    let rows = sql_at(TestDatabase::get().url(), &world.schema, left).await;
    assert_eq!(rows[0].get::<_, i64>(0), 1, "its lease is given back");
    world.stop().await;
}
