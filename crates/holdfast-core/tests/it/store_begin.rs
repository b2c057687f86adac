//! Commits in one flight, starts whose first turn is leased at once, and ends that are told with their commit.

use holdfast_core::store::{
    Fence, NodeKey,
    commit::{CommitItem, CommitOutcome, Start, StartLease},
    turn::ClaimedTurn,
};

use crate::{
    store_harness::{Store, TurnWords, event, request, result_of, start, start_of, turn_of},
    support::{FaultProxy, TestDatabase},
};

fn leased(instance: &str, node: &NodeKey) -> CommitItem {
    let lease = Some(StartLease { node: node.clone(), lease_ms: 5_000 });
    CommitItem::Start(Start { lease, ..start_of(instance) })
}

fn two(claimed: Vec<ClaimedTurn>) -> [ClaimedTurn; 2] {
    claimed.try_into().expect("two turns are due")
}

fn fence_of(outcome: &CommitOutcome) -> Fence {
    match outcome {
        CommitOutcome::Begun { fence, .. } => *fence,
        other => panic!("not begun: {other:?}"),
    }
}

#[tokio::test]
async fn a_batch_of_which_an_item_does_not_stand_is_written_without_it() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let task = store.claim_activity(&node).await;
    store.start("kept").await;
    store.start("lost").await;
    let [claimed, taken] = two(store.claim(&request(&node)).await);
    store
        .run(&format!(
            "update @turn_queue set fence = nextval('@fence_seq') where instance = '{}'",
            taken.instance
        ))
        .await;
    let batch = [
        turn_of(&taken, &node).completed().item(),
        turn_of(&claimed, &node).completed().item(),
        result_of(&task, &node),
    ];
    let outcomes = store.commit_first(&batch).await;
    assert_eq!(outcomes[0], CommitOutcome::Fenced);
    assert!(
        matches!(outcomes[1..], [CommitOutcome::Done { .. }, CommitOutcome::Done { .. }]),
        "{outcomes:?}"
    );
    assert!(
        !store
            .holds(&format!("exists (select from @turn_queue where instance = '{}')", claimed.instance))
            .await
    );
    assert_eq!(store.inbox("order").await.len(), 1);
    let again = store.commit_first(&[result_of(&task, &node)]).await;
    assert_eq!(again, [CommitOutcome::Fenced], "a task that is gone");
}

#[tokio::test]
async fn a_completion_gives_way_to_a_request_to_cancel_also_in_one_flight() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    store.run("insert into @inbox (instance, kind, data) values ('order', 'CancelRequested', '{}')").await;
    let outcomes = store.commit_first(&[turn_of(&claimed, &node).completed().item()]).await;
    assert_eq!(outcomes, [CommitOutcome::Yielded]);
}

/// Two turns that complete, of which the first is to give way to a request to cancel.
async fn one_yields(store: &Store, node: &NodeKey, names: [&str; 2]) -> [CommitItem; 2] {
    store.start(names[0]).await;
    let yields = store.claim_one(node).await;
    store.start(names[1]).await;
    let other = store.claim_one(node).await;
    let cancel = format!(
        "insert into @inbox (instance, kind, data) values ('{}', 'CancelRequested', '{{}}')",
        names[0]
    );
    store.run(&cancel).await;
    [yields, other].map(|claimed| turn_of(&claimed, node).completed().item())
}

#[tokio::test]
async fn no_transaction_is_open_while_an_answer_is_on_its_way_and_what_changes_then_is_found_out_again() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let far = store.through(proxy.url()).await;
    let done = CommitOutcome::Done { more_work: false };
    let outcomes = far.commit(&one_yields(&store, &node, ["warm", "up"]).await).await;
    assert_eq!(outcomes, [CommitOutcome::Yielded, done]);
    store.run("update @turn_queue set due_at = 'infinity'").await;

    let batch = one_yields(&store, &node, ["yields", "taken"]).await;
    proxy.hold_replies();
    let meanwhile = async {
        while !store.holds("(select owner is null from @turn_queue where instance = 'yields')").await {
            tokio::task::yield_now().await;
        }
        // Nobody waits for a row of the batch: neither is locked.
        store.run("update @turn_queue set fence = nextval('@fence_seq') where instance = 'taken'").await;
        proxy.pass();
    };
    let (outcomes, ()) = tokio::join!(far.commit(&batch), meanwhile);
    assert_eq!(outcomes, [CommitOutcome::Yielded, CommitOutcome::Fenced]);
}

