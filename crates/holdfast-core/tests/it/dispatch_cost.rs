//! What dispatch costs the database: nothing but its heartbeats at rest, and nothing twice under load.

use std::time::Duration;

use holdfast_core::config::{EngineConfig, ListenerMode};
use serde_json::json;

use crate::support::world::{PATIENCE, World, steps};

async fn reached(counted: impl Fn() -> u64, count: u64) {
    let counting = async {
        while counted() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counting).await.expect("it is counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_round_is_one_statement() {
    let world = World::new(steps(), EngineConfig::default()).await;
    world.start("one", "steps", json!(1)).await;
    world.end("one").await;
    let counters = world.provider.counters();
    let seen = || counters.looks.get() + counters.looks_along.get();
    // What the end of the work set off is over after two looks.
    reached(seen, seen() + 2).await;
    let claims = counters.claims.get();
    reached(seen, seen() + 4).await;
    assert_eq!(counters.claims.get(), claims, "an idle claimer looks and does not claim");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_at_rest_asks_for_nothing_beside_its_heartbeats() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    // By itself the claimer would look after three seconds, and nothing but work wakes it.
    config.dispatch.poll_interval = Duration::from_secs(3);
    config.liveness.listener = ListenerMode::Off;
    let world = World::new(steps(), config).await;
    world.start("one", "steps", json!(1)).await;
    world.end("one").await;
    let counters = world.provider.counters();
    reached(|| counters.looks_along.get(), counters.looks_along.get() + 2).await;
    let asked = || (counters.looks.get(), counters.claims.get());
    let (before, along) = (asked(), counters.looks_along.get());
    reached(|| counters.heartbeats.get(), counters.heartbeats.get() + 40).await;
    assert_eq!(asked(), before, "the heartbeats look for it");
    assert!(counters.looks_along.get() >= along + 20, "as a rule each of them");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_heartbeat_finds_is_claimed() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    config.dispatch.poll_interval = Duration::from_secs(3);
    config.liveness.listener = ListenerMode::Off;
    let world = World::new(steps().silent("waits"), config).await;
    let counters = world.provider.counters();
    reached(|| counters.looks_along.get(), 1).await;
    // Nobody tells of these. Every three seconds the claimer looks by itself as well.
    let by_heartbeat = async |n: u64| {
        let looks = counters.looks.get();
        let row = format!(
            "insert into @activity_queue (instance, execution, event, name, input) values ('w', 1, {n}, 'waits', '1')"
        );
        world.sql(&row).await;
        reached(|| counters.activities_claimed.get(), n).await;
        counters.looks.get() == looks
    };
    let mut rows = 1;
    while !by_heartbeat(rows).await {
        rows += 1;
        assert!(rows < 10, "the claimer found all of them by itself");
    }
    world.engine.shutdown(Duration::ZERO).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_of_steps_costs_few_claims() {
    let world = World::new(steps(), EngineConfig::default()).await;
    for n in 0..20 {
        world.start(&format!("one by one {n}"), "steps", json!(3)).await;
        world.end(&format!("one by one {n}")).await;
    }
    let counters = world.provider.counters();
    let (claims, looks) = (counters.claims.get(), counters.looks.get());
    // Seven hops each; a hint that comes while a claim is on its way asks for one more round.
    assert!(claims <= 20 * 7 * 2, "{claims} claims");
    assert!(looks <= 20 * 7 * 2, "{looks} looks");
    world.stop().await;
}
