//! Turns that keep their lease, the activities that run under it without a row, and what becomes of them when it is cut off.
//! length: one rule of the commit and of the leases after the other, each with its again-run.

use std::time::Duration;

use holdfast_core::store::{
    ActivityKey, Fence, NodeKey,
    commit::{
        ActivityCommit, ActivityOutcome, BelatedActivity, CommitItem, CommitOutcome, Park, SettledTurn,
        Start, StartLease, TurnCommit,
    },
    coverage, manage, node,
    turn::{self, ClaimRequest, ClaimedTurn},
};
use holdfast_replay::MessageBody;

use crate::store_harness::*;

/// What a claimed turn writes that keeps its lease: one more activity is scheduled, without a row.
fn keeping(claimed: &ClaimedTurn, node: &NodeKey) -> TurnCommit {
    let mut turn = scheduling(claimed, node, 1);
    turn.activities.clear();
    turn.keeps = true;
    turn
}

/// The turn behind it under the same lease, without events.
fn behind(turn: &TurnCommit) -> TurnCommit {
    TurnCommit { events: Vec::new(), results: Vec::new(), keeps: false, ..turn.clone() }
}

/// The same, with the result of the last event of `turn`.
fn using(turn: &TurnCommit) -> TurnCommit {
    let source = turn.history_len;
    let mut next = TurnCommit { results: vec![source], ..behind(turn) };
    next.append("ActivityCompleted", Some(source));
    next
}

/// The same, which schedules one more and keeps the lease.
fn going_on(turn: &TurnCommit) -> TurnCommit {
    let mut next = using(turn);
    next.append("ActivityScheduled", None);
    next.keeps = true;
    next
}

/// The result of the last event of a turn, under its lease.
fn result(turn: &TurnCommit, rides: bool) -> CommitItem {
    let (instance, execution, event) = (turn.instance.clone(), turn.execution, turn.history_len);
    CommitItem::Activity(ActivityCommit {
        key: ActivityKey { instance, execution, event },
        fence: turn.fence,
        node: turn.node.clone(),
        outcome: ActivityOutcome::Ended(MessageBody::ActivityCompleted {
            execution,
            source: event_id(event),
            result: payload("1"),
        }),
        rowless: true,
        rides,
        heartbeat: None,
    })
}

/// The row that the last event of a turn gets only now.
fn belated(turn: &TurnCommit, lease_ms: Option<i64>) -> BelatedActivity {
    let mut scheduled = turn.clone();
    scheduled.schedule();
    let mut task = scheduled.activities.pop().expect("it was scheduled");
    (task.event, task.lease_ms) = (turn.history_len, lease_ms);
    BelatedActivity { task, attempt: 1, deliveries: 0, delay_ms: 0, heartbeat: None, isolated: false }
}

/// The turn that ends the lease of `turn`, and gives its activity a row.
fn settling_with(turn: &TurnCommit, belated: BelatedActivity) -> TurnCommit {
    TurnCommit { belated: vec![belated], ..behind(turn) }
}

/// A node, and an instance whose first turn it keeps.
async fn kept(store: &Store) -> (NodeKey, TurnCommit) {
    let node = store.node("a").await;
    store.start("order").await;
    let turn = keeping(&store.claim_one(&node).await, &node);
    assert_eq!(store.commit_first(&[turn.item()]).await, [CommitOutcome::Kept]);
    (node, turn)
}

/// The turn row as it lies in the table, and what is in it.
const ROW: &str = "select ctid::text || xmin::text || row(q.*)::text from @turn_queue q";

async fn row(store: &Store) -> String {
    store.rows(ROW).await[0].get(0)
}

async fn is_cut_off(store: &Store) -> bool {
    store.holds("(select cut_off from @turn_queue)").await
}

async fn count(store: &Store, table: &str) -> i64 {
    store.number(&format!("select count(*) from @{table}")).await
}

async fn settled(store: &Store, turn: &TurnCommit) -> SettledTurn {
    match store.commit_first(&[turn.item()]).await.pop() {
        Some(CommitOutcome::Settled(settled)) => settled,
        other => panic!("{other:?}"),
    }
}

/// The owner of every lease dies and is found out.
async fn recover(store: &Store) {
    store.run("delete from @node").await;
    node::sweep(&store.session, &store.statements).await.expect("a sweep");
}

