//! One session: answers, limits, and when it must not be used again.

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use holdfast_core::{
    error::ErrorKind,
    pool::{Pool, PoolerMode, SessionPurpose, Type},
};

use super::{Table, ask, lease, number, one, own_pid, pool, statement, until};
use crate::support::{FaultProxy, TestDatabase};

#[tokio::test]
async fn a_session_answers() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let rows =
        session.query(&statement("select $1 + 1", &[Type::INT4]), &[&41_i32]).await.expect("an answer");
    assert_eq!(rows[0].get::<_, i32>(0), 42);
}

#[tokio::test]
async fn a_session_given_back_whole_is_used_again() {
    let pool = TestDatabase::get().pool().await;
    let first = own_pid(&*lease(&pool).await).await;
    assert_eq!(first, own_pid(&*lease(&pool).await).await);
    assert_eq!(pool.stats().total, 1);
}

#[tokio::test]
async fn a_refused_statement_leaves_its_session_whole() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let error = ask(&session, "select 1/0").await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert!(error.full_text().contains("division by zero"), "{}", error.full_text());
    assert!(!session.is_broken());
}

#[tokio::test]
async fn a_timed_out_query_destroys_its_session() {
    let pool = TestDatabase::get().pool().await;
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    let error = ask(&session.with_limit(Duration::from_millis(50)), "select pg_sleep(600)")
        .await
        .expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(session.is_broken());
    let error = ask(&session, "select 1").await.expect_err("broken for good");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    drop(session);
    assert_ne!(pid, own_pid(&*lease(&pool).await).await);
    let alive = format!("select count(*) from pg_stat_activity where pid = {pid}");
    until("the server stops the query", async || number(&observer, &alive).await == 0).await;
}

#[tokio::test]
async fn a_call_given_up_half_way_breaks_its_session() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    let call = ask(&session, "select pg_sleep(600)").now_or_never();
    assert!(call.is_none(), "it cannot have ended");
    assert!(session.is_broken());
    drop(session);
    assert_ne!(pid, own_pid(&*lease(&pool).await).await);
}

#[tokio::test]
async fn a_call_never_begun_breaks_nothing() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    drop(ask(&session, "select 1"));
    assert!(!session.is_broken());
}

#[tokio::test]
async fn a_session_that_ran_a_batch_is_not_reused() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    session.batch("begin; set search_path to nowhere").await.expect("fine");
    drop(session);
    let next = lease(&pool).await;
    assert_ne!(pid, own_pid(&next).await);
}

#[tokio::test]
async fn a_killed_session_says_why_and_is_replaced() {
    let pool = TestDatabase::get().pool().await;
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    number(&observer, &format!("select pg_terminate_backend({pid})::int::bigint")).await;
    until("the session is lost", async || {
        tokio::task::yield_now().await;
        session.is_broken()
    })
    .await;
    let error = ask(&session, "select 1").await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.full_text().contains("terminating connection"), "{}", error.full_text());
    drop(session);
    assert_ne!(pid, own_pid(&*lease(&pool).await).await);
}

#[tokio::test]
async fn a_session_that_died_while_idle_is_not_handed_out() {
    let pool = TestDatabase::get().pool().await;
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let pid = own_pid(&*lease(&pool).await).await;
    number(&observer, &format!("select pg_terminate_backend({pid}, 10000)::int::bigint")).await;
    let session = lease(&pool).await;
    // The news of the death may travel more slowly than the next caller; then the first call tells.
    if let Err(error) = ask(&session, "select 1").await {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        drop(session);
        let again = lease(&pool).await;
        assert_ne!(pid, own_pid(&again).await);
    }
}

#[tokio::test]
async fn calls_polled_together_travel_together() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let table = Table::new("n int").await;
    let pool =
        Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("through the proxy");
    let session = lease(&pool).await;
    let insert = table.insert();
    session.prepare_all(&[&insert]).await.expect("prepared");
    proxy.hold_replies();
    let numbers: Vec<i32> = (0..20).collect();
    let inserts = async {
        let params: Vec<_> = numbers.iter().map(|n| one(n)).collect();
        join_all(params.iter().map(|params| session.execute(&insert, params))).await
    };
    let check = async {
        until("all are written before one reply came", async || table.rows().await == 20).await;
        proxy.pass();
    };
    let (answers, ()) = tokio::join!(inserts, check);
    assert!(answers.into_iter().all(|answer| answer.is_ok_and(|rows| rows == 1)));
}

#[tokio::test]
async fn named_statements_are_kept_on_direct_sessions_only() {
    for (pooled, expected) in [(PoolerMode::No, 2), (PoolerMode::Yes, 0)] {
        let pool = pool(|config| config.pooled = pooled).await;
        let session = lease(&pool).await;
        for _ in 0..3 {
            session.query(&statement("select $1::int", &[Type::INT4]), &[&1_i32]).await.expect("an answer");
        }
        let count = number(&session, "select count(*) from pg_prepared_statements").await;
        assert_eq!(count, expected, "{pooled:?}");
    }
}

#[tokio::test]
async fn parameters_must_fit_their_statement() {
    let pool = TestDatabase::get().pool().await;
    let session = lease(&pool).await;
    let error = session.query(&statement("select $1", &[Type::INT4]), &[]).await.expect_err("one is missing");
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!session.is_broken());
}

#[tokio::test]
async fn a_session_outside_the_pool_has_a_name_of_its_own_and_hears_notifications() {
    let pool = TestDatabase::get().pool().await;
    let listener = pool.open_session(SessionPurpose::Listener).await.expect("a session");
    let name: String =
        ask(&listener, "select current_setting('application_name')").await.expect("a name")[0].get(0);
    assert!(name.ends_with("-listener"), "{name}");
    let channel = TestDatabase::get().schema();
    listener.batch(&format!("listen {channel}")).await.expect("listening");
    let mut heard = listener.take_notifications().expect("the first asks");
    assert!(listener.take_notifications().is_none(), "the second does not");
    let notify = statement("select pg_notify($1, $2)", &[Type::TEXT, Type::TEXT]);
    lease(&pool).await.execute(&notify, &[&channel, &"news"]).await.expect("sent");
    let news = heard.recv().await.expect("news");
    assert_eq!((news.channel(), news.payload()), (channel.as_str(), "news"));
    listener.close().await;
    assert!(heard.recv().await.is_none(), "the session's end is the end of its news");
}

#[tokio::test]
async fn errors_are_classed_by_their_code() {
    let pool = TestDatabase::get().pool().await;
    for (state, kind, lost) in [
        ("40001", ErrorKind::Conflict, false),
        ("40P01", ErrorKind::Conflict, false),
        ("55P03", ErrorKind::Conflict, false),
        ("23505", ErrorKind::Query, false),
        ("AB123", ErrorKind::Query, false),
        ("57014", ErrorKind::Timeout, true),
        ("26000", ErrorKind::Conflict, true),
        ("53300", ErrorKind::Capacity, true),
        ("08006", ErrorKind::Unavailable, true),
        ("57P01", ErrorKind::Unavailable, true),
        ("25006", ErrorKind::Unavailable, true),
    ] {
        let session = lease(&pool).await;
        let text =
            format!("do $$ begin raise exception 'too many clients' using errcode = '{state}'; end $$");
        let error = session.execute(&statement(&text, &[]), &[]).await.expect_err(state);
        assert_eq!((error.kind(), session.is_broken()), (kind, lost), "{state}");
    }
}
