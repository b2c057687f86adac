//! When callers are refused because the database is away, and what ends it.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};
use holdfast_core::{
    error::{ErrorKind, Result},
    pool::{CallerClass, Lease, MaxClients, Pool, PoolConfig},
};
use tokio::time::Instant;

use super::{ask, lease, own_pid, until};
use crate::support::{FaultProxy, TestDatabase};

const OPEN_FOR: Duration = Duration::from_millis(300);

async fn pool_behind(proxy: &FaultProxy) -> Arc<Pool> {
    let config = PoolConfig {
        connect_timeout: Duration::from_secs(5),
        breaker_threshold: 5,
        breaker_open: OPEN_FOR,
        max_clients: MaxClients::Given(4),
        ..TestDatabase::get().pool_config()
    };
    Pool::connect(proxy.url(), config).await.expect("through the proxy")
}

/// Fails calls until the breaker is open, one after the other.
async fn open(pool: &Arc<Pool>, proxy: &FaultProxy) {
    proxy.cut();
    for at in 0..5 {
        assert!(!pool.stats().breaker_open, "open after {at} failures");
        match pool.acquire(CallerClass::Ordinary).await {
            Ok(session) => assert!(ask(&session, "select 1").await.is_err(), "refused"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.full_text()),
        }
    }
    assert!(pool.stats().breaker_open);
}

#[tokio::test]
async fn breaker_five_connection_failures_in_a_row_open_it_and_calls_fail_at_once() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = pool_behind(&proxy).await;
    open(&pool, &proxy).await;
    let before = Instant::now();
    let error = pool.acquire(CallerClass::Critical).await.expect_err("open");
    assert!(before.elapsed() < OPEN_FOR);
    assert_eq!(error.kind(), ErrorKind::CircuitOpen);
    assert!(error.retry_hint().is_some_and(|hint| hint <= OPEN_FOR));
    assert!(error.to_string().contains("5 times in a row"), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "it names the last cause: {error}");
    let refused = pool.acquire(CallerClass::Ordinary).now_or_never().expect("without waiting");
    assert_eq!(refused.expect_err("open").kind(), ErrorKind::CircuitOpen);
    assert_eq!(pool.stats().breaker_rejections, 2);
    assert!(pool.stats().connection_errors >= 5);
}

#[tokio::test]
async fn breaker_exactly_one_caller_is_the_trial_and_its_success_closes_it() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = pool_behind(&proxy).await;
    open(&pool, &proxy).await;
    proxy.hold_replies();
    // A trial that is given up at once gives its place back, so asking changes nothing.
    until("a caller is let through", async || {
        tokio::task::yield_now().await;
        pool.acquire(CallerClass::Ordinary).now_or_never().is_none()
    })
    .await;
    let mut trial = Box::pin(pool.acquire(CallerClass::Ordinary));
    assert!((&mut trial).now_or_never().is_none(), "the trial connects");
    let others = join_all((0..10).map(|_| pool.acquire(CallerClass::Critical)));
    for answer in others.now_or_never().expect("the others do not wait") {
        assert_eq!(answer.expect_err("a trial is under way").kind(), ErrorKind::CircuitOpen);
    }
    proxy.pass();
    let session = trial.await.expect("the database is back");
    ask(&session, "select 1").await.expect("an answer");
    assert!(!pool.stats().breaker_open);
    lease(&pool).await;
}

/// The first answer of the pool that is not a refusal of the breaker.
async fn after_the_break(pool: &Arc<Pool>) -> Result<Lease> {
    loop {
        tokio::task::yield_now().await;
        match pool.acquire(CallerClass::Ordinary).await {
            Err(error) if error.kind() == ErrorKind::CircuitOpen => {}
            answer => return answer,
        }
    }
}

#[tokio::test]
async fn breaker_a_failed_trial_opens_it_again() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = pool_behind(&proxy).await;
    open(&pool, &proxy).await;
    let error = after_the_break(&pool).await.expect_err("the trial");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let error = pool.acquire(CallerClass::Ordinary).await.expect_err("open again");
    assert_eq!(error.kind(), ErrorKind::CircuitOpen);
    proxy.pass();
    after_the_break(&pool).await.expect("the database is back");
}

#[tokio::test]
async fn breaker_capacity_and_refused_statements_never_open_it() {
    let admin = TestDatabase::get().pool().await;
    let pool = super::pool(|config| config.breaker_threshold = 1).await;
    for text in [
        "select 1/0",
        "select * from no_such_table",
        "do $$ begin raise exception using errcode = '40001'; end $$",
    ] {
        let session = lease(&pool).await;
        ask(&session, text).await.expect_err("refused");
        assert!(!pool.stats().breaker_open, "{text}");
    }
    assert_eq!(pool.stats().query_errors, 2, "the aborted transaction is no query error");

    let role = TestDatabase::get().schema();
    lease(&admin).await.batch(&format!("create role {role} login connection limit 1")).await.expect("a role");
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let start = proxy.url().find("://").expect("a URL") + 3;
    let end = proxy.url().find('@').expect("a user");
    let url = format!("{}{role}{}", &proxy.url()[..start], &proxy.url()[end..]);
    let config = PoolConfig { breaker_threshold: 1, ..TestDatabase::get().pool_config() };
    let full = Pool::connect(&url, config).await.expect("the only session");
    let only = lease(&full).await;
    for _ in 0..3 {
        let error = full.acquire(CallerClass::Ordinary).await.expect_err("full");
        assert_eq!(error.kind(), ErrorKind::Capacity);
        assert!(error.retry_hint().is_some(), "capacity carries when to come again");
    }
    let stats = full.stats();
    assert_eq!((stats.capacity_rejections, stats.breaker_open), (3, false));
    drop(only);
    full.close().await;
    lease(&admin).await.batch(&format!("drop role {role}")).await.expect("gone");
}

#[tokio::test]
async fn breaker_sessions_ended_together_are_one_failure() {
    let pool = super::pool(|config| config.breaker_threshold = 2).await;
    let observer = TestDatabase::get().pool().await;
    let sessions = join_all((0..6).map(|_| lease(&pool))).await;
    for session in &sessions {
        let pid = own_pid(session).await;
        ask(&*lease(&observer).await, &format!("select pg_terminate_backend({pid}, 10000)"))
            .await
            .expect("ended");
    }
    for session in &sessions {
        ask(session, "select 1").await.expect_err("ended");
        ask(session, "select 1").await.expect_err("ended");
    }
    drop(sessions);
    let stats = pool.stats();
    assert_eq!((stats.connection_errors, stats.breaker_open), (6, false));
    ask(&*lease(&pool).await, "select 1").await.expect("a new session");
}
