//! Who gets a session, who waits, and who shares a pool.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};
use holdfast_core::{
    error::ErrorKind,
    pool::{CallerClass, MaxClients, Pool, PoolConfig},
};

use super::{ask, lease, number, own_pid, pool, sessions_named, until};
use crate::support::TestDatabase;

#[tokio::test]
async fn never_more_sessions_than_clients() {
    let config = PoolConfig { max_clients: MaxClients::Given(3), ..TestDatabase::get().pool_config() };
    let name = config.application_name.clone();
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    let counts = join_all((0..60).map(|_| async {
        let session = lease(&pool).await;
        sessions_named(&session, &name).await
    }))
    .await;
    assert!(counts.iter().all(|count| *count <= 3), "{counts:?}");
    assert!(pool.stats().total <= 3);
}

#[tokio::test]
async fn control_plane_two_clients_until_a_runtime_uses_the_pool() {
    let pool = pool(|config| config.max_clients = MaxClients::ByUse).await;
    assert_eq!(pool.stats().max, 2);
    let held = join_all((0..2).map(|_| lease(&pool))).await;
    let third = lease(&pool);
    tokio::pin!(third);
    assert!((&mut third).now_or_never().is_none(), "it waits");
    let runtime = pool.used_by_a_runtime();
    drop(third.await);
    assert_eq!((pool.stats().max, pool.stats().peak_total), (8, 3));
    drop(runtime);
    assert_eq!(pool.stats().max, 2);
    drop(held);
}

#[tokio::test]
async fn waiting_callers_are_bounded() {
    let pool = pool(|config| (config.max_clients, config.max_waiting) = (MaxClients::Given(1), 2)).await;
    let held = lease(&pool).await;
    let waiting = join_all((0..2).map(|_| async { drop(lease(&pool).await) }));
    tokio::pin!(waiting);
    assert!((&mut waiting).now_or_never().is_none(), "both wait");
    assert_eq!(pool.stats().waiting, 2);
    let error = pool.acquire(CallerClass::Critical).await.expect_err("the queue is full");
    assert_eq!(error.kind(), ErrorKind::Saturated);
    assert!(error.to_string().contains('2'), "{error}");
    assert!(error.retry_hint().is_some());
    drop(held);
    waiting.await;
    assert_eq!(pool.stats().waiting, 0);
}

#[tokio::test]
async fn a_waiter_that_runs_out_of_time_is_saturated_and_leaves_the_queue() {
    let pool = pool(|config| {
        (config.max_clients, config.acquire_timeout) = (MaxClients::Given(1), Duration::from_millis(30))
    })
    .await;
    let held = lease(&pool).await;
    let error = pool.acquire(CallerClass::Ordinary).await.expect_err("nobody gives back");
    assert_eq!(error.kind(), ErrorKind::Saturated);
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.saturation_rejections, stats.connection_errors), (0, 1, 0));
    drop(held);
    lease(&pool).await;
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_its_place_to_others() {
    let pool = pool(|config| config.max_clients = MaxClients::Given(1)).await;
    let held = lease(&pool).await;
    let mut given_up = Box::pin(lease(&pool));
    assert!((&mut given_up).now_or_never().is_none());
    let mut patient = Box::pin(lease(&pool));
    assert!((&mut patient).now_or_never().is_none());
    // The place goes to the first waiter, who is gone before it hears of it.
    drop(held);
    drop(given_up);
    patient.await;
    assert_eq!((pool.stats().waiting, pool.stats().total), (0, 1));
}

#[tokio::test]
async fn a_critical_caller_goes_before_an_ordinary_one() {
    let pool = pool(|config| config.max_clients = MaxClients::Given(1)).await;
    let held = lease(&pool).await;
    let mut ordinary = Box::pin(pool.acquire(CallerClass::Ordinary));
    assert!((&mut ordinary).now_or_never().is_none());
    let mut critical = Box::pin(pool.acquire(CallerClass::Critical));
    assert!((&mut critical).now_or_never().is_none());
    drop(held);
    let first = tokio::select! {
        biased;
        _ = &mut ordinary => "ordinary",
        lease = &mut critical => { drop(lease); "critical" }
    };
    assert_eq!(first, "critical");
    ordinary.await.expect("its turn");
}

