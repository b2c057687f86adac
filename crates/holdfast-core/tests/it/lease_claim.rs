//! Claims: what they take, stamp and count (L1, L2, L3, L5, L10, D5).
//!
//! length: what a claim takes, in which order and how much of it, rule by rule.

use holdfast_core::store::{
    Fence, NodeKey, TagFilter,
    activity::{self, Lane, Terms},
    commit::{CommitOutcome, NewActivity},
    replay_version::{self, ReplayRange},
    turn::{self, ClaimRequest, ClaimedTurn},
};

use crate::store_harness::*;

#[tokio::test]
async fn a_lease_is_stamped_after_the_row_lock() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("held").await;
    store.start("free").await;
    let other = store.another().await;
    other.run("begin; select from @turn_queue where instance = 'held' for update").await;

    let claimed = store.claim(&request(&node)).await;
    assert_eq!(
        claimed.iter().map(|turn| turn.instance.as_str()).collect::<Vec<_>>(),
        ["free"],
        "no wait, no lease"
    );

    other.run("create table @mark as select clock_timestamp() as at; commit").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(claimed.instance, "held");
    assert!(
        store
            .holds(
                "(select q.leased_at > mark.at and q.due_at - mark.at >= interval '60 seconds'
                  from @turn_queue q, @mark mark where q.instance = 'held')"
            )
            .await
    );
}

#[tokio::test]
async fn every_row_of_a_claim_gets_a_stamp_and_a_fence_of_its_own() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let starts: Vec<_> = (0..50).map(|number| start(&format!("i{number}"))).collect();
    store.commit(&starts).await;
    let claimed = store.claim(&request(&node)).await;
    assert_eq!(claimed.len(), 50);
    let fences: std::collections::BTreeSet<_> = fences_of(&claimed).into_iter().collect();
    assert_eq!(fences.len(), 50);
    assert_eq!(store.number("select count(distinct leased_at) from @turn_queue").await, 50);
}

#[tokio::test]
async fn a_claim_carries_what_a_first_turn_needs() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(
        (claimed.name.as_str(), claimed.execution, claimed.history_len, claimed.deliveries),
        (NAME, 1, 0, 1)
    );
    let started = claimed.start.as_ref().expect("no history yet");
    assert_eq!(started.input, r#"{"n":1.0}"#);
    assert!(claimed.parent.is_none() && claimed.version.is_none() && !claimed.poisoned);
    let now = store.number("select floor(extract(epoch from clock_timestamp()) * 1000)").await;
    assert!((0..60_000).contains(&(now - claimed.now_ms)));
}

#[tokio::test]
async fn a_claim_without_a_node_row_gets_nothing() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.start("other").await;
    let nobody = NodeKey { id: "a".to_owned(), epoch: node.epoch + 1_000 };
    assert!(store.claim(&request(&nobody)).await.is_empty());
    assert!(store.claim_activities(&request(&nobody)).await.is_empty());
    assert_eq!(store.claim(&request(&node)).await.len(), 1);
    assert_eq!(store.claim_activities(&request(&node)).await.len(), 1);
}

#[tokio::test]
async fn own_rows_are_not_claimed_again() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.with_activities(&node, "order", 1).await;
    store.start("second").await;
    let first = store.claim_one(&node).await;
    let task = store.claim_activity(&node).await;
    store.run("update @turn_queue set due_at = now() where owner is not null; update @activity_queue set due_at = now()").await;
    assert!(store.claim(&request(&node)).await.is_empty());
    assert!(store.claim_activities(&request(&node)).await.is_empty());

    let taken = store.claim(&request(&other)).await;
    assert_eq!(taken.len(), 1);
    assert!(taken[0].fence > first.fence && taken[0].deliveries == 2);
    assert!(store.claim_activity(&other).await.fence > task.fence);
}

#[tokio::test]
async fn after_a_failed_heartbeat_only_rows_without_an_owner_are_claimed() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("lapsed").await;
    store.claim_one(&node).await;
    store.run("update @turn_queue set due_at = now() - interval '1 s'").await;
    store.start("fresh").await;
    let mut careful = request(&other);
    careful.unowned_only = true;
    let claimed = store.claim(&careful).await;
    assert_eq!(claimed.iter().map(|turn| turn.instance.as_str()).collect::<Vec<_>>(), ["fresh"]);
    assert_eq!(store.claim_one(&other).await.instance, "lapsed");
}

