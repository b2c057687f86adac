//! Transactions in one flight: all or nothing, and the truth about which.

use std::time::Duration;

use holdfast_core::{
    error::ErrorKind,
    pool::{Pool, Type},
};

use super::{Table, ask, lease, number, one, own_pid, statement, until};
use crate::support::{FaultProxy, TestDatabase};

#[tokio::test]
async fn the_rows_of_every_step_come_back() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let (a, b) = (statement("select $1 + 1", &[Type::INT4]), statement("select generate_series(1, 3)", &[]));
    let rows = session.transaction("", &[(&a, &one(&1_i32)), (&b, &[])]).await.expect("committed");
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(rows[0][0].get::<_, i32>(0), 2);
    assert!(session.transaction("", &[]).await.expect("an empty one").is_empty());
}

#[tokio::test]
async fn the_prelude_holds_inside_and_not_after() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let limit = statement("select current_setting('lock_timeout')", &[]);
    let rows =
        session.transaction("set local lock_timeout = '2s'", &[(&limit, &[])]).await.expect("committed");
    assert_eq!(rows[0][0].get::<_, String>(0), "2s");
    let after: String = session.query(&limit, &[]).await.expect("an answer")[0].get(0);
    assert_ne!(after, "2s");
}

#[tokio::test]
async fn a_transaction_is_written_before_one_reply_is_awaited() {
    let table = Table::new("n int").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    let insert = table.insert();
    let prelude = "set local lock_timeout = '2s'";
    session.prepare_all(&[&insert]).await.expect("prepared");
    session.transaction(prelude, &[]).await.expect("prepared, too");
    proxy.hold_replies();
    let check = async {
        until("it is committed", async || table.rows().await == 2).await;
        proxy.pass();
    };
    let (params, more) = (one(&1_i32), one(&2_i32));
    let steps: &[_] = &[(&insert, &params[..]), (&insert, &more[..])];
    let (answer, ()) = tokio::join!(session.transaction(prelude, steps), check);
    assert_eq!(answer.expect("committed").len(), 2);
}

#[tokio::test]
async fn a_lost_connection_in_commit_is_unknown() {
    let table = Table::new("n int").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    let insert = table.insert();
    session.prepare_all(&[&insert]).await.expect("prepared");
    proxy.hold_replies();
    let check = async {
        until("it is committed", async || table.rows().await == 1).await;
        proxy.cut();
    };
    let params = one(&1_i32);
    let steps: &[_] = &[(&insert, &params[..])];
    let (answer, ()) = tokio::join!(session.transaction("", steps), check);
    assert_eq!(answer.expect_err("the answer is lost").kind(), ErrorKind::CommitUnknown);
    assert!(session.is_broken());
}

#[tokio::test]
async fn a_time_limit_in_commit_is_unknown() {
    let table = Table::new("n int").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    let insert = table.insert();
    session.prepare_all(&[&insert]).await.expect("prepared");
    proxy.black_hole();
    let params = one(&1_i32);
    let steps: &[_] = &[(&insert, &params[..])];
    let limited = session.with_limit(Duration::from_millis(50));
    let error = limited.transaction("", steps).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::CommitUnknown);
    assert!(session.is_broken());
}

#[tokio::test]
async fn a_time_limit_while_preparing_is_no_doubt() {
    let table = Table::new("n int").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    proxy.black_hole();
    let params = one(&1_i32);
    let insert = table.insert();
    let limited = session.with_limit(Duration::from_millis(50));
    let error = limited.transaction("", &[(&insert, &params[..])]).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_connection_lost_before_anything_was_sent_is_unavailable() {
    let table = Table::new("n int").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    let insert = table.insert();
    session.prepare_all(&[&insert]).await.expect("prepared");
    proxy.cut();
    until("the session is lost", async || {
        tokio::task::yield_now().await;
        session.is_broken()
    })
    .await;
    let params = one(&1_i32);
    let error = session.transaction("", &[(&insert, &params[..])]).await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn the_first_error_is_told_and_nothing_is_written() {
    let table = Table::new("n int primary key").await;
    let session = lease(&table.pool).await;
    let insert = table.insert();
    let params = one(&1_i32);
    let step = (&insert, &params[..]);
    let error = session.transaction("", &[step, step, step]).await.expect_err("a duplicate");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert!(error.full_text().contains("duplicate key"), "{}", error.full_text());
    assert_eq!(table.rows().await, 0);
    assert!(!session.is_broken());
    session.transaction("", &[step]).await.expect("the session stands outside any transaction");
    assert_eq!(table.rows().await, 1);
}

#[tokio::test]
async fn an_unreadable_prelude_writes_nothing() {
    let table = Table::new("n int").await;
    let session = lease(&table.pool).await;
    let (insert, params) = (table.insert(), one(&1_i32));
    let error =
        session.transaction("this is no command", &[(&insert, &params[..])]).await.expect_err("unreadable");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert_eq!(table.rows().await, 0);
}

#[tokio::test]
async fn a_value_that_cannot_be_sent_writes_nothing() {
    let table = Table::new("n int").await;
    let session = lease(&table.pool).await;
    let (insert, good, bad) = (table.insert(), one(&1_i32), one(&"text"));
    let steps: &[_] = &[(&insert, &good[..]), (&insert, &bad[..]), (&insert, &good[..])];
    let error = session.transaction("", steps).await.expect_err("not a number");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert_eq!(table.rows().await, 0);
    assert!(!session.is_broken());
    session
        .transaction("", &[(&insert, &good[..])])
        .await
        .expect("the session stands outside any transaction");
}

#[tokio::test]
async fn a_commit_that_is_refused_is_an_error() {
    let table = Table::new("n int unique deferrable initially deferred").await;
    let session = lease(&table.pool).await;
    let (insert, params) = (table.insert(), one(&1_i32));
    let step = (&insert, &params[..]);
    let error = session.transaction("", &[step, step]).await.expect_err("refused at the end");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert_eq!(table.rows().await, 0);
}

#[tokio::test]
async fn a_lock_not_had_in_time_is_a_conflict() {
    let table = Table::new("n int primary key").await;
    let holder = lease(&table.pool).await;
    holder
        .batch(&format!("begin; insert into {} values (1)", table.name))
        .await
        .expect("written, not committed");
    let session = lease(&table.pool).await;
    let (insert, params) = (table.insert(), one(&1_i32));
    let steps: &[_] = &[(&insert, &params[..])];
    let error = session
        .transaction("set local lock_timeout = '20ms'", steps)
        .await
        .expect_err("it waits for the other");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(!session.is_broken());
}

#[tokio::test]
async fn a_server_that_ends_the_session_in_the_middle_leaves_the_outcome_open() {
    let table = Table::new("n int").await;
    let session = lease(&table.pool).await;
    let pid = own_pid(&session).await;
    let sleep = statement("select pg_sleep(600)", &[]);
    let kill = async {
        let observer = lease(&table.pool).await;
        let busy =
            format!("select count(*) from pg_stat_activity where pid = {pid} and wait_event = 'PgSleep'");
        until("it sleeps", async || number(&observer, &busy).await == 1).await;
        ask(&observer, &format!("select pg_terminate_backend({pid})")).await.expect("told");
    };
    let steps: &[_] = &[(&sleep, &[][..])];
    let (answer, ()) = tokio::join!(session.transaction("", steps), kill);
    assert_eq!(answer.expect_err("ended").kind(), ErrorKind::CommitUnknown);
    assert!(session.is_broken());
}