fn alone(node: &NodeKey) -> ClaimRequest<'_> {
    ClaimRequest { isolated: true, ..request(node) }
}

async fn sound(store: &Store) -> bool {
    let found = manage::audit(&store.session, &store.statements).await.expect("an audit");
    found.is_empty()
}

#[tokio::test]
async fn a_turn_that_keeps_its_lease_leaves_its_row_alone() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let turn = keeping(&store.claim_one(&node).await, &node);
    let before = row(&store).await;
    assert_eq!(store.commit_first(&[turn.item()]).await, [CommitOutcome::Kept]);
    assert_eq!(row(&store).await, before);
    assert_eq!((count(&store, "history").await, count(&store, "activity_queue").await), (2, 0));
    assert!(store.holds("(select status = 'Running' and version is not null and replay_version is not null from @instance)").await);
    assert!(sound(&store).await, "its history is longer than the row says, and its activity has no row");
}

#[tokio::test]
async fn what_a_kept_turn_writes_beside_is_written() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.send("order", "go").await;
    let message = store.inbox("order").await[0].0;
    let mut turn = scheduling(&store.claim_one(&node).await, &node, 1);
    turn.activities[0].lease_ms = Some(LONG_MS);
    (turn.keeps, turn.consumed) = (true, vec![message]);
    turn.starts.push(start_of("child"));
    turn.sends.push(event("child", "hello"));
    let before = row(&store).await;
    assert_eq!(store.commit_first(&[turn.item()]).await, [CommitOutcome::Kept]);
    let rows = store.rows(&format!("{ROW} where instance = 'order'")).await;
    assert_eq!(rows[0].get::<_, String>(0), before);
    assert!(store.inbox("order").await.is_empty());
    assert_eq!(store.inbox("child").await.len(), 1);
    let task = store.claim_activity(&node).await;
    assert_eq!(task.deliveries, 1, "nobody would be told of a lease");
}

#[tokio::test]
async fn a_chain_of_kept_turns_ends_with_the_instance() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let before = row(&store).await;
    let second = going_on(&first);
    let outcomes = store.commit_first(&[result(&first, true), second.item()]).await;
    assert_eq!(outcomes, [done(false), CommitOutcome::Kept]);
    assert_eq!(row(&store).await, before);
    assert_eq!(count(&store, "inbox").await, 0, "a result that a turn uses is no message");
    let last = using(&second).completed();
    assert_eq!(store.commit_first(&[result(&second, true), last.item()]).await, [done(false), done(false)]);
    for table in ["inbox", "activity_queue", "turn_queue"] {
        assert_eq!(count(&store, table).await, 0, "{table}");
    }
    assert_eq!(count(&store, "history").await, i64::from(last.history_len));
    assert!(sound(&store).await);
}

#[tokio::test]
async fn a_result_alone_is_told_and_used_up_by_its_source() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let before = row(&store).await;
    assert_eq!(store.commit_first(&[result(&first, true)]).await, [done(false)]);
    assert_eq!(row(&store).await, before, "somebody has the row, so nobody is woken");
    assert_eq!(store.inbox("order").await.len(), 1);
    assert_eq!(store.commit_first(&[going_on(&first).item()]).await, [CommitOutcome::Kept]);
    assert_eq!(count(&store, "inbox").await, 0);
}

#[tokio::test]
async fn a_result_of_a_lease_that_nobody_took_stands_and_wakes() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    recover(&store).await;
    store.run("update @turn_queue set due_at = 'infinity'").await;
    assert_eq!(store.commit_first(&[result(&first, true)]).await, [done(false)]);
    assert!(
        store.holds("(select due_at between now() and now() + interval '1 second' from @turn_queue)").await,
        "whoever has it in hand may be gone"
    );
}