#[tokio::test]
async fn the_lease_grows_with_deliveries_up_to_the_cap() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("order").await;
    let lease = "select round(extract(epoch from due_at - leased_at) * 1000) from @turn_queue";
    let mut claimer = (&node, &other);
    for (deliveries, expected) in [(0, 60_000), (1, 61_000), (2, 62_000), (3, 64_000), (10_000, 120_000)] {
        store.run(&format!("update @turn_queue set deliveries = {deliveries}, due_at = now()")).await;
        let mut ask = request(claimer.0);
        ask.isolated = deliveries >= 2;
        ask.max_attempts = 20_000;
        assert_eq!(store.claim(&ask).await.len(), 1, "delivery {}", deliveries + 1);
        // Both are stamped as the row is written, the end of the lease before its begin.
        let leased = store.number(lease).await;
        assert!((expected - 500..=expected).contains(&leased), "delivery {}: {leased}", deliveries + 1);
        claimer = (claimer.1, claimer.0);
    }
}

#[tokio::test]
async fn times_beyond_the_calendar_are_cut() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let mut ask = request(&node);
    (ask.lock_timeout_ms, ask.backoff_base_ms, ask.backoff_max_ms) = (i64::MAX, i64::MAX, i64::MAX);
    let claimed = store.claim(&ask).await;
    assert_eq!(claimed.len(), 1);
    let released =
        turn::release(&store.session, &store.statements, &node, &fences_of(&claimed), i64::MAX).await;
    assert_eq!(released.expect("a release"), 1);
}

#[tokio::test]
async fn poison_is_returned_apart_and_ends_without_a_live_lease() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("bad").await;
    store.run("update @turn_queue set deliveries = 3").await;
    let mut ask = request(&node);
    (ask.isolated, ask.max_attempts, ask.lock_timeout_ms) = (true, 3, 1);
    let claimed = store.claim(&ask).await;
    assert!(claimed[0].poisoned && claimed[0].deliveries == 4);

    store.run("update @turn_queue set due_at = now() - interval '1 hour'").await;
    let turn = turn_of(&claimed[0], &node).completed();
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    assert!(store.claim(&request(&other)).await.is_empty());
    assert_eq!(store.number("select count(*) from @turn_queue").await, 0);
}

#[tokio::test]
async fn a_claim_of_a_poisoned_item_is_no_delivery() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.run("update @turn_queue set deliveries = 3, owner = null, due_at = now() - interval '1 s'").await;
    store.run("update @activity_queue set deliveries = 3").await;
    for id in ["b", "c"] {
        let node = store.node(id).await;
        let mut ask = request(&node);
        (ask.isolated, ask.max_attempts) = (true, 3);
        let turn = store.claim(&ask).await.remove(0);
        let task = store.claim_activities(&ask).await.remove(0);
        assert!(turn.poisoned && task.poisoned);
        assert_eq!(
            (turn.deliveries, task.deliveries),
            (4, 4),
            "its end could not be written; it is tried again"
        );
        store.run("update @turn_queue set due_at = now() - interval '1 s'").await;
        store.run("update @activity_queue set due_at = now() - interval '1 s'").await;
    }
}

#[tokio::test]
async fn a_poisoned_activity_is_returned_apart() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.run("update @activity_queue set deliveries = 1").await;
    let mut ask = request(&node);
    ask.max_attempts = 1;
    let claimed = store.claim_activities(&ask).await;
    assert!(claimed[0].poisoned && claimed[0].deliveries == 2);
}

#[tokio::test]
async fn suspects_are_claimed_alone() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let all: Vec<_> = ["died", "often", "twice", "well"].map(start).into();
    store.commit(&all).await;
    store.run("update @turn_queue set isolated = true where instance = 'died'").await;
    store.run("update @turn_queue set deliveries = 2 where instance = 'often'").await;
    store.run("update @turn_queue set deliveries = 1 where instance = 'twice'").await;

    let mut claimed: Vec<_> =
        store.claim(&request(&node)).await.into_iter().map(|turn| turn.instance).collect();
    claimed.sort();
    assert_eq!(claimed, ["twice", "well"]);
    let mut ask = request(&node);
    ask.isolated = true;
    assert_eq!(store.claim(&ask).await.len(), 1, "one at a time");
    assert_eq!(store.claim(&ask).await.len(), 1);
    assert!(store.claim(&ask).await.is_empty());

    store.with_activities(&node, "tasks", 2).await;
    store.run("update @activity_queue set isolated = true").await;
    assert!(store.claim_activities(&request(&node)).await.is_empty());
    assert_eq!(store.claim_activities(&ask).await.len(), 1);
}

