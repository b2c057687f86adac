//! Waiting for the end of an instance that nobody runs.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use holdfast_core::{client::Client, config::EngineConfig, error::ErrorKind, provider::Provider};
use serde_json::json;

use crate::support::{
    TestDatabase,
    world::{World, steps},
};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn whoever_waits_is_told_that_the_provider_was_closed() {
    let database = TestDatabase::get();
    let provider =
        Provider::connect(database.url(), &database.schema(), database.pool_config()).await.expect("connect");
    let client = Client::new(Arc::clone(&provider));
    let (waited, ()) = tokio::join!(client.wait("nobody", PATIENCE), provider.close(PATIENCE));
    assert_eq!(waited.expect_err("no end, and no time-out").kind(), ErrorKind::Closed);
    let late = client.wait("nobody", PATIENCE).await;
    assert_eq!(late.expect_err("nothing looks any more").kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_wait_that_runs_out_gives_nothing() {
    let database = TestDatabase::get();
    let provider =
        Provider::connect(database.url(), &database.schema(), database.pool_config()).await.expect("connect");
    let waited = Client::new(Arc::clone(&provider)).wait("nobody", Duration::ZERO).await;
    assert!(waited.expect("the provider is open").is_none());
    provider.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b10_thousands_of_waits_are_looked_at_in_batches_and_each_is_told() {
    let world = World::new(steps(), EngineConfig::default()).await;
    for at in [0, 1_300, 2_499] {
        world.start(&format!("order-{at}"), "steps", json!(0)).await;
        world.end(&format!("order-{at}")).await;
    }
    let waits = (0..2_500).map(|at| {
        let client = &world.client;
        async move {
            client.wait(&format!("order-{at}"), Duration::from_secs(5)).await.expect("no error").is_some()
        }
    });
    let ended: Vec<usize> =
        join_all(waits).await.into_iter().enumerate().filter_map(|(at, ended)| ended.then_some(at)).collect();
    assert_eq!(ended, [0, 1_300, 2_499]);
    world.stop().await;
}
