//! Settling, renewing and releasing leases (L4, L6, L7, L8).

use holdfast_core::store::{
    Fence, NodeKey, activity,
    commit::{ActivityOutcome, CommitOutcome},
    turn::{self, RenewRequest},
};

use crate::store_harness::*;

fn renewal(lock_timeout_ms: i64) -> RenewRequest {
    RenewRequest { lock_timeout_ms, backoff_base_ms: 1_000, backoff_max_ms: 60_000 }
}

async fn renew(store: &Store, node: &NodeKey, fences: &[Fence], ms: i64) -> Vec<Fence> {
    turn::renew(&store.session, &store.statements, node, fences, &renewal(ms)).await.expect("a renewal")
}

async fn release(store: &Store, node: &NodeKey, fences: &[Fence], delay_ms: i64) -> u64 {
    turn::release(&store.session, &store.statements, node, fences, delay_ms).await.expect("a release")
}

#[tokio::test]
async fn a_1_ms_lease_still_settles() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let mut ask = request(&node);
    ask.lock_timeout_ms = 1;
    let claimed = store.claim(&ask).await;
    let turn = scheduling(&claimed[0], &node, 1);
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    let task = store.claim_activities(&ask).await.pop().expect("a task");
    assert_eq!(store.commit_one(result_of(&task, &node)).await, done(true));
}

#[tokio::test]
async fn a_lapsed_lease_that_nobody_took_settles() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    store.run("update @turn_queue set due_at = now() - interval '1 hour'").await;
    assert_eq!(store.commit_one(scheduling(&claimed, &node, 1).item()).await, done(false));
    let task = store.claim_activity(&node).await;
    store.run("update @activity_queue set due_at = now() - interval '1 hour'").await;
    assert_eq!(store.commit_one(result_of(&task, &node)).await, done(true));
}

#[tokio::test]
async fn a_taken_over_lease_is_fenced() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("order").await;
    let first = store.claim_one(&node).await;
    store.run("update @turn_queue set due_at = now()").await;
    let second = store.claim_one(&other).await;
    assert_eq!(store.commit_one(scheduling(&first, &node, 1).item()).await, CommitOutcome::Fenced);
    for table in ["history", "activity_queue"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
    assert!(store.holds("(select status = 'Pending' from @instance)").await);
    assert_eq!(store.commit_one(scheduling(&second, &other, 1).item()).await, done(false));

    let task = store.claim_activity(&node).await;
    store.run("update @activity_queue set due_at = now()").await;
    let taken = store.claim_activity(&other).await;
    assert_eq!(store.commit_one(result_of(&task, &node)).await, CommitOutcome::Fenced);
    let retry = ActivityOutcome::Retry { delay_ms: 0, attempt: 2 };
    assert_eq!(store.commit_one(settling(&task, &node, retry)).await, CommitOutcome::Fenced);
    assert_eq!(store.commit_one(result_of(&taken, &other)).await, done(true));
}

#[tokio::test]
async fn a_fence_of_another_owner_settles_nothing() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.with_activities(&node, "order", 1).await;
    store.start("second").await;
    let claimed = store.claim_one(&node).await;
    let task = store.claim_activity(&node).await;
    assert_eq!(store.commit_one(turn_of(&claimed, &other).completed().item()).await, CommitOutcome::Fenced);
    assert_eq!(store.commit_one(result_of(&task, &other)).await, CommitOutcome::Fenced);
}

#[tokio::test]
async fn settling_ends_the_fence_and_frees_the_row() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    store.run("update @turn_queue set isolated = true").await;
    store.commit_one(scheduling(&claimed, &node, 1).item()).await;
    let fence = claimed.fence.0;
    assert!(
        store
            .holds(&format!(
                "(select fence > {fence} and last_fence = {fence} and owner is null and leased_at is null
                    and not isolated and deliveries = 0 and due_at = 'infinity' from @turn_queue)"
            ))
            .await
    );
}

#[tokio::test]
async fn deliveries_start_anew_only_with_progress() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 0).await;
    store.run("update @turn_queue set due_at = now(), deliveries = 1").await;
    let idle = store.claim_one(&node).await;
    assert_eq!(store.commit_one(turn_of(&idle, &node).item()).await, done(false));
    assert_eq!(store.number("select deliveries from @turn_queue").await, 2);

    store.run("update @turn_queue set deliveries = 1").await;
    store.send("order", "go").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    assert_eq!(store.number("select deliveries from @turn_queue").await, 0);
}

