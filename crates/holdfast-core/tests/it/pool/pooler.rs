//! Behind PgBouncer in transaction mode, where a session of the server is nobody's for longer than one transaction.
//!
//! `npm test` starts the pooler when the machine has one, names it in `HOLDFAST_TEST_POOLER_URL`, and says so when it has
//! none; then these tests have nothing to ask.

use std::{env, sync::Arc, time::Duration};

use futures_util::future::join_all;
use holdfast_core::{
    error::ErrorKind,
    pool::{CallerClass, Loan, Pool, PoolConfig, PoolerMode, SessionPurpose, Type},
};

use super::{Table, ask, lease, number, one, own_pid, statement, until};
use crate::support::TestDatabase;

async fn pooled() -> Option<Arc<Pool>> {
    let url = env::var("HOLDFAST_TEST_POOLER_URL").ok().filter(|url| !url.is_empty())?;
    let config = PoolConfig {
        pooled: PoolerMode::Yes,
        direct_url: Some(TestDatabase::get().url().to_owned()),
        ..TestDatabase::get().pool_config()
    };
    Some(Pool::connect(&url, config).await.expect("the pooler answers"))
}

#[tokio::test]
async fn pooled_more_sessions_than_the_pooler_has_share_it_call_by_call() {
    let Some(pool) = pooled().await else { return };
    let sum = statement("select $1::int + 1", &[Type::INT4]);
    let numbers: Vec<i32> = (0..100).collect();
    let answers = join_all(numbers.iter().map(|n| async {
        let session = lease(&pool).await;
        session.query(&sum, &one(n)).await.expect("an answer")[0].get::<_, i32>(0)
    }))
    .await;
    assert_eq!(answers, (1..=100).collect::<Vec<_>>());
    assert_eq!(pool.stats().query_errors, 0);
}

#[tokio::test]
async fn pooled_transactions_are_whole() {
    let Some(pool) = pooled().await else { return };
    let table = Table::new("n int primary key").await;
    let insert = table.insert();
    let numbers: Vec<[i32; 2]> = (0..40).map(|at| [2 * at, 2 * at + 1]).collect();
    join_all(numbers.iter().map(|[first, second]| async {
        let session = lease(&pool).await;
        let steps = [(&insert, &one(first)[..]), (&insert, &one(second)[..])];
        session.transaction("set local statement_timeout = 5000", &steps).await.expect("committed");
    }))
    .await;
    assert_eq!(table.rows().await, 80);
    let session = lease(&pool).await;
    let steps = [(&insert, &one(&1_000)[..]), (&insert, &one(&0)[..])];
    let error = session.transaction("", &steps).await.expect_err("0 is there");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert_eq!(table.rows().await, 80, "nothing of it was written");
}

#[tokio::test]
async fn pooled_sessions_that_must_be_the_servers_own_go_past_it() {
    let Some(pool) = pooled().await else { return };
    let direct = pool.open_session(SessionPurpose::Listener).await.expect("a session");
    let address = "select coalesce(inet_server_port(), 0)::bigint";
    let expected = number(&*lease(&TestDatabase::get().pool().await).await, address).await;
    assert_eq!(number(&direct, address).await, expected);
    let first = own_pid(&direct).await;
    for _ in 0..5 {
        assert_eq!(own_pid(&direct).await, first, "one session of the server");
    }
}

#[tokio::test]
async fn pooled_a_query_out_of_time_is_stopped_on_the_server() {
    let Some(pool) = pooled().await else { return };
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let mark = TestDatabase::get().schema();
    let running = format!(
        "select count(*) from pg_stat_activity where query like '%{mark}%' and pid <> pg_backend_pid() \
         and state = 'active'"
    );
    let session = lease(&pool).await;
    let slow = format!("select pg_sleep(600), '{mark}'");
    let limited = session.with_limit(Duration::from_millis(300));
    let error = ask(&limited, &slow).await.expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    drop(limited);
    drop(session);
    until("the server stops the query", async || number(&observer, &running).await == 0).await;
}

#[tokio::test]
async fn pooled_an_operation_whose_server_session_ends_is_run_again() {
    let Some(pool) = pooled().await else { return };
    let observer = TestDatabase::get().pool().await;
    let ended = std::sync::atomic::AtomicBool::new(false);
    let (ended, observer) = (&ended, &observer);
    let operation = |session: Loan| async move {
        if !ended.swap(true, std::sync::atomic::Ordering::Relaxed) {
            let steps = [(&statement("select pg_terminate_backend(pg_backend_pid())", &[]), &[][..])];
            session.transaction("", &steps).await?;
        }
        number(&*lease(observer).await, "select 1::bigint").await;
        ask(&session, "select 1").await
    };
    let rows = pool.run(CallerClass::Ordinary, operation).await.expect("the second run");
    assert_eq!((rows[0].get::<_, i32>(0), pool.stats().retries), (1, 1));
}
