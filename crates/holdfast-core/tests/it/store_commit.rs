//! Commits: what a turn writes, batches, idempotence.

use holdfast_core::store::commit::CommitOutcome;

use crate::store_harness::*;

#[tokio::test]
async fn every_statement_is_understood_by_the_server() {
    let store = Store::new().await;
    let all = store.statements.all();
    store.session.prepare_all(&all).await.expect("every statement prepares");
    for statement in all {
        assert!(!statement.text.contains("/*"), "{}: a template is left", statement.name);
    }
}

#[tokio::test]
async fn an_instance_runs_from_start_to_end() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 2).await;
    assert!(store.holds("(select status = 'Running' and version = '1.0.0' from @instance)").await);
    assert!(
        store
            .holds("(select due_at = 'infinity' and owner is null and history_len = 3 from @turn_queue)")
            .await
    );

    let tasks = store.claim_activities(&request(&node)).await;
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].orchestration_name.as_deref(), Some(NAME));
    let results: Vec<_> = tasks.iter().map(|task| result_of(task, &node)).collect();
    assert_eq!(store.commit(&results).await, [done(true), done(true)]);

    let claimed = store.claim_one(&node).await;
    let messages = store.inbox("order").await;
    assert_eq!(messages.len(), 2);
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = messages.iter().map(|(id, _)| *id).collect();
    turn.append("ActivityCompleted", Some(2));
    turn.append("ActivityCompleted", Some(3));
    assert_eq!(store.commit_one(turn.completed().item()).await, done(false));
    assert!(
        store
            .holds("(select status = 'Completed' and output = '2.0' and history_len = 6 from @instance)")
            .await
    );
    assert_eq!(store.number("select count(*) from @turn_queue").await, 0);
    assert_eq!(store.number("select count(*) from @inbox").await, 0);
    assert_eq!(store.number("select count(*) from @history").await, 6);
    assert_eq!(store.send("order", "late").await, CommitOutcome::AlreadyEnded);
}
