//! Work that stays in its process: activities that a turn queues already leased, and turns that are settled without a claim,
//! together with the results that they use.

use holdfast_core::store::{
    ActivityKey, Fence, NodeKey,
    commit::{
        ActivityCommit, ActivityOutcome, CommitItem, CommitOutcome, HandedTask, SettledTurn, TurnCommit,
    },
};
use holdfast_replay::MessageBody;

use crate::store_harness::*;

/// An instance whose first turn took its one activity at once.
async fn taken(store: &Store, node: &NodeKey) -> (TurnCommit, SettledTurn) {
    store.start("order").await;
    let claimed = store.claim_one(node).await;
    let mut turn = scheduling(&claimed, node, 1);
    turn.activities[0].lease_ms = Some(LONG_MS);
    let settled = settled(store, turn.item()).await;
    (turn, settled)
}

async fn settled(store: &Store, item: CommitItem) -> SettledTurn {
    match store.commit_whole(&[item]).await.pop() {
        Some(CommitOutcome::Settled(settled)) => settled,
        other => panic!("{other:?}"),
    }
}

/// The turn that follows without a claim and uses the result of the first one's activity.
fn following(first: &TurnCommit, settled: &SettledTurn) -> TurnCommit {
    let source = first.activities[0].event;
    let mut turn = TurnCommit {
        fence: settled.next,
        events: Vec::new(),
        activities: Vec::new(),
        results: vec![source],
        ..first.clone()
    };
    turn.append("ActivityCompleted", Some(source));
    turn
}

/// The result of the activity that was taken.
fn result(turn: &TurnCommit, task: &HandedTask, rides: bool) -> CommitItem {
    CommitItem::Activity(ActivityCommit {
        key: ActivityKey { instance: turn.instance.clone(), execution: turn.execution, event: task.event },
        fence: task.fence,
        node: turn.node.clone(),
        outcome: ActivityOutcome::Ended(MessageBody::ActivityCompleted {
            execution: turn.execution,
            source: event_id(task.event),
            result: payload("1"),
        }),
        rowless: false,
        rides,
        heartbeat: None,
    })
}

#[tokio::test]
async fn a_queued_activity_is_leased_to_the_node_of_its_turn() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, settled) = taken(&store, &node).await;
    assert_eq!(settled.handed.len(), 1);
    assert_eq!(settled.handed[0].event, turn.activities[0].event);
    assert!(
        store
            .holds("(select owner = 'a' and deliveries = 1 and due_at > now() + interval '50 seconds' and leased_at is not null from @activity_queue)")
            .await
    );
    let other = store.node("b").await;
    assert!(store.claim_activities(&request(&other)).await.is_empty());
    assert_eq!(store.commit_one(result(&turn, &settled.handed[0], false)).await, done(true));
}

#[tokio::test]
async fn a_node_without_a_row_takes_nothing() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = scheduling(&claimed, &node, 1);
    turn.activities[0].lease_ms = Some(LONG_MS);
    store.run("delete from @node").await;
    assert!(settled(&store, turn.item()).await.handed.is_empty());
    let other = store.node("b").await;
    assert_eq!(store.claim_activity(&other).await.deliveries, 1);
}

#[tokio::test]
async fn a_result_and_the_turn_that_uses_it_are_one_transaction_without_a_message() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, settled) = taken(&store, &node).await;
    let next = following(&turn, &settled);
    let batch = [result(&turn, &settled.handed[0], true), next.item()];
    assert_eq!(store.commit(&batch).await, [done(false), done(false)]);
    assert!(store.holds("(select due_at = 'infinity' and owner is null from @turn_queue)").await);
    for table in ["inbox", "activity_queue"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
    assert_eq!(store.number("select count(*) from @history").await, 3);
    assert_eq!(store.commit(&batch).await, [done(false), done(false)], "run again after an unknown outcome");
    assert_eq!(store.number("select count(*) from @history").await, 3);
}

#[tokio::test]
async fn a_result_that_went_ahead_is_used_up_by_its_source_and_wakes_late() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, settled) = taken(&store, &node).await;
    assert_eq!(store.commit_one(result(&turn, &settled.handed[0], true)).await, done(false));
    assert_eq!(store.inbox("order").await.len(), 1);
    assert!(
        store.holds("(select due_at between now() and now() + interval '1 second' from @turn_queue)").await,
        "whoever has it in hand may be gone"
    );
    assert_eq!(store.commit_one(following(&turn, &settled).item()).await, done(false));
    assert!(store.inbox("order").await.is_empty());
    assert!(store.holds("(select due_at = 'infinity' from @turn_queue)").await);
}

