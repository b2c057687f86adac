//! What the pool tells its providers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use holdfast_core::{
    pool::{CallerClass, Loan, MaxClients, Pool, PoolConfig},
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

/// Lines of one thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn trace_one_line_for_each_operation_says_where_its_time_went() {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    let _heard = tracing::subscriber::set_default(subscriber);
    let pool = super::pool(|config| {
        config.max_clients = MaxClients::Given(1);
        config.acquire_timeout = Duration::from_millis(50);
    })
    .await;
    let told = || -> Vec<String> {
        let bytes = std::mem::take(&mut *lines.0.lock().expect("not poisoned"));
        let text = String::from_utf8(bytes).expect("text");
        text.lines().filter(|line| line.contains("holdfast::pool")).map(str::to_owned).collect()
    };
    // A place in the code that is passed for the first time by another test's thread is taken for one that nobody listens to:
    // it is passed here once, and then asked again who listens.
    drop(lease(&pool).await);
    tracing::callsite::rebuild_interest_cache();
    told();
    let held = lease(&pool).await;
    ask(&held, "select 1").await.expect("an answer");
    ask(&held, "select 2").await.expect("an answer");
    pool.acquire(CallerClass::Critical).await.expect_err("the only one is taken");
    drop(held);
    pool.run(CallerClass::Ordinary, |session: Loan| async move { ask(&session, "select nothing").await })
        .await
        .expect_err("refused");
    let told = told();
    for (line, parts) in told.iter().zip([
        ["phase=Admission", "outcome=\"SATURATED\"", "attempt=1", "priority=Critical", "queries=0"],
        ["phase=Operation", "outcome=\"ok\"", "attempt=1", "priority=Ordinary", "queries=2"],
        ["phase=Operation", "outcome=\"QUERY\"", "attempt=1", "priority=Ordinary", "queries=1"],
    ]) {
        for part in parts.into_iter().chain(["admission_ms=", "acquire_ms=", "query_ms=", "total_ms="]) {
            assert!(line.contains(part), "{line} lacks {part}");
        }
    }
    assert_eq!(told.len(), 3, "{told:?}");
}
