//! What the pool does by itself: runs operations again, proves idle sessions, warms up, counts.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use holdfast_core::{
    error::{Error, ErrorKind},
    pool::{CallerClass, Loan, MaxClients, Pool, PoolConfig},
};

use super::{ask, lease, number, own_pid, pool, sessions_named, statement, until};
use crate::support::{FaultProxy, TestDatabase};

async fn end(pid: i32) {
    let observer = TestDatabase::get().pool().await;
    let ended = format!("select pg_terminate_backend({pid}, 10000)::int::bigint");
    assert_eq!(number(&*lease(&observer).await, &ended).await, 1);
}

#[tokio::test]
async fn retry_an_operation_whose_connection_is_lost_is_run_again_on_another() {
    let pool = pool(|_| {}).await;
    let runs = AtomicU32::new(0);
    let runs = &runs;
    let operation = |session: Loan| async move {
        let pid = own_pid(&session).await;
        if runs.fetch_add(1, Ordering::Relaxed) < 2 {
            end(pid).await;
        }
        ask(&session, "select 1").await.map(|_| pid)
    };
    pool.run(CallerClass::Ordinary, operation).await.expect("the third run");
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert_eq!((pool.stats().retries, pool.stats().waiting), (2, 0));
}

#[tokio::test]
async fn retry_ends_after_the_attempts_of_the_options() {
    let config = |config: &mut PoolConfig| {
        config.retry_attempts = 2;
        (config.retry_base_delay, config.retry_max_delay) =
            (Duration::from_millis(1), Duration::from_millis(2));
    };
    let pool = pool(config).await;
    for (kind, expected) in [
        (ErrorKind::Unavailable, 3),
        (ErrorKind::Timeout, 3),
        (ErrorKind::Conflict, 3),
        (ErrorKind::Query, 1),
        (ErrorKind::Capacity, 1),
        (ErrorKind::Saturated, 1),
        (ErrorKind::CircuitOpen, 1),
        (ErrorKind::Fenced, 1),
    ] {
        let runs = AtomicU32::new(0);
        let runs = &runs;
        let operation = |_session: Loan| async move {
            runs.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Error::new(kind, "as told"))
        };
        let error = pool.run(CallerClass::Critical, operation).await.expect_err("always");
        assert_eq!((error.kind(), runs.load(Ordering::Relaxed)), (kind, expected));
    }
    assert_eq!(pool.stats().retries, 6);
}

#[tokio::test]
async fn retry_an_operation_keeps_its_place_through_its_runs() {
    let config = |config: &mut PoolConfig| {
        config.max_clients = MaxClients::Given(1);
        config.retry_base_delay = Duration::from_millis(1);
    };
    let pool = pool(config).await;
    let runs = AtomicU32::new(0);
    let runs = &runs;
    let operation = |_session: Loan| async move {
        match runs.fetch_add(1, Ordering::Relaxed) {
            0..2 => Err(Error::new(ErrorKind::Conflict, "as told")),
            _ => Ok(()),
        }
    };
    let mut running = Box::pin(pool.run(CallerClass::Ordinary, operation));
    assert!((&mut running).now_or_never().is_none(), "it pauses");
    let mut other = Box::pin(pool.acquire(CallerClass::Critical));
    assert!((&mut other).now_or_never().is_none(), "the place is taken");
    tokio::select! {
        biased;
        outcome = &mut running => outcome.expect("the third run"),
        _ = &mut other => panic!("the place was given away between two runs"),
    }
    drop(running);
    other.await.expect("its turn");
}

#[tokio::test]
async fn held_connections_one_that_dies_while_checked_out_never_returns() {
    let pool = pool(|_| {}).await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    end(pid).await;
    until("the session is lost", async || {
        tokio::task::yield_now().await;
        session.is_broken()
    })
    .await;
    drop(session);
    assert_eq!(pool.stats().idle, 0);
    assert_ne!(own_pid(&*lease(&pool).await).await, pid);
}

#[tokio::test]
async fn keepalive_proves_idle_sessions_and_closes_those_that_fail() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let config = PoolConfig {
        keep_alive_interval: Duration::from_millis(40),
        connect_timeout: Duration::from_millis(200),
        ..TestDatabase::get().pool_config()
    };
    let name = config.application_name.clone();
    let pool = Pool::connect(proxy.url(), config).await.expect("a pool");
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let pid = own_pid(&*lease(&pool).await).await;
    let proved =
        format!("select count(*) from pg_stat_activity where pid = {pid} and query like '-- Proves%'");
    until("it is proved", async || number(&observer, &proved).await == 1).await;
    assert_eq!(pool.stats().connection_errors, 0);
    proxy.black_hole();
    until("the silent one is given up", async || {
        tokio::task::yield_now().await;
        pool.stats().total == 0
    })
    .await;
    assert_eq!(pool.stats().waiting, 0);
    proxy.cut();
    until("the server knows, too", async || sessions_named(&observer, &name).await == 0).await;
}

#[tokio::test]
async fn keepalive_does_not_keep_a_session_from_being_closed_when_idle() {
    let config = |config: &mut PoolConfig| {
        config.keep_alive_interval = Duration::from_millis(10);
        config.idle_timeout = Duration::from_millis(100);
    };
    let pool = pool(config).await;
    until("it is closed", async || {
        tokio::task::yield_now().await;
        pool.stats().total == 0
    })
    .await;
}

#[tokio::test]
async fn warm_pays_for_the_connection_before_the_first_call() {
    let pool = pool(|config| config.idle_timeout = Duration::from_millis(20)).await;
    until("nothing is left", async || {
        tokio::task::yield_now().await;
        pool.stats().total == 0
    })
    .await;
    pool.warm().await.expect("warm");
    let stats = pool.stats();
    assert_eq!((stats.total, stats.idle), (1, 1));
}

#[tokio::test]
async fn stats_tell_every_number_of_the_pool() {
    let pool = pool(|config| (config.max_clients, config.max_waiting) = (MaxClients::Given(2), 3)).await;
    let held = join_all((0..2).map(|_| lease(&pool))).await;
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(lease(&pool))).collect();
    for waiter in &mut waiting {
        assert!(waiter.now_or_never().is_none());
    }
    pool.acquire(CallerClass::Critical).await.expect_err("full");
    held[0].execute(&statement("select 1/0", &[]), &[]).await.expect_err("refused");
    let stats = pool.stats();
    assert_eq!((stats.max, stats.total, stats.idle, stats.waiting), (2, 2, 0, 3));
    assert_eq!((stats.peak_total, stats.peak_waiting), (2, 3));
    assert_eq!((stats.saturation_rejections, stats.query_errors), (1, 1));
    assert_eq!((stats.breaker_rejections, stats.capacity_rejections, stats.breaker_open), (0, 0, false));
    assert_eq!((stats.acquires, stats.connection_errors, stats.retries), (3, 0, 0));
    assert!(stats.acquire_wait_p95 >= stats.acquire_wait_p50);
    drop(held);
    for waiter in waiting {
        waiter.await;
    }
    let stats = pool.stats();
    assert_eq!((stats.total, stats.idle, stats.waiting), (2, 2, 0));
    assert_eq!((stats.peak_total, stats.peak_waiting, stats.acquires), (2, 3, 6));
}