#[tokio::test]
async fn a_result_after_the_lease_was_taken_is_fenced() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let other = store.node("b").await;
    store.run("update @turn_queue set due_at = now()").await;
    let claimed = store.claim_one(&other).await;
    let batch = [result(&first, true), going_on(&first).item()];
    assert_eq!(store.commit_first(&batch).await, [CommitOutcome::Fenced, CommitOutcome::Fenced]);
    assert_eq!(store.commit(&batch).await, [CommitOutcome::Fenced, CommitOutcome::Fenced]);
    assert_eq!((count(&store, "inbox").await, count(&store, "history").await), (0, 2));
    // Also beside a turn of the same instance that stands.
    let settles = TurnCommit { fence: claimed.fence, node: other, ..behind(&first) };
    let outcomes = store.commit_first(&[result(&first, true), settles.item()]).await;
    assert_eq!(outcomes[0], CommitOutcome::Fenced);
    assert!(matches!(outcomes[1], CommitOutcome::Settled(_)));
}

#[tokio::test]
async fn a_result_whose_turn_does_not_stand_is_told() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let mut next = using(&first);
    next.results.push(77);
    let outcomes = store.commit_first(&[result(&first, true), next.item()]).await;
    assert_eq!(outcomes, [done(false), CommitOutcome::Fenced]);
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn a_result_that_its_turn_takes_back_is_none() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let mut next = behind(&first);
    next.append("ActivityCancelRequested", Some(first.history_len));
    next.cancelled_activities.push(first.history_len);
    let outcomes = store.commit_first(&[result(&first, true), next.item()]).await;
    assert_eq!(outcomes[0], CommitOutcome::Fenced);
    assert_eq!(count(&store, "inbox").await, 0);
}

#[tokio::test]
async fn a_turn_that_gives_way_to_a_cancel_cuts_its_lease_off() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    store.run("insert into @inbox (instance, kind, data) values ('order', 'CancelRequested', '{}')").await;
    let batch = [result(&first, true), using(&first).completed().item()];
    assert_eq!(store.commit_first(&batch).await, [CommitOutcome::Fenced, CommitOutcome::Yielded]);
    assert!(is_cut_off(&store).await);
    assert_eq!(count(&store, "inbox").await, 1);
    assert!(sound(&store).await);
}

#[tokio::test]
async fn a_running_activity_gets_its_row_under_a_lease() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let turn = settling_with(
        &first,
        BelatedActivity { attempt: 2, deliveries: 1, ..belated(&first, Some(LONG_MS)) },
    );
    let settled = settled(&store, &turn).await;
    assert_eq!(settled.handed.len(), 1);
    assert_eq!(settled.handed[0].event, first.history_len);
    assert!(
        store
            .holds("(select owner = 'a' and deliveries = 2 and attempt = 2 and due_at > now() + interval '50 seconds' and leased_at is not null from @activity_queue)")
            .await
    );
    assert!(
        store
            .holds("(select owner is null and deliveries = 0 and due_at = 'infinity' from @turn_queue)")
            .await
    );
    assert!(sound(&store).await);
    let CommitItem::Activity(ended) = result(&first, false) else { unreachable!("it is one") };
    let ended = ActivityCommit { fence: settled.handed[0].fence, rowless: false, ..ended };
    assert_eq!(store.commit_first(&[CommitItem::Activity(ended)]).await, [done(true)]);
}

#[tokio::test]
async fn an_activity_that_waits_gets_its_row_without_a_lease() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let waiting = BelatedActivity {
        attempt: 3,
        deliveries: 1,
        delay_ms: 30_000,
        heartbeat: Some("\"half\"".to_owned()),
        isolated: true,
        ..belated(&first, None)
    };
    assert!(settled(&store, &settling_with(&first, waiting)).await.handed.is_empty());
    assert!(
        store
            .holds("(select owner is null and deliveries = 1 and attempt = 3 and isolated and heartbeat = '\"half\"' and due_at between now() + interval '20 seconds' and now() + interval '30 seconds' from @activity_queue)")
            .await
    );
}

#[tokio::test]
async fn a_node_without_a_row_gets_no_lease_but_the_body_counts() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    store.run("delete from @node").await;
    assert!(settled(&store, &settling_with(&first, belated(&first, Some(LONG_MS)))).await.handed.is_empty());
    let other = store.node("b").await;
    assert_eq!(store.claim_activity(&other).await.deliveries, 2);
}

