//! Waiting for the end of an instance that nobody runs.

use std::{sync::Arc, time::Duration};

use holdfast_core::{client::Client, error::ErrorKind, provider::Provider};

use crate::support::TestDatabase;

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