#[tokio::test]
async fn a_turn_does_not_stand_without_each_of_its_results() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, settled) = taken(&store, &node).await;
    let stale = HandedTask { fence: Fence(settled.handed[0].fence.0 + 1), ..settled.handed[0] };
    let batch = [result(&turn, &stale, true), following(&turn, &settled).item()];
    assert_eq!(store.commit(&batch).await, [CommitOutcome::Fenced, CommitOutcome::Fenced]);
    assert_eq!(store.number("select count(*) from @history").await, 2);
    assert_eq!(store.number("select count(*) from @activity_queue").await, 1);
}

#[tokio::test]
async fn whoever_claims_the_instance_has_it_and_finds_the_result_in_the_inbox() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, settled) = taken(&store, &node).await;
    store.send("order", "go").await;
    let other = store.node("b").await;
    let claimed = store.claim_one(&other).await;
    let batch = [result(&turn, &settled.handed[0], true), following(&turn, &settled).item()];
    assert_eq!(store.commit(&batch).await, [done(false), CommitOutcome::Fenced]);
    let kinds: Vec<MessageBody> = store.inbox("order").await.into_iter().map(|(_, body)| body).collect();
    assert!(matches!(kinds[1], MessageBody::ActivityCompleted { .. }), "{kinds:?}");
    assert_eq!(store.commit_one(turn_of(&claimed, &other).item()).await, done(true));
}

#[tokio::test]
async fn leases_that_nobody_was_told_of_go_back_when_the_turn_is_run_again() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (turn, _) = taken(&store, &node).await;
    assert_eq!(store.commit_one(turn.item()).await, done(true));
    let task = store.claim_activity(&node).await;
    assert_eq!(task.deliveries, 1, "it was not started");
}

/// The turn that follows, takes another activity at once and asks for the lease again; its batch with the result it uses.
fn retaking(first: &TurnCommit, settled: &SettledTurn) -> (TurnCommit, [CommitItem; 2]) {
    let mut turn = following(first, settled);
    turn.append("ActivityScheduled", None);
    turn.retake_ms = Some(LONG_MS);
    let batch = [result(first, &settled.handed[0], true), turn.item()];
    (turn, batch)
}

const LEASED: &str = "(select owner = 'a' and owner_epoch is not null and deliveries = 1 and leased_at is not null \
                      and due_at > now() + interval '50 seconds' and not cut_off from @turn_queue)";

#[tokio::test]
async fn a_turn_that_asks_for_it_leases_its_instance_to_its_node_again() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (first, settled) = taken(&store, &node).await;
    let (turn, batch) = retaking(&first, &settled);
    let outcomes = store.commit_whole(&batch).await;
    let CommitOutcome::Settled(again) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert!(again.retaken && !again.more_work);
    assert!(store.holds(LEASED).await);
    assert_eq!(store.number("select fence from @turn_queue").await, again.next.0);
    let other = store.node("b").await;
    assert!(store.claim(&request(&other)).await.is_empty());
    let next =
        TurnCommit { fence: again.next, events: Vec::new(), results: Vec::new(), retake_ms: None, ..turn };
    assert_eq!(store.commit_one(next.item()).await, done(false));
    assert!(store.holds("(select owner is null and due_at = 'infinity' from @turn_queue)").await);
}

#[tokio::test]
async fn no_lease_is_taken_again_while_a_message_waits_or_without_a_node() {
    for prevented in ["message", "node"] {
        let store = Store::new().await;
        let node = store.node("a").await;
        let (first, settled) = taken(&store, &node).await;
        if prevented == "message" {
            store.send("order", "go").await;
        } else {
            store.run("delete from @node").await;
        }
        let (_, batch) = retaking(&first, &settled);
        let outcomes = store.commit_whole(&batch).await;
        let CommitOutcome::Settled(again) = &outcomes[1] else { panic!("{outcomes:?}") };
        assert_eq!((again.retaken, again.more_work), (false, prevented == "message"), "{prevented}");
        assert!(store.holds("(select owner is null from @turn_queue)").await, "{prevented}");
    }
}

#[tokio::test]
async fn a_lease_that_was_taken_again_and_nobody_heard_of_is_free_when_its_turn_is_run_again() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (first, settled) = taken(&store, &node).await;
    let (_, batch) = retaking(&first, &settled);
    store.commit_whole(&batch).await;
    assert!(store.holds(LEASED).await);
    assert_eq!(store.commit(&batch).await, [done(false), done(true)], "run again");
    let free = "(select owner is null and deliveries = 0 and due_at <= now() and cut_off from @turn_queue)";
    assert!(store.holds(free).await);
    assert!(store.claim_one(&node).await.cut_off);
}