#[tokio::test]
async fn what_has_a_row_or_a_result_gets_no_other_row() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    store.run("insert into @activity_queue (instance, execution, event, name, input) values ('order', 1, 2, 'other', '1')").await;
    let turn = settling_with(&first, belated(&first, Some(LONG_MS)));
    assert!(settled(&store, &turn).await.handed.is_empty());
    assert!(store.holds("(select name = 'other' and owner is null from @activity_queue)").await);

    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let turn = settling_with(&first, belated(&first, Some(LONG_MS)));
    // Told by the same batch.
    let outcomes = store.commit_first(&[turn.item(), result(&first, true)]).await;
    assert!(
        matches!(&outcomes[0], CommitOutcome::Settled(SettledTurn { handed, more_work: true, .. }) if handed.is_empty()),
        "{outcomes:?}"
    );
    assert_eq!((count(&store, "activity_queue").await, count(&store, "inbox").await), (0, 1));
}

#[tokio::test]
async fn a_row_that_was_cut_off_is_claimed_with_what_its_instance_knows() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    recover(&store).await;
    store.run("update @instance set replay_version = 7").await;
    let other = store.node("b").await;
    let claimed = store.claim(&alone(&other)).await.pop().expect("it is due");
    assert_eq!((claimed.cut_off, claimed.history_len), (true, 0));
    assert_eq!((claimed.version.as_deref(), claimed.replay_version), (Some(VERSION), Some(7)));
    // Whoever has the history gives the activity its row.
    let turn = TurnCommit { fence: claimed.fence, node: other, ..behind(&first) };
    let turn = settling_with(&turn, BelatedActivity { deliveries: 1, ..belated(&first, None) });
    settled(&store, &turn).await;
    assert!(!is_cut_off(&store).await);
    assert!(store.holds("(select history_len = 2 and deliveries = 0 from @turn_queue)").await, "it went on");
    assert!(sound(&store).await);
}

#[tokio::test]
async fn the_newest_writer_of_a_history_is_told_of_a_row_that_was_cut_off() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!((claimed.cut_off, claimed.replay_version), (false, None));
    store.run("update @turn_queue set cut_off = true, replay_version = 7, owner = null, owner_epoch = null, leased_at = null, due_at = now(); update @instance set replay_version = 9").await;
    assert_eq!(store.claim_one(&node).await.replay_version, Some(9));
    store.run("update @turn_queue set cut_off = false, owner = null, owner_epoch = null, leased_at = null, due_at = now(), deliveries = 0").await;
    assert_eq!(store.claim_one(&node).await.replay_version, Some(7), "the row says it");
}

#[tokio::test]
async fn a_lease_that_ends_unsettled_is_marked() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let unmark = "update @turn_queue set cut_off = false, isolated = false, deliveries = 0, due_at = now()";

    // Given up.
    let claimed = store.claim_one(&node).await;
    assert!(!is_cut_off(&store).await);
    let fences = [claimed.fence];
    assert_eq!(turn::cut_off(&store.session, &store.statements, &node, &fences).await.expect("it runs"), 1);
    assert!(is_cut_off(&store).await);
    assert!(
        store
            .holds(
                "(select owner is null and deliveries = 1 and due_at <= clock_timestamp() from @turn_queue)"
            )
            .await
    );
    assert_eq!(turn::cut_off(&store.session, &store.statements, &node, &fences).await.expect("it runs"), 0);

    // Lapsed.
    store.run(unmark).await;
    store.claim_one(&node).await;
    let other = store.node("b").await;
    store.run("update @turn_queue set due_at = now()").await;
    assert!(store.claim_one(&other).await.cut_off);

    // Freed by its owner.
    store.run(unmark).await;
    node::goodbye(&store.session, &store.statements, &other).await.expect("a goodbye");
    assert!(is_cut_off(&store).await);

    // Recovered.
    store.run(unmark).await;
    store.claim_one(&node).await;
    recover(&store).await;
    assert!(is_cut_off(&store).await);
}

