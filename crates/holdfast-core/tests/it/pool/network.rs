//! What cannot be reached, who is full, and what errors never tell.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::{
    error::ErrorKind,
    pool::{CallerClass, MaxClients, Pool, PoolConfig},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{ask, lease, sessions_named, until};
use crate::support::{FaultProxy, TestDatabase};

fn quick() -> PoolConfig {
    PoolConfig { connect_timeout: Duration::from_millis(200), ..TestDatabase::get().pool_config() }
}

/// A loopback port where nobody answers the protocol: the listener is kept, nothing is accepted.
async fn silent_port() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

#[tokio::test]
async fn passwords_never_appear_in_errors() {
    let (listener, port) = silent_port().await;
    let mut texts = Vec::new();
    for url in [
        format!("postgres://user:geheim@127.0.0.1:{port}/d"),
        "postgres://user:geheim@127.0.0.1:1/d".to_owned(),
        "postgres://user:geheim@no-such-host.invalid/d".to_owned(),
        "postgres://user:geheim@%zz/d".to_owned(),
        "postgres://user:gehe%im@h/d".to_owned(),
        "postgres://user:x@geheim@h/d".to_owned(),
        "geheim".to_owned(),
        "postgres://h/d?password=geheim&sslmode=geheim".to_owned(),
        "postgres://h/d?passwort=geheim".to_owned(),
    ] {
        let error = Pool::connect(&url, quick()).await.expect_err(&url);
        texts.push(format!("{error} | {error:?} | {}", error.full_text()));
    }
    drop(listener);
    for text in texts {
        assert!(!text.contains("geheim"), "{text}");
    }
}