#[tokio::test]
async fn a_node_claims_only_what_it_can_run() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let mut exact = start_of("exact");
    exact.version = Some("2.0.0".to_owned());
    store.commit_one(holdfast_core::store::commit::CommitItem::Start(exact)).await;

    let claim = async |names: &[&str], handlers: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let handlers: Vec<String> = handlers.iter().map(|name| (*name).to_owned()).collect();
        let claimed =
            turn::claim(&store.session, &store.statements, &request(&node), &names, &handlers).await;
        claimed.expect("a claim").into_iter().map(|turn| turn.instance).collect::<Vec<_>>()
    };
    assert!(claim(&["other"], &["other@1.0.0", "checkout@1.0.0"]).await.is_empty());
    assert_eq!(claim(&[], &["checkout@2.0.0"]).await, ["exact"]);
    assert_eq!(claim(&["checkout"], &[]).await, ["order"]);
}

#[tokio::test]
async fn a_tagged_or_unknown_activity_is_left_alone() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = scheduling(&claimed, &node, 2);
    turn.activities[0].tag = Some("gpu".to_owned());
    turn.activities[1].name = "unknown".to_owned();
    store.commit_one(turn.item()).await;
    assert!(store.claim_activities(&request(&node)).await.is_empty());
    let unknown = ["unknown".to_owned()];
    let claimed = activity::claim(
        &store.session,
        &store.statements,
        &request(&node),
        &unknown,
        &Terms {
            tags: &TagFilter::default(),
            new_sessions: 0,
            session_timeout_ms: LONG_MS,
            spares_last: false,
        },
        Lane::Plain,
    )
    .await;
    assert_eq!(claimed.expect("a claim").len(), 1);
    assert!(
        store.holds("(select bool_and(deliveries = (name = 'unknown')::int) from @activity_queue)").await
    );
}

#[tokio::test]
async fn a_claimed_activity_carries_what_it_was_scheduled_with() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = scheduling(&claimed, &node, 1);
    turn.activities[0] = NewActivity {
        retry: Some(r#"{"maxAttempts":2}"#.to_owned()),
        session: Some("s1".to_owned()),
        ..turn.activities[0].clone()
    };
    store.commit_one(turn.item()).await;
    let tags = TagFilter::any();
    let task = store.claim_tagged(&request(&node), &tags, Lane::InSession).await.pop().expect("a task");
    assert_eq!((task.key.instance.as_str(), task.key.execution, task.key.event), ("order", 1, 2));
    assert_eq!(
        (task.name.as_str(), task.input.as_str(), task.attempt, task.deliveries),
        (ACTIVITY, "1.0", 1, 1)
    );
    assert_eq!((task.retry.as_deref(), task.session.as_deref()), (Some(r#"{"maxAttempts":2}"#), Some("s1")));
    assert_eq!((task.timeout_ms, task.tag.as_deref()), (Some(1_000), None));
    assert_eq!(task.orchestration_version.as_deref(), Some(VERSION));
    assert!(task.scheduled_at_ms <= task.now_ms);
}

#[tokio::test]
async fn fences_are_never_used_again_after_delete_and_recreate() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.start("order").await;
    let first = store.claim_one(&node).await;
    store.run("delete from @turn_queue; delete from @instance").await;
    store.start("order").await;
    let late = turn_of(&first, &node).completed();
    assert_eq!(store.commit_one(late.item()).await, CommitOutcome::Fenced);
    let second = store.claim_one(&other).await;
    assert!(second.fence > first.fence);
    assert_eq!(store.commit_one(late.item()).await, CommitOutcome::Fenced);
    assert_eq!(store.number("select count(*) from @history").await, 0);
    assert_eq!(store.commit_one(turn_of(&second, &other).completed().item()).await, done(false));
}

#[tokio::test]
async fn an_instance_is_left_to_nodes_that_replay_its_history() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 0).await;
    let written = "select count(*) from @turn_queue where replay_version = ";
    assert_eq!(store.number(&format!("{written}{}", replay_version::current())).await, 1);
    store.run("update @turn_queue set due_at = now()").await;
    let newest = replay_version::current();
    for (range, claimed) in [
        (ReplayRange { min: newest + 1, max: i64::MAX }, 0),
        (ReplayRange { min: 0, max: newest - 1 }, 0),
        (ReplayRange { min: newest, max: newest }, 1),
    ] {
        for isolated in [true, false] {
            let request = ClaimRequest { isolated, replay: range, ..request(&node) };
            let taken = store.claim(&request).await.len();
            assert_eq!(taken, if isolated { 0 } else { claimed }, "{range:?}");
        }
    }
}