#[tokio::test]
async fn a_lease_that_is_given_back_keeps_its_mark_as_it_is() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    for mark in [false, true] {
        store.run(&format!("update @turn_queue set cut_off = {mark}")).await;
        let again = "update @turn_queue set deliveries = 0, due_at = now()";
        let (session, statements) = (&store.session, &store.statements);
        let fence = store.claim_one(&node).await.fence;
        assert_eq!(turn::release(session, statements, &node, &[fence], 0).await.expect("a release"), 1);
        assert_eq!(is_cut_off(&store).await, mark);
        store.run(again).await;
        let fence = store.claim_one(&node).await.fence;
        assert_eq!(turn::abandon(session, statements, &node, &[fence], true).await.expect("it runs"), 1);
        assert_eq!(is_cut_off(&store).await, mark);
        store.run(again).await;
        store.claim_one(&node).await;
        let unknown = node::release_unknown(session, statements, &node, &[], &[], Duration::ZERO).await;
        assert_eq!(unknown.expect("a release"), 1);
        assert!(is_cut_off(&store).await, "it may have become known meanwhile");
    }
}

#[tokio::test]
async fn a_parked_turn_leaves_what_was_cut_off_to_the_next_one() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    recover(&store).await;
    let other = store.node("b").await;
    let claimed = store.claim(&alone(&other)).await.pop().expect("it is due");
    let park = Park { error: r#"{"code":"MISMATCH"}"#.to_owned(), version: claimed.version.clone() };
    let parked = TurnCommit { park: Some(park), fence: claimed.fence, node: other, ..behind(&first) };
    settled(&store, &parked).await;
    assert!(store.holds("(select parked and cut_off from @turn_queue)").await);
    assert!(sound(&store).await);
}

#[tokio::test]
async fn a_settle_behind_kept_turns_is_progress() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.run("update @turn_queue set deliveries = 1").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(claimed.deliveries, 2);
    let first = keeping(&claimed, &node);
    assert_eq!(store.commit_first(&[first.item()]).await, [CommitOutcome::Kept]);
    let settled = settled(&store, &settling_with(&first, belated(&first, None))).await;
    assert!(store.holds("(select deliveries = 0 from @turn_queue)").await);
    // One that finds nothing new is not.
    store.run("update @turn_queue set deliveries = 2").await;
    let empty = TurnCommit { fence: settled.next, ..behind(&first) };
    assert!(matches!(store.commit_first(&[empty.item()]).await[..], [CommitOutcome::Settled(_)]));
    assert!(store.holds("(select deliveries = 2 from @turn_queue)").await);
}

#[tokio::test]
async fn a_kept_turn_that_is_run_again_is_found() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let before = row(&store).await;
    assert_eq!(store.commit(&[first.item()]).await, [CommitOutcome::Kept]);
    assert_eq!((row(&store).await, count(&store, "history").await), (before, 2));
    let second = going_on(&first);
    let batch = [result(&first, true), second.item()];
    assert_eq!(store.commit(&batch).await, [done(false), CommitOutcome::Kept], "not written before");
    assert_eq!(store.commit(&batch).await, [done(false), CommitOutcome::Kept], "written before");
    assert_eq!((count(&store, "history").await, count(&store, "inbox").await), (4, 0));
    // Its lease was settled, or taken.
    settled(&store, &settling_with(&second, belated(&second, None))).await;
    assert_eq!(store.commit(&batch).await, [done(false), done(false)]);
    store.run("update @turn_queue set last_fence = 0").await;
    assert_eq!(store.commit(&batch).await, [done(false), CommitOutcome::Fenced]);
}

#[tokio::test]
async fn a_result_that_is_run_again_is_found_and_told_once() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    for _ in 0..2 {
        assert_eq!(store.commit(&[result(&first, true)]).await, [done(false)]);
        assert_eq!(count(&store, "inbox").await, 1);
    }
    // Beside the turn that uses it: the message is used up.
    let next = going_on(&first);
    let batch = [result(&first, true), next.item()];
    assert_eq!(store.commit(&batch).await, [done(false), CommitOutcome::Kept]);
    assert_eq!(count(&store, "inbox").await, 0);
    // The history tells of it after the lease has gone.
    settled(&store, &settling_with(&next, belated(&next, None))).await;
    assert_eq!(store.commit(&[result(&first, true)]).await, [done(false)]);
    assert_eq!(count(&store, "inbox").await, 0);
    // Of this one nothing is there.
    assert_eq!(store.commit(&[result(&next, true)]).await, [CommitOutcome::Fenced]);
}