#[tokio::test]
async fn a_pool_shows_its_url_without_credentials() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let url = proxy.url().replacen("postgres@", "postgres:geheim@", 1);
    let pool = Pool::connect(&url, TestDatabase::get().pool_config()).await.expect("a pool");
    for text in [pool.redacted_url().to_owned(), pool.stats().url, format!("{pool:?}")] {
        assert!(!text.contains("geheim") && text.contains("127.0.0.1"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_unavailable_in_time() {
    let (_listener, port) = silent_port().await;
    let url = format!("postgres://u@127.0.0.1:{port}/d");
    let error = Pool::connect(&url, quick()).await.expect_err("silence");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("200 ms"), "{error}");
}

#[tokio::test]
async fn a_refused_connection_is_unavailable() {
    let (listener, port) = silent_port().await;
    drop(listener);
    let error =
        Pool::connect(&format!("postgres://u@127.0.0.1:{port}/d"), quick()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_silent_host_does_not_hide_the_next_one() {
    let (_listener, silent) = silent_port().await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let url = proxy.url().replacen('@', &format!("@127.0.0.1:{silent},"), 1);
    let pool = Pool::connect(&url, quick()).await.expect("the second host answers");
    ask(&*lease(&pool).await, "select 1").await.expect("an answer");
}

#[tokio::test]
async fn cp_08_a_read_only_server_is_passed_over_when_writes_are_needed() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let read_only = "options=-cdefault_transaction_read_only%3Don";
    let url = format!("{}?{read_only}&target_session_attrs=read-write", proxy.url());
    let error = Pool::connect(&url, quick()).await.expect_err("no writes there");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let pool = Pool::connect(&format!("{}?{read_only}", proxy.url()), quick()).await.expect("any will do");
    lease(&pool).await;
}

#[tokio::test]
async fn a_server_without_a_free_session_is_at_capacity() {
    let admin = TestDatabase::get().pool().await;
    let role = TestDatabase::get().schema();
    let create = format!("create role {role} login connection limit 0");
    lease(&admin).await.batch(&create).await.expect("a role");
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let start = proxy.url().find("://").expect("a URL") + 3;
    let end = proxy.url().find('@').expect("a user");
    let url = format!("{}{role}{}", &proxy.url()[..start], &proxy.url()[end..]);
    let error = Pool::connect(&url, quick()).await.expect_err("full");
    assert_eq!(error.kind(), ErrorKind::Capacity);
    lease(&admin).await.batch(&format!("drop role {role}")).await.expect("gone");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_the_urls_fault() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let url = proxy.url().replace("/postgres", "/no_such_database");
    let error = Pool::connect(&url, quick()).await.expect_err("no such database");
    assert_eq!(error.kind(), ErrorKind::Url);
    assert!(error.full_text().contains("no_such_database"), "{}", error.full_text());
}

#[tokio::test]
async fn a_failed_connect_gives_its_place_back() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let config = PoolConfig { max_clients: MaxClients::Given(1), ..quick() };
    let pool = Pool::connect(proxy.url(), config).await.expect("a pool");
    proxy.cut();
    for _ in 0..3 {
        if let Ok(session) = pool.acquire(CallerClass::Ordinary).await {
            ask(&session, "select 1").await.expect_err("cut");
        }
    }
    assert!(pool.stats().connection_errors > 0);
    proxy.pass();
    ask(&*lease(&pool).await, "select 1").await.expect("an answer");
}

#[tokio::test]
async fn slow_answers_are_answers() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = Pool::connect(proxy.url(), TestDatabase::get().pool_config()).await.expect("a pool");
    let session = lease(&pool).await;
    proxy.delay_replies(Duration::from_millis(20));
    ask(&session, "select 1").await.expect("late, but an answer");
}

/// A pool of one session through a proxy, which has answered once.
async fn through(proxy: &FaultProxy, limit: Duration) -> Arc<Pool> {
    let config = PoolConfig {
        max_clients: MaxClients::Given(1),
        query_timeout: limit,
        connect_timeout: Duration::from_secs(2),
        retry_attempts: 0,
        ..TestDatabase::get().pool_config()
    };
    let pool = Pool::connect(proxy.url(), config).await.expect("a pool");
    ask(&*lease(&pool).await, "select 1").await.expect("an answer");
    pool
}

#[tokio::test]
async fn proxy_a_reset_connection_is_lost_and_replaced() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = through(&proxy, Duration::from_secs(5)).await;
    let session = lease(&pool).await;
    let mut asking = Box::pin(ask(&session, "select pg_sleep(600)"));
    assert!(futures_util::FutureExt::now_or_never(&mut asking).is_none());
    proxy.reset();
    assert_eq!(asking.as_mut().await.expect_err("reset").kind(), ErrorKind::Unavailable);
    drop(asking);
    drop(session);
    proxy.pass();
    ask(&*lease(&pool).await, "select 1").await.expect("on another connection");
    assert_eq!(pool.stats().total, 1);
}

#[tokio::test]
async fn proxy_a_half_closed_connection_is_lost_and_replaced() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = through(&proxy, Duration::from_secs(5)).await;
    let session = lease(&pool).await;
    proxy.half_close();
    assert_eq!(
        ask(&session, "select 1").await.expect_err("nothing comes back").kind(),
        ErrorKind::Unavailable
    );
    drop(session);
    proxy.pass();
    ask(&*lease(&pool).await, "select 1").await.expect("on another connection");
    assert_eq!(pool.stats().total, 1);
}

#[tokio::test]
async fn proxy_an_answer_byte_by_byte_is_one_in_time_or_none() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = through(&proxy, Duration::from_millis(700)).await;
    let session = lease(&pool).await;
    proxy.trickle(Duration::from_millis(1));
    ask(&session.with_limit(Duration::from_secs(20)), "select 1").await.expect("slow, but in time");
    proxy.trickle(Duration::from_secs(1));
    assert_eq!(ask(&session, "select 1").await.expect_err("too slow").kind(), ErrorKind::Timeout);
    drop(session);
    proxy.pass();
    ask(&*lease(&pool).await, "select 1").await.expect("on another connection");
}