/// The first run of a batch whose row another session has locked, and changed by this when it lets go.
async fn commit_behind(store: &Store, batch: &[CommitItem], change: &str) -> Vec<CommitOutcome> {
    let other = store.another().await;
    let lock = "begin; select from @turn_queue where instance = 'order' for no key update";
    other.run(&format!("{lock}; {change}")).await;
    let waits =
        "exists (select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid)))";
    let let_go = async {
        while !other.holds(waits).await {
            tokio::task::yield_now().await;
        }
        other.run("commit").await;
    };
    tokio::join!(store.commit_first(batch), let_go).0
}

#[tokio::test]
async fn a_completion_gives_way_to_a_request_to_cancel_that_comes_while_it_waits_for_the_row() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let batch = [turn_of(&claimed, &node).completed().item()];
    let cancel = "insert into @inbox (instance, kind, data) values ('order', 'CancelRequested', '{}')";
    assert_eq!(commit_behind(&store, &batch, cancel).await, [CommitOutcome::Yielded]);
}

#[tokio::test]
async fn a_lease_that_goes_while_a_commit_waits_for_the_row_does_not_stand() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let batch = [turn_of(&claimed, &node).completed().item()];
    let taken = "update @turn_queue set fence = nextval('@fence_seq')";
    assert_eq!(commit_behind(&store, &batch, taken).await, [CommitOutcome::Fenced]);
}

#[tokio::test]
async fn of_two_turns_of_an_instance_in_a_batch_only_the_one_that_stands_is_written() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.send("order", "go").await;
    let late = store.claim_one(&node).await;
    let mut late = turn_of(&late, &node);
    late.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
    late.events.clear();
    late.history_len = 0;
    store.run("update @turn_queue set owner = null, owner_epoch = null, leased_at = null, due_at = clock_timestamp()").await;
    let claimed = store.claim_one(&node).await;
    let batch = [late.item(), turn_of(&claimed, &node).item()];
    let outcomes = store.commit_first(&batch).await;
    assert_eq!(outcomes[0], CommitOutcome::Fenced);
    assert!(matches!(outcomes[1], CommitOutcome::Settled(_)), "{outcomes:?}");
    assert_eq!(store.inbox("order").await.len(), 1, "a message that the turn that stands did not use up");
}

#[tokio::test]
async fn a_start_begins_at_once_where_its_node_is_there_and_no_message_waits() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let gone = NodeKey { epoch: node.epoch + 1_000, ..node.clone() };
    store.commit_first(&[CommitItem::Send(event("early", "go"))]).await;
    let outcomes = store.commit_first(&[leased("early", &node), leased("order", &node)]).await;
    assert_eq!(outcomes[0], CommitOutcome::Created, "its message is read by a claim");
    let fence = fence_of(&outcomes[1]);
    assert!(
        store
            .holds("(select owner = 'a' and deliveries = 1 and due_at > clock_timestamp() from @turn_queue where instance = 'order')")
            .await
    );
    assert_eq!(store.number("select fence from @turn_queue where instance = 'order'").await, fence.0);
    assert_eq!(store.commit_first(&[leased("other", &gone)]).await, [CommitOutcome::Created]);
    let twice = store.commit_first(&[leased("twice", &node), leased("twice", &node)]).await;
    assert_eq!(
        twice,
        [CommitOutcome::Created, CommitOutcome::Exists { same: true }],
        "neither knows who begins it"
    );
    let claimed = store.claim(&request(&node)).await;
    let mut claimed: Vec<String> = claimed.into_iter().map(|turn| turn.instance).collect();
    claimed.sort();
    assert_eq!(claimed, ["early", "other", "twice"]);
}

#[tokio::test]
async fn a_start_that_is_run_again_gives_back_the_lease_that_nobody_heard_of() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let fence = fence_of(&store.commit_first(&[leased("order", &node)]).await[0]);
    assert_eq!(store.commit(&[leased("order", &node)]).await, [CommitOutcome::Exists { same: true }]);
    let claimed = store.claim_one(&node).await;
    assert_ne!(claimed.fence, fence);
    assert_eq!(claimed.deliveries, 2, "nobody can tell whether it ran");
    assert_eq!(store.commit(&[leased("order", &node)]).await, [CommitOutcome::Exists { same: true }]);
    assert!(store.holds("(select owner = 'a' from @turn_queue)").await, "a claim is not a start's");
}

#[tokio::test]
async fn an_end_that_is_awaited_is_told_with_its_commit() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit_first(&[start("told"), start("untold")]).await;
    let mut batch = Vec::new();
    for claimed in store.claim(&request(&node)).await {
        let mut turn = turn_of(&claimed, &node).completed();
        turn.awaited = claimed.instance == "told";
        batch.push(turn.item());
    }
    let outcomes = store.commit_first(&batch).await;
    let told = outcomes.iter().filter_map(|outcome| match outcome {
        CommitOutcome::Ended(row) => Some((row.instance.as_str(), row.status.as_str(), row.output.is_some())),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [("told", "Completed", true)]);
}