#[tokio::test]
async fn a_row_that_nobody_was_told_of_goes_back_with_the_delivery_of_its_body() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let turn = settling_with(&first, BelatedActivity { deliveries: 1, ..belated(&first, Some(LONG_MS)) });
    assert_eq!(settled(&store, &turn).await.handed.len(), 1);
    assert_eq!(store.commit(&[turn.item()]).await, [done(true)]);
    assert!(store.holds("(select owner is null and deliveries = 2 and due_at <= clock_timestamp() from @activity_queue)").await);
}

#[tokio::test]
async fn a_begun_lease_that_wrote_events_is_not_released_by_its_start() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let lease = Some(StartLease { node: node.clone(), lease_ms: LONG_MS });
    let start = CommitItem::Start(Start { lease, ..start_of("order") });
    let Some(CommitOutcome::Begun { fence, .. }) =
        store.commit_first(std::slice::from_ref(&start)).await.pop()
    else {
        panic!("it begins at once");
    };
    store.run("update @turn_queue set due_at = now(), owner = null, owner_epoch = null, leased_at = null, deliveries = 0").await;
    let claimed = ClaimedTurn { fence, ..store.claim_one(&node).await };
    store.run(&format!("update @turn_queue set fence = {}", fence.0)).await;
    let first = keeping(&claimed, &node);
    assert_eq!(store.commit_first(&[first.item()]).await, [CommitOutcome::Kept]);
    let before = row(&store).await;
    assert_eq!(store.commit(&[start]).await, [CommitOutcome::Exists { same: true }]);
    assert_eq!(row(&store).await, before);
    assert_eq!(store.commit_first(&[result(&first, true)]).await, [done(false)]);
}

#[tokio::test]
async fn a_row_that_nobody_has_is_not_behind_its_history() {
    let store = Store::new().await;
    let (_, _) = kept(&store).await;
    recover(&store).await;
    assert!(sound(&store).await);
    store.run("update @turn_queue set cut_off = false").await;
    let found = manage::audit(&store.session, &store.statements).await.expect("an audit");
    let found: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(
        found,
        ["a history is not as long as its turn row says", "nobody works on a step that is waited for"]
    );
    store.run("update @turn_queue set cut_off = true, history_len = 3").await;
    assert!(!sound(&store).await, "never longer than it is");
}

#[tokio::test]
async fn what_is_told_of_an_instance_is_its_history() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let found = manage::explain(&store.session, &store.statements, "order").await.expect("it is there");
    assert_eq!(found.instance.history_len, first.history_len);
    assert_eq!(found.instance.version.as_deref(), Some(VERSION));
    assert!(found.instance.replay_version.is_some());
}

#[tokio::test]
async fn a_version_that_no_node_has_is_missed_also_of_a_row_that_was_cut_off() {
    let store = Store::new().await;
    let (_, _) = kept(&store).await;
    recover(&store).await;
    let node = store.node("b").await;
    store
        .run(&format!(
            "update @turn_queue set due_at = now() - interval '1 minute';
             insert into @node_handler (node_id, node_epoch, kind, name, version) values
               ('b', {epoch}, 'orchestration', '{NAME}', '2.0.0'), ('b', {epoch}, 'replay', '0', '9000000000000000')",
            epoch = node.epoch
        ))
        .await;
    let missing = coverage::unserved(&store.session, &store.statements).await.expect("it runs");
    let missing: Vec<Option<&str>> = missing.iter().map(|found| found.version.as_deref()).collect();
    assert_eq!(missing, [Some(VERSION)]);
    store.run("update @node_handler set version = '1.0.0' where kind = 'orchestration'").await;
    assert!(coverage::unserved(&store.session, &store.statements).await.expect("it runs").is_empty());
}

#[tokio::test]
async fn results_under_other_leases_of_one_instance_are_judged_one_by_one() {
    let store = Store::new().await;
    let (_, first) = kept(&store).await;
    let stale = TurnCommit { fence: Fence(first.fence.0 + 1_000), ..first.clone() };
    let other = TurnCommit { history_len: 1, ..stale };
    let outcomes = store.commit_first(&[result(&other, true), result(&first, true)]).await;
    assert_eq!(outcomes, [CommitOutcome::Fenced, done(false)]);
    assert_eq!(store.inbox("order").await.len(), 1);
}