#[tokio::test]
async fn cp_10_a_query_into_a_black_hole_ends_at_its_limit_and_takes_its_connection_along() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let pool = through(&proxy, Duration::from_millis(300)).await;
    let session = lease(&pool).await;
    proxy.black_hole();
    assert_eq!(ask(&session, "select 1").await.expect_err("no answer").kind(), ErrorKind::Timeout);
    assert!(session.is_broken());
    drop(session);
    assert_eq!(pool.stats().total, 0);
    proxy.pass();
    ask(&*lease(&pool).await, "select 1").await.expect("on another connection");
}

#[tokio::test]
async fn cp_01_connects_that_run_out_of_time_leave_nothing_behind() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let observer = TestDatabase::get().pool().await;
    let observer = lease(&observer).await;
    let config = PoolConfig {
        connect_timeout: Duration::from_millis(50),
        breaker_threshold: 1_000,
        ..TestDatabase::get().pool_config()
    };
    let name = config.application_name.clone();
    proxy.hold_replies();
    let pool = Pool::connect(proxy.url(), config.clone()).await.expect_err("no answer in time");
    assert_eq!(pool.kind(), ErrorKind::Unavailable);
    proxy.pass();
    let pool = Pool::connect(proxy.url(), PoolConfig { connect_timeout: Duration::from_secs(9), ..config })
        .await
        .expect("a pool");
    let held = lease(&pool).await;
    proxy.hold_replies();
    for _ in 0..50 {
        let opening = tokio::time::timeout(Duration::from_millis(20), pool.acquire(CallerClass::Ordinary));
        assert!(opening.await.is_err(), "no answer in time");
    }
    drop(held);
    proxy.pass();
    until("only the session of the pool is left", async || sessions_named(&observer, &name).await <= 1).await;
    assert!(pool.stats().total <= 1, "{:?}", pool.stats());
    ask(&*lease(&pool).await, "select 1").await.expect("an answer");
}

/// A server that answers every start-up with this refusal.
async fn refusing_server(state: &str, message: &str) -> (u16, tokio::task::JoinHandle<()>) {
    let mut answer = b"E\0\0\0\0".to_vec();
    for (field, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', state), (b'M', message)] {
        answer.push(field);
        answer.extend_from_slice(value.as_bytes());
        answer.push(0);
    }
    answer.push(0);
    let length = u32::try_from(answer.len() - 1).expect("short").to_be_bytes();
    answer[1..5].copy_from_slice(&length);
    let (listener, port) = silent_port().await;
    let serving = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let _ = client.read(&mut [0; 1024]).await;
            let _ = client.write_all(&answer).await;
        }
    });
    (port, serving)
}

#[tokio::test]
async fn a_refused_start_is_classed_by_code_then_by_text() {
    for (state, message, kind) in [
        ("53300", "sorry", ErrorKind::Capacity),
        ("53300", "too many connections for role", ErrorKind::Capacity),
        ("08P01", "no more connections allowed (max_client_conn)", ErrorKind::Capacity),
        ("XX000", "Remaining Connection Slots are reserved", ErrorKind::Capacity),
        ("XX000", "MaxClients: too many clients already", ErrorKind::Capacity),
        ("57P03", "the database system is starting up", ErrorKind::Unavailable),
        ("08006", "failed to connect to upstream", ErrorKind::Unavailable),
        ("XX000", "failed to connect to upstream", ErrorKind::Unavailable),
        ("28P01", "password authentication failed", ErrorKind::Url),
        ("3D000", "no such database", ErrorKind::Url),
    ] {
        let (port, serving) = refusing_server(state, message).await;
        let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable");
        let error = Pool::connect(&url, quick()).await.expect_err(message);
        assert_eq!(error.kind(), kind, "{state} {message}");
        assert_eq!(error.retry_hint().is_some(), kind == ErrorKind::Capacity);
        serving.abort();
    }
}