#[tokio::test]
async fn equal_requests_share_one_pool_until_the_last_share_is_closed() {
    let config = TestDatabase::get().pool_config();
    let name = config.application_name.clone();
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let url = TestDatabase::get().url();
    let first = Pool::connect(url, config.clone()).await.expect("a pool");
    let spelled = url.replacen("postgres://", "postgresql://", 1);
    let second = Pool::connect(&spelled, config.clone()).await.expect("the same pool");
    let pid = own_pid(&*lease(&first).await).await;
    assert_eq!(pid, own_pid(&*lease(&second).await).await, "one pool");
    let other = Pool::connect(url, PoolConfig { max_waiting: 5, ..config }).await.expect("another pool");
    assert_ne!(pid, own_pid(&*lease(&other).await).await, "other options, other pool");
    other.close().await;

    first.close().await;
    first.close().await;
    let error = first.acquire(CallerClass::Ordinary).await.expect_err("its share is given up");
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(pid, own_pid(&*lease(&second).await).await, "the other share stands");
    second.close().await;
    until("no session is left", async || sessions_named(&observer, &name).await == 0).await;
}

#[tokio::test]
async fn a_dropped_share_counts_as_closed() {
    let config = TestDatabase::get().pool_config();
    let name = config.application_name.clone();
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    assert_eq!(sessions_named(&observer, &name).await, 1);
    drop(pool);
    until("no session is left", async || sessions_named(&observer, &name).await == 0).await;
}

#[tokio::test]
async fn closing_refuses_who_waits_and_closes_what_comes_back() {
    let config = PoolConfig { max_clients: MaxClients::Given(1), ..TestDatabase::get().pool_config() };
    let name = config.application_name.clone();
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    let held = lease(&pool).await;
    let mut waiting = Box::pin(pool.acquire(CallerClass::Ordinary));
    assert!((&mut waiting).now_or_never().is_none());
    pool.close().await;
    assert_eq!(waiting.await.expect_err("closed").kind(), ErrorKind::Closed);
    ask(&held, "select 1").await.expect("a session on loan stays whole");
    drop(held);
    until("no session is left", async || sessions_named(&observer, &name).await == 0).await;
}

#[tokio::test]
async fn a_session_idle_too_long_is_closed() {
    let config = PoolConfig { idle_timeout: Duration::from_millis(20), ..TestDatabase::get().pool_config() };
    let name = config.application_name.clone();
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    until("it is closed", async || sessions_named(&observer, &name).await == 0).await;
    assert_eq!(pool.stats().total, 0);
    lease(&pool).await;
}

#[tokio::test]
async fn a_burst_of_many_tasks_is_served() {
    let pool = pool(|config| (config.max_clients, config.max_waiting) = (MaxClients::Given(2), 1_000)).await;
    let tasks: Vec<_> = (0..400)
        .map(|at| {
            let pool = Arc::clone(&pool);
            let class = if at % 3 == 0 { CallerClass::Critical } else { CallerClass::Ordinary };
            tokio::spawn(async move {
                let session = pool.acquire(class).await.expect("its turn comes");
                number(&session, "select 1::bigint").await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("no panic"), 1);
    }
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.saturation_rejections), (0, 0));
    assert!(stats.acquires >= 400 && stats.total <= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_give_up_at_any_moment_cost_no_place_and_make_none() {
    let config = PoolConfig {
        max_clients: MaxClients::Given(2),
        max_waiting: 1_000,
        ..TestDatabase::get().pool_config()
    };
    let name = config.application_name.clone();
    let pool = Pool::connect(TestDatabase::get().url(), config).await.expect("a pool");
    let tasks: Vec<_> = (0..2_000_u64)
        .map(|at| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move {
                // Patience from none to about the time a place takes to come round, in steps that fit no rhythm.
                let patience = Duration::from_micros(at * 37 % 5_000);
                let acquiring = tokio::time::timeout(patience, pool.acquire(CallerClass::Ordinary));
                if let Ok(Ok(session)) = acquiring.await {
                    let _ = tokio::time::timeout(patience, ask(&session, "select 1")).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(pool.stats().waiting, 0);
    let (first, second) = tokio::join!(lease(&pool), lease(&pool));
    assert_eq!(pool.stats().total, 2);
    let mut third = Box::pin(pool.acquire(CallerClass::Critical));
    assert!((&mut third).now_or_never().is_none(), "two places, no third");
    drop(third);
    until("the server stopped what was given up", async || sessions_named(&first, &name).await == 2).await;
    drop(second);
}
