//! What dispatch costs the database: one look for each idle round, and nothing twice under load.

use holdfast_core::config::EngineConfig;
use serde_json::json;

use crate::support::world::{World, steps};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_round_is_one_statement() {
    let world = World::new(steps(), EngineConfig::default()).await;
    world.start("one", "steps", json!(1)).await;
    world.end("one").await;
    let counters = world.provider.counters();
    let looks = counters.looks.get();
    // What the end of the work set off is over after two looks.
    while counters.looks.get() < looks + 2 {
        tokio::task::yield_now().await;
    }
    let (claims, looks) = (counters.claims.get(), counters.looks.get());
    while counters.looks.get() < looks + 4 {
        tokio::task::yield_now().await;
    }
    assert_eq!(counters.claims.get(), claims, "an idle claimer looks and does not claim");
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