#[tokio::test]
async fn a_suspect_is_left_to_nodes_that_replay_its_history() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.run("update @turn_queue set isolated = true, replay_version = 5").await;
    let by = |replay: ReplayRange| ClaimRequest { isolated: true, replay, ..request(&node) };
    assert_eq!(store.claim(&by(ReplayRange { min: 0, max: 4 })).await.len(), 0);
    assert_eq!(store.claim(&by(ReplayRange { min: 5, max: 5 })).await.len(), 1);
}

#[tokio::test]
async fn a_suspect_at_its_last_delivery_is_left_where_other_suspects_run() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 3).await;
    // The first may be claimed once more, the second has been claimed too often, the third is young.
    store.run("update @activity_queue set isolated = true, deliveries = case event when 2 then 9 when 3 then 10 else 1 end").await;
    let mut ask = request(&node);
    ask.isolated = true;
    let claim = async |spares_last: bool| {
        let tags = TagFilter::default();
        let takes = Terms { tags: &tags, new_sessions: 0, session_timeout_ms: LONG_MS, spares_last };
        let names = [ACTIVITY.to_owned()];
        let claimed =
            activity::claim(&store.session, &store.statements, &ask, &names, &takes, Lane::Plain).await;
        claimed.expect("a claim").into_iter().map(|task| (task.deliveries, task.poisoned)).collect::<Vec<_>>()
    };
    let mut taken = [claim(true).await, claim(true).await].concat();
    taken.sort_unstable();
    assert_eq!(taken, [(2, false), (11, true)], "one to be tried, one to be ended");
    assert_eq!(claim(true).await, []);
    assert_eq!(claim(false).await, [(10, false)]);
}

#[tokio::test]
async fn a_claim_takes_inputs_up_to_a_bound_and_the_rest_stays_due() {
    let store = Store::new().await;
    let node = store.node("a").await;
    // 30 MB each, compressed in the table: the third goes over 64 MiB, and so it is the last.
    store
        .run(
            "insert into @activity_queue (instance, execution, event, name, input, due_at)
             select 'j' || n, 0, 0, 'charge', '\"' || repeat('x', 30000000) || '\"', now() - n * interval '1 s'
             from generate_series(1, 5) n",
        )
        .await;
    let claimed = store.claim_activities(&request(&node)).await;
    assert_eq!(claimed.iter().map(|task| task.deliveries).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(store.number("select count(*) from @activity_queue where owner is null and deliveries = 0 and due_at < now()").await, 2);
    // What was left is found by the next claim of the same node, which begins at its mark.
    assert_eq!(store.claim_activities(&request(&node)).await.len(), 2);
}

#[tokio::test]
async fn a_claim_of_turns_reads_starts_up_to_a_bound_and_says_which_it_left_out() {
    let store = Store::new().await;
    let node = store.node("a").await;
    for instance in ["a", "b", "c", "d", "e"] {
        store.start(instance).await;
    }
    store.run("update @instance set input = '\"' || repeat('x', 30000000) || '\"'").await;
    let claimed = store.claim(&request(&node)).await;
    let read = |turn: &ClaimedTurn| turn.start.as_ref().map(|start| start.input.len());
    assert_eq!(claimed.iter().filter(|turn| read(turn) == Some(30_000_002) && !turn.unread).count(), 3);
    assert_eq!(claimed.iter().filter(|turn| read(turn).is_none() && turn.unread).count(), 2);
    let unread: Vec<Fence> = claimed.iter().filter(|turn| turn.unread).map(|turn| turn.fence).collect();
    assert_eq!(
        turn::release(&store.session, &store.statements, &node, &unread, 0).await.expect("release"),
        2
    );
    assert!(store.claim(&request(&node)).await.iter().all(|turn| !turn.unread && turn.deliveries == 1));
}
