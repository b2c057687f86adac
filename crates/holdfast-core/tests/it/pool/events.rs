//! What the pool tells its providers.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    pool::{CallerClass, MaxClients, Pool, PoolConfig},
    telemetry::{Event, Events, Level},
};

use super::{ask, lease, until};
use crate::support::{FaultProxy, TestDatabase};

/// A listener of a pool.
fn heard(pool: &Pool) -> Arc<Events> {
    let events = Arc::new(Events::default());
    events.listen(Arc::new(|| {}));
    pool.audience().join(&events);
    events
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.name).collect()
}

#[tokio::test]
async fn the_breaker_tells_when_it_opens_and_when_it_closes() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let config = PoolConfig {
        breaker_threshold: 1,
        breaker_open: Duration::from_millis(20),
        ..TestDatabase::get().pool_config()
    };
    let pool = Pool::connect(proxy.url(), config).await.expect("through the proxy");
    let events = heard(&pool);
    proxy.cut();
    until("the breaker opens", async || {
        if let Ok(session) = pool.acquire(CallerClass::Ordinary).await {
            let _ = ask(&session, "select 1").await;
        }
        pool.stats().breaker_open
    })
    .await;
    let told = events.take();
    let opened = told.iter().find(|event| event.name == "pool-breaker-opened").expect("told");
    assert_eq!(opened.level, Level::Error);
    assert!(opened.fields["cause"].as_str().is_some_and(|cause| !cause.is_empty()));
    assert!(names(&told).contains(&"pool-connection-lost") || told.len() == 1, "{told:?}");
    proxy.pass();
    until("the breaker closes", async || {
        let _ = pool.warm().await;
        !pool.stats().breaker_open
    })
    .await;
    assert!(names(&events.take()).contains(&"pool-breaker-closed"));
}

#[tokio::test]
async fn a_saturated_pool_tells_how_many_wait() {
    let config = PoolConfig {
        max_clients: MaxClients::Given(1),
        acquire_timeout: Duration::from_millis(20),
        ..TestDatabase::get().pool_config()
    };
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    let events = heard(&pool);
    let held = lease(&pool).await;
    pool.acquire(CallerClass::Ordinary).await.expect_err("the only session is taken");
    let told = events.take();
    assert_eq!(names(&told), ["pool-saturated"]);
    assert_eq!(told[0].fields["waiting"], 0);
    drop(held);
}
