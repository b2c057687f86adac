//! Migrations: many processes at once, one killed half-way, a newer schema, a server without rights to give.

use std::sync::Arc;

use holdfast_core::{
    error::ErrorKind,
    store::{Statements, migrate},
};

use crate::store_harness::*;

async fn version(store: &Store) -> i32 {
    migrate::version(&store.session, &store.statements).await.expect("a version")
}

async fn run(store: &Store) -> Result<(), holdfast_core::error::Error> {
    migrate::run(&store.session, &store.statements).await
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let store = Store::unmigrated().await;
    assert_eq!(version(&store).await, 0);
    run(&store).await.expect("the schema is made");
    assert_eq!(version(&store).await, migrate::known_version());
    let tables =
        "select count(*) from pg_class where relnamespace = (select oid from pg_namespace where nspname = '";
    let tables = format!("{tables}{}')", store.schema);
    let before = store.number(&tables).await;
    run(&store).await.expect("nothing to do");
    assert_eq!(store.number(&tables).await, before);
    assert_eq!(store.number("select count(*) from @migration").await, i64::from(migrate::known_version()));
}

#[tokio::test]
async fn any_schema_name_works() {
    let mut store = Store::unmigrated().await;
    let plain = store.schema.clone();
    store.schema = format!("{plain} \"it's\" MiXed");
    store.statements = Arc::new(Statements::new(&store.schema));
    run(&store).await.expect("the schema is made");
    store.session.prepare_all(&store.statements.all()).await.expect("every statement prepares");
    let node = store.node("a").await;
    store.schema = store.schema.replace('"', "\"\"");
    store.with_activities(&node, "order", 1).await;
    store.claim_activity(&node).await;
}

#[tokio::test]
async fn sixty_four_processes_migrate_at_once() {
    let store = Store::unmigrated().await;
    let mut others = Vec::new();
    for _ in 0..64 {
        others.push(store.another().await);
    }
    for outcome in futures_util::future::join_all(others.iter().map(run)).await {
        outcome.expect("every process starts");
    }
    assert_eq!(store.number("select count(*) from @migration").await, i64::from(migrate::known_version()));
}

#[tokio::test]
async fn a_process_killed_half_way_leaves_nothing_behind() {
    let store = Store::unmigrated().await;
    // The migration's last command waits for this lock, so that the process dies with all tables made.
    store.run(&format!("create schema \"{}\"", store.schema)).await;
    store.run("create table @migration (version int primary key, name text not null, applied_at timestamptz default now())").await;
    let blocker = store.another().await;
    blocker.run("begin; lock table @migration in share mode").await;
    let victim = store.another().await;
    let migrating = tokio::spawn(async move { run(&victim).await });
    let waiting = format!(
        "select coalesce((select pid from pg_locks where not granted and relation = '\"{}\".migration'::regclass), 0)",
        store.schema
    );
    let pid = loop {
        let pid = store.rows(&waiting).await[0].get::<_, i32>(0);
        if pid != 0 {
            break pid;
        }
        tokio::task::yield_now().await;
    };
    let second = store.another().await;
    let patient = tokio::spawn(async move { run(&second).await });
    store.run(&format!("select pg_terminate_backend({pid})")).await;
    let error = migrating.await.expect("no panic").expect_err("its session was ended");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    blocker.run("commit").await;
    patient.await.expect("no panic").expect("another process takes over");
    assert_eq!(version(&store).await, migrate::known_version());
    assert_eq!(store.number("select count(*) from @turn_queue").await, 0);
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_a_clear_text() {
    let store = Store::new().await;
    store.run("insert into @migration (version, name) values (1000, 'from the future')").await;
    let error = run(&store).await.expect_err("newer than known");
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("version 1000") && error.to_string().contains("newer"), "{error}");
}

#[tokio::test]
async fn create_on_the_one_schema_is_enough() {
    let store = Store::unmigrated().await;
    let schema = store.schema.clone();
    store.run(&format!("create schema \"{schema}\"; create role \"{schema}\"; grant usage, create on schema \"{schema}\" to \"{schema}\"")).await;
    store.run(&format!("set role \"{schema}\"")).await;
    run(&store).await.expect("the schema is filled");
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.run("reset role").await;
}

#[tokio::test]
async fn a_missing_right_is_told() {
    let store = Store::unmigrated().await;
    let schema = store.schema.clone();
    store.run(&format!("create role \"{schema}\"; set role \"{schema}\"")).await;
    let error = run(&store).await.expect_err("the schema is missing and may not be made");
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.full_text().contains("permission denied"), "{}", error.full_text());
    store.run("reset role").await;
}
