//! Deletions that meet who runs an ended instance again, and starts that meet a deletion.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    manage::Manager,
    provider::Provider,
    store::commit::{CommitOutcome, Start},
};
use holdfast_replay::ParentLink;

use crate::{store_harness::*, support::TestDatabase};

const LEFT: &str =
    "(select count(*) from @turn_queue) + (select count(*) from @history) + (select count(*) from @inbox)";

/// A manager of this schema.
async fn manager(store: &Store) -> (Manager, Arc<Provider>) {
    let database = TestDatabase::get();
    let connected = Provider::connect(database.url(), &store.schema, database.pool_config()).await;
    let provider = connected.expect("connect");
    (Manager::new(Arc::clone(&provider)), provider)
}

async fn until_somebody_waits_for(store: &Store, other: &Store) {
    let pid = other.number("select pg_backend_pid()").await;
    let waits = format!("exists (select from pg_stat_activity where {pid} = any (pg_blocking_pids(pid)))");
    store.wait_for(&waits).await;
}

#[tokio::test]
async fn a_deletion_that_meets_a_retry_leaves_no_turn_row() {
    for force in [true, false] {
        let store = Store::new().await;
        store.start("order").await;
        store
            .run(
                "delete from @turn_queue;
                 update @instance set status = 'Failed', error = '{}', error_code = 'POISONED', finished_at = now()",
            )
            .await;
        let (manager, provider) = manager(&store).await;
        let retrying = store.another().await;
        retrying
            .run(
                "begin;
                 select from @instance for update;
                 insert into @turn_queue (instance, name, due_at) values ('order', 'checkout', now());
                 insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data) values ('order', 1, 1, 1, 1, 'OrchestrationRetried', '{}');
                 update @instance set status = 'Running', error = null, error_code = null, finished_at = null",
            )
            .await;
        let deletion = tokio::spawn(async move { manager.delete("order", force).await });
        until_somebody_waits_for(&store, &retrying).await;
        retrying.run("commit").await;
        let deleted = deletion.await.expect("it ran");
        assert_eq!(deleted.is_ok(), force, "{deleted:?}");
        let left = store.number(&format!("select {LEFT}")).await;
        assert_eq!(left, if force { 0 } else { 2 }, "all of it or nothing");
        provider.close(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn a_child_whose_id_is_deleted_while_its_parent_commits_is_started() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("parent").await;
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    let parent = ParentLink { instance: "parent".to_owned(), execution: 1, event: event_id(2) };
    turn.starts = vec![Start { parent: Some(parent), ..start_of("kid") }];
    // An ended instance has the id when the commit begins.
    store
        .run("insert into @instance (instance, name, input, status, finished_at) values ('kid', 'checkout', '1', 'Completed', now())")
        .await;
    let blocking = store.another().await;
    blocking.run("begin; select from @turn_queue where instance = 'parent' for update").await;
    let committing = store.another().await;
    let commit = tokio::spawn(async move { committing.commit_one(turn.item()).await });
    until_somebody_waits_for(&store, &blocking).await;
    store.run("delete from @instance where instance = 'kid'").await;
    blocking.run("commit").await;
    assert_eq!(commit.await.expect("it ran"), CommitOutcome::Done { more_work: false });
    assert_eq!(store.inbox("parent").await, [], "it is not told that the id is taken");
    assert_eq!(store.number("select count(*) from @turn_queue where instance = 'kid' and name is not null and due_at <= now()").await, 1);
    assert_eq!(
        store
            .number("select count(*) from @instance where instance = 'kid' and parent_instance = 'parent'")
            .await,
        1
    );
}