#[tokio::test]
async fn a_release_gives_the_delivery_back_and_ends_the_fence() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.start("second").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(release(&store, &node, &[claimed.fence], 0).await, 1);
    assert_eq!(release(&store, &node, &[claimed.fence], 0).await, 0, "a fence that matches nothing is done");
    assert_eq!(store.commit_one(turn_of(&claimed, &node).completed().item()).await, CommitOutcome::Fenced);
    let again = store.claim_one(&node).await;
    assert_eq!(again.deliveries, 1);
    assert!(again.fence > claimed.fence);
    assert_eq!(again.last_fence, claimed.last_fence, "no turn was settled");

    let task = store.claim_activity(&node).await;
    let released =
        activity::release(&store.session, &store.statements, &node, &[task.fence], 3_600_000).await;
    assert_eq!(released.expect("a release"), 1);
    assert!(store.claim_activities(&request(&node)).await.is_empty(), "delayed");
    assert!(store.holds("(select deliveries = 0 and owner is null from @activity_queue)").await);
}

#[tokio::test]
async fn another_nodes_lease_is_not_released() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(release(&store, &other, &[claimed.fence], 0).await, 0);
    assert_eq!(renew(&store, &other, &[claimed.fence], LONG_MS).await, []);
}

#[tokio::test]
async fn a_renewal_never_shortens() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let due = "select extract(epoch from due_at) * 1000000 from @turn_queue";
    let before = store.number(due).await;
    assert_eq!(renew(&store, &node, &[claimed.fence, Fence(-1)], 1).await, [claimed.fence]);
    assert_eq!(store.number(due).await, before);
    assert_eq!(renew(&store, &node, &[claimed.fence], 2 * LONG_MS).await, [claimed.fence]);
    assert!(store.number(due).await >= before + LONG_MS * 1_000);
}

#[tokio::test]
async fn a_lapsed_lease_is_renewed_with_its_backoff() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let task = store.claim_activity(&node).await;
    store.run("update @activity_queue set due_at = now() - interval '1 hour', deliveries = 4").await;
    let renewed =
        activity::renew(&store.session, &store.statements, &node, &[task.fence], &renewal(60_000)).await;
    assert_eq!(renewed.expect("a renewal"), [task.fence]);
    assert!(
        store
            .holds(
                "(select due_at - clock_timestamp() between interval '50 s' and interval '64 s'
                    from @activity_queue)"
            )
            .await
    );
}

#[tokio::test]
async fn a_renewal_needs_the_own_node_row_and_a_live_fence() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    store.run("delete from @node").await;
    assert_eq!(renew(&store, &node, &[claimed.fence], LONG_MS).await, []);
    assert_eq!(renew(&store, &node, &[], LONG_MS).await, []);
}

#[tokio::test]
async fn a_renewal_does_not_wait_for_a_locked_row() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let starts = [start("held"), start("free")];
    store.commit(&starts).await;
    let claimed = store.claim(&request(&node)).await;
    let other = store.another().await;
    other.run("begin; select from @turn_queue where instance = 'held' for update").await;
    let free: Vec<_> = claimed.iter().filter(|turn| turn.instance == "free").map(|turn| turn.fence).collect();
    assert_eq!(renew(&store, &node, &fences_of(&claimed), LONG_MS).await, free);
    other.run("rollback").await;
    assert_eq!(renew(&store, &node, &fences_of(&claimed), LONG_MS).await.len(), 2);
}

#[tokio::test]
async fn an_abandon_keeps_the_count_and_ends_the_fence() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&[start("stopped"), start("stuck")]).await;
    let claimed = store.claim(&request(&node)).await;
    let fence = |id: &str| claimed.iter().find(|turn| turn.instance == id).expect("claimed").fence;
    for (instance, at_once) in [("stopped", true), ("stuck", false)] {
        let fences = [fence(instance)];
        let gone = turn::abandon(&store.session, &store.statements, &node, &fences, at_once).await;
        assert_eq!(gone.expect("an abandon"), 1);
        let gone = turn::abandon(&store.session, &store.statements, &node, &fences, at_once).await;
        assert_eq!(gone.expect("an abandon"), 0, "a fence that matches nothing is done");
    }
    let again = store.claim_one(&node).await;
    assert_eq!((again.instance.as_str(), again.deliveries), ("stopped", 2));
    assert!(again.fence > fence("stopped"));
    assert!(
        store
            .holds(
                "(select owner is null and deliveries = 1 and due_at > now() + interval '30 s'
                    from @turn_queue where instance = 'stuck')"
            )
            .await,
        "due when its lease would have ended"
    );
    let late = claimed.iter().find(|turn| turn.instance == "stuck").expect("claimed");
    assert_eq!(store.commit_one(turn_of(late, &node).completed().item()).await, CommitOutcome::Fenced);
}
