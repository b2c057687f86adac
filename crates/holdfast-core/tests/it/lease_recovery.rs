//! Heartbeats, recovery and goodbye (L9, V1, V2, V4, V7, V8).
//!
//! length: the rules of one protocol, on the same few ways to age a node.

use holdfast_core::store::{
    Fence, NodeKey,
    commit::CommitOutcome,
    node::{self, Heartbeat, HeartbeatTimes, Recovery},
};

use crate::store_harness::*;

async fn beat(store: &Store, node: &NodeKey, turns: &[Fence], activities: &[Fence]) -> Heartbeat {
    beat_with(store, node, turns, activities, times()).await
}

async fn beat_with(
    store: &Store,
    node: &NodeKey,
    turns: &[Fence],
    activities: &[Fence],
    times: HeartbeatTimes,
) -> Heartbeat {
    node::heartbeat(
        &store.session,
        &store.statements,
        node,
        (turns, activities),
        times,
        node::Along::default(),
    )
    .await
    .unwrap_or_else(|error| panic!("heartbeat: {}", error.full_text()))
}

/// Frees the leases of nodes that are gone, batch by batch.
async fn sweep(store: &Store) -> u64 {
    let mut freed = 0;
    loop {
        let swept = node::sweep(&store.session, &store.statements).await.expect("a sweep");
        freed += swept.freed;
        if !swept.more {
            return freed;
        }
    }
}

async fn age(store: &Store, node: &NodeKey, seconds: i32) {
    let (id, epoch) = (&node.id, node.epoch);
    store
        .run(&format!(
            "update @node set heartbeat_at = clock_timestamp() - interval '{seconds} s' where id = '{id}' and epoch = {epoch}"
        ))
        .await;
}

#[tokio::test]
async fn every_registration_has_a_higher_epoch() {
    let store = Store::new().await;
    let first = store.node("a").await;
    let second = store.node("a").await;
    assert!(second.epoch > first.epoch);
    node::goodbye(&store.session, &store.statements, &first).await.expect("a goodbye");
    assert!(store.node("a").await.epoch > second.epoch);
}

#[tokio::test]
async fn a_heartbeat_stamps_the_row_and_finds_nothing_on_a_quiet_day() {
    let store = Store::new().await;
    let node = store.node("a").await;
    age(&store, &node, 3).await;
    let told = beat(&store, &node, &[], &[]).await;
    assert!(told.alive && told.recovered_nodes.is_empty() && told.released == 0);
    assert!(store.holds("(select heartbeat_at > clock_timestamp() - interval '2 s' from @node)").await);
}

#[tokio::test]
async fn held_fences_that_are_gone_are_told() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.with_activities(&node, "order", 2).await;
    store.commit(&[start("kept"), start("taken")]).await;
    let turns = store.claim(&request(&node)).await;
    let tasks = store.claim_activities(&request(&node)).await;
    let task_fences: Vec<_> = tasks.iter().map(|task| task.fence).collect();
    store.run("update @turn_queue set due_at = now() where instance = 'taken'").await;
    store.claim_one(&other).await;
    store.run(&format!("delete from @activity_queue where fence = {}", task_fences[0].0)).await;

    let told = beat(&store, &node, &fences_of(&turns), &task_fences).await;
    let taken: Vec<_> = turns.iter().filter(|turn| turn.instance == "taken").map(|turn| turn.fence).collect();
    assert_eq!(told.gone_turns, taken);
    assert_eq!(told.gone_activities, [task_fences[0]]);
}

#[tokio::test]
async fn unknown_own_leases_are_released_by_the_heartbeat() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.commit(&[start("known"), start("lost"), start("young")]).await;
    let turns = store.claim(&request(&node)).await;
    store.claim_activity(&node).await;
    store
        .run(
            "update @turn_queue set leased_at = now() - interval '2 min' where instance in ('known', 'lost')",
        )
        .await;
    store.run("update @activity_queue set leased_at = now() - interval '2 min'").await;
    let known: Vec<_> = turns.iter().filter(|turn| turn.instance == "known").map(|turn| turn.fence).collect();

    assert_eq!(beat(&store, &node, &known, &[]).await.released, 2);
    let again = store.claim_one(&node).await;
    assert_eq!(
        (again.instance.as_str(), again.deliveries),
        ("lost", 1),
        "due at once, its delivery given back"
    );
    assert_eq!(store.claim_activity(&node).await.deliveries, 1);
    let late = turns.iter().find(|turn| turn.instance == "lost").expect("claimed");
    assert_eq!(store.commit_one(turn_of(late, &node).completed().item()).await, CommitOutcome::Fenced);
}

#[tokio::test]
async fn a_stale_node_is_recovered_and_its_rows_are_isolated() {
    let store = Store::new().await;
    let (dead, node) = (store.node("dead").await, store.node("a").await);
    store.with_activities(&dead, "order", 1).await;
    store.start("second").await;
    let turn = store.claim_one(&dead).await;
    let task = store.claim_activity(&dead).await;
    age(&store, &dead, 31).await;

    let told = beat(&store, &node, &[], &[]).await;
    assert_eq!((told.recovered_nodes, sweep(&store).await), (vec!["dead".to_owned()], 2));
    assert!(
        store.claim(&request(&node)).await.is_empty()
            && store.claim_activities(&request(&node)).await.is_empty()
    );
    let mut ask = request(&node);
    ask.isolated = true;
    let taken = store.claim(&ask).await;
    assert_eq!((taken.len(), taken[0].deliveries), (1, 2), "due at once, alone, its count kept");
    assert_eq!(store.commit_one(turn_of(&turn, &dead).completed().item()).await, CommitOutcome::Fenced);
    assert_eq!(
        store.commit_one(result_of(&task, &dead)).await,
        done(true),
        "nobody took it: slow is not lost"
    );
    assert!(beat(&store, &node, &fences_of(&taken), &[]).await.gone_turns.is_empty());
}

#[tokio::test]
async fn a_node_declared_dead_learns_it_and_its_late_writes_stand() {
    let store = Store::new().await;
    let (slow, node) = (store.node("slow").await, store.node("a").await);
    store.start("order").await;
    let claimed = store.claim_one(&slow).await;
    age(&store, &slow, 31).await;
    beat(&store, &node, &[], &[]).await;
    sweep(&store).await;

    let told = beat(&store, &slow, &[claimed.fence], &[]).await;
    assert!(!told.alive);
    assert_eq!(told.gone_turns, [claimed.fence]);
    assert!(store.claim(&request(&slow)).await.is_empty(), "no node row, no claim");
    assert_eq!(store.commit_one(turn_of(&claimed, &slow).completed().item()).await, done(false));
}

#[tokio::test]
async fn a_node_that_was_late_itself_or_may_not_recovers_nobody() {
    let store = Store::new().await;
    let (dead, node) = (store.node("dead").await, store.node("a").await);
    age(&store, &dead, 31).await;
    age(&store, &node, 11).await;
    let told = beat(&store, &node, &[], &[]).await;
    assert!(told.alive && told.recovered_nodes.is_empty(), "its own last heartbeat is too old");

    let guarded = HeartbeatTimes { recovery: Recovery::Forbidden, ..times() };
    assert!(beat_with(&store, &node, &[], &[], guarded).await.recovered_nodes.is_empty());
    assert_eq!(beat(&store, &node, &[], &[]).await.recovered_nodes, ["dead"]);
}

#[tokio::test]
async fn a_node_is_heard_while_somebody_has_locked_a_queue() {
    let store = Store::new().await;
    let node = store.node("a").await;
    beat(&store, &node, &[Fence(1)], &[]).await;
    age(&store, &node, 20).await;
    let other = store.another().await;
    other.run("begin; lock table @turn_queue in access exclusive mode").await;
    assert!(beat(&store, &node, &[Fence(1)], &[]).await.alive);
    let young = "select heartbeat_at > clock_timestamp() - interval '10 s' from @node";
    assert!(store.holds(young).await);
    other.run("commit").await;
    assert_eq!(beat(&store, &node, &[Fence(1)], &[]).await.gone_turns, [Fence(1)], "it asks again");
}

/// A node without a past.
fn fresh() -> HeartbeatTimes {
    HeartbeatTimes { recovery: Recovery::Allowed { clean_ms: 0, fresh: true }, ..times() }
}

/// A node whose heartbeats have had no failure for so many seconds, and had one before.
fn clean_for(seconds: i64) -> HeartbeatTimes {
    HeartbeatTimes { recovery: Recovery::Allowed { clean_ms: seconds * 1_000, fresh: false }, ..times() }
}

/// A node judged by a stale age of 100 ms: the server has been up longer than that. Silent for so many seconds.
async fn silent(store: &Store, id: &str, seconds: i32) -> NodeKey {
    let node = store.node_with(id, 25, 100).await;
    age(store, &node, seconds).await;
    node
}

#[tokio::test]
async fn a_fresh_node_recovers_a_single_silent_peer_at_once() {
    let store = Store::new().await;
    let node = store.node("a").await;
    silent(&store, "dead", 31).await;
    assert_eq!(beat_with(&store, &node, &[], &[], fresh()).await.recovered_nodes, ["dead"]);
}

#[tokio::test]
async fn a_fresh_node_leaves_peers_that_fell_silent_within_one_of_their_intervals() {
    let store = Store::new().await;
    let (first, second, node) = (store.node("b").await, store.node("c").await, store.node("a").await);
    age(&store, &first, 31).await;
    age(&store, &second, 34).await;
    let beaten = beat_with(&store, &node, &[], &[], fresh()).await;
    assert!(beaten.recovered_nodes.is_empty() && beaten.outage);
    let mut told = beat(&store, &node, &[], &[]).await.recovered_nodes;
    told.sort();
    assert_eq!(told, ["b", "c"], "a stale age later it has a past");
}

#[tokio::test]
async fn an_outage_is_one_before_all_whom_it_struck_are_stale() {
    let store = Store::new().await;
    let (first, second, node) = (store.node("b").await, store.node("c").await, store.node("a").await);
    age(&store, &first, 31).await;
    age(&store, &second, 28).await;
    let beaten = beat_with(&store, &node, &[], &[], fresh()).await;
    assert!(beaten.recovered_nodes.is_empty() && beaten.outage);
}

#[tokio::test]
async fn a_crash_long_ago_makes_no_crashes_of_an_outage() {
    let store = Store::new().await;
    let node = store.node("a").await;
    for (id, seconds) in [("crashed", 300), ("b", 31), ("c", 31)] {
        let peer = store.node_with(id, 1_000, 4_000).await;
        age(&store, &peer, seconds).await;
    }
    let beaten = beat_with(&store, &node, &[], &[], fresh()).await;
    assert_eq!(beaten.recovered_nodes, ["crashed"]);
    assert!(beaten.outage);
}

#[tokio::test]
async fn a_fresh_node_recovers_peers_that_fell_silent_apart() {
    let store = Store::new().await;
    let node = store.node("a").await;
    silent(&store, "b", 31).await;
    silent(&store, "c", 37).await;
    assert_eq!(beat_with(&store, &node, &[], &[], fresh()).await.recovered_nodes.len(), 2, "crashes");
}

#[tokio::test]
async fn a_fresh_node_recovers_nobody_while_the_server_is_just_up() {
    let store = Store::new().await;
    let century = 100 * 365 * 86_400_000;
    let (dead, node) = (store.node_with("dead", 5_000, century).await, store.node("a").await);
    store
        .run(&format!(
            "update @node set heartbeat_at = now() - interval '101 y' where epoch = {}",
            dead.epoch
        ))
        .await;
    assert!(beat_with(&store, &node, &[], &[], fresh()).await.recovered_nodes.is_empty());
    let long = clean_for(century / 1_000);
    assert_eq!(beat_with(&store, &node, &[], &[], long).await.recovered_nodes, ["dead"]);
}

#[tokio::test]
async fn a_fresh_node_recovers_its_own_predecessor_also_in_an_outage() {
    let store = Store::new().await;
    let (older, other) = (store.node("worker-1").await, store.node("worker-2").await);
    let node = store.node("worker-1").await;
    age(&store, &older, 31).await;
    age(&store, &other, 31).await;
    let third = store.node("worker-3").await;
    age(&store, &third, 31).await;
    let explicit = HeartbeatTimes { explicit: true, ..fresh() };
    assert_eq!(beat_with(&store, &node, &[], &[], explicit).await.recovered_nodes, ["worker-1"]);
}

#[tokio::test]
async fn an_older_epoch_of_an_explicit_id_is_stale_after_three_of_its_own_intervals() {
    let store = Store::new().await;
    let older = store.node("worker-1").await;
    let node = store.node_with("worker-1", 1_000, 30_000).await;
    let other = store.node("worker-2").await;
    let explicit = HeartbeatTimes { explicit: true, ..times() };
    age(&store, &older, 14).await;
    assert!(
        beat_with(&store, &node, &[], &[], explicit).await.recovered_nodes.is_empty(),
        "not by the successor's"
    );
    age(&store, &older, 16).await;
    age(&store, &other, 16).await;
    assert!(beat(&store, &node, &[], &[]).await.recovered_nodes.is_empty());
    let told = beat_with(&store, &node, &[], &[], explicit).await;
    assert_eq!(told.recovered_nodes, ["worker-1"]);
    assert!(beat(&store, &node, &[], &[]).await.alive);
}

#[tokio::test]
async fn a_hasty_node_does_not_take_a_patient_one_for_dead() {
    let store = Store::new().await;
    let (patient, hasty) = (store.node("patient").await, store.node_with("hasty", 1_000, 5_000).await);
    age(&store, &patient, 29).await;
    assert!(beat(&store, &hasty, &[], &[]).await.recovered_nodes.is_empty());
    age(&store, &patient, 31).await;
    assert!(
        beat_with(&store, &hasty, &[], &[], clean_for(29)).await.recovered_nodes.is_empty(),
        "it was not heard itself for as long as the other may be silent"
    );
    assert_eq!(beat_with(&store, &hasty, &[], &[], clean_for(30)).await.recovered_nodes, ["patient"]);
}

#[tokio::test]
async fn a_patient_node_finds_a_hasty_one_dead_at_the_age_of_that_one() {
    let store = Store::new().await;
    let (patient, hasty) = (store.node("patient").await, store.node_with("hasty", 1_000, 5_000).await);
    age(&store, &hasty, 4).await;
    assert!(beat(&store, &patient, &[], &[]).await.recovered_nodes.is_empty());
    age(&store, &hasty, 6).await;
    assert!(
        beat_with(&store, &patient, &[], &[], clean_for(4)).await.recovered_nodes.is_empty(),
        "an outage may have ended four seconds ago"
    );
    age(&store, &patient, 7).await;
    assert!(
        beat(&store, &patient, &[], &[]).await.recovered_nodes.is_empty(),
        "its own last heartbeat came late"
    );
    assert_eq!(beat_with(&store, &patient, &[], &[], clean_for(5)).await.recovered_nodes, ["hasty"]);
}

#[tokio::test]
async fn a_full_sweep_frees_leases_whose_owner_has_no_node_row() {
    let store = Store::new().await;
    let (gone, node) = (store.node("gone").await, store.node("a").await);
    store.commit(&(0..1_500).map(|number| start(&format!("i{number}"))).collect::<Vec<_>>()).await;
    let mut ask = request(&gone);
    ask.limit = 1_500;
    assert_eq!(store.claim(&ask).await.len(), 1_500);
    store.run("delete from @node where id = 'gone'").await;
    assert!(beat(&store, &node, &[], &[]).await.recovered_nodes.is_empty(), "nobody was stale");
    let first = node::sweep(&store.session, &store.statements).await.expect("a sweep");
    assert_eq!((first.freed, first.more), (1_000, true), "in batches, with heartbeats between them");
    assert_eq!(sweep(&store).await, 500);
    assert!(
        store
            .holds("(select bool_and(owner is null and isolated and due_at <= now()) from @turn_queue)")
            .await
    );
}

#[tokio::test]
async fn recovery_skips_a_locked_row_and_finds_it_later() {
    let store = Store::new().await;
    let (dead, node) = (store.node("dead").await, store.node("a").await);
    store.start("order").await;
    store.claim_one(&dead).await;
    age(&store, &dead, 31).await;
    let other = store.another().await;
    other.run("begin; select from @turn_queue for update").await;
    let told = beat(&store, &node, &[], &[]).await;
    assert_eq!((told.recovered_nodes.len(), sweep(&store).await), (1, 0));
    other.run("rollback").await;
    assert_eq!(sweep(&store).await, 1);
}

#[tokio::test]
async fn a_goodbye_frees_everything_at_once() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.with_activities(&node, "order", 1).await;
    store.start("second").await;
    store.claim_one(&node).await;
    store.claim_activity(&node).await;
    node::goodbye(&store.session, &store.statements, &node).await.expect("a goodbye");
    assert!(!beat(&store, &node, &[], &[]).await.alive);
    let turn = store.claim_one(&other).await;
    assert_eq!((turn.instance.as_str(), turn.deliveries), ("second", 2), "its count is kept");
    assert_eq!(store.claim_activity(&other).await.deliveries, 2);
    node::goodbye(&store.session, &store.statements, &node).await.expect("a second goodbye");
}

#[tokio::test]
async fn heartbeats_stay_hot_updates() {
    let store = Store::new().await;
    let node = store.node("a").await;
    for _ in 0..50 {
        beat(&store, &node, &[], &[]).await;
    }
    store.run("select pg_stat_force_next_flush()").await;
    let oid = format!("'\"{}\".node'::regclass", store.schema);
    assert_eq!(store.number(&format!("pg_stat_get_tuples_updated({oid})")).await, 50);
    assert_eq!(store.number(&format!("pg_stat_get_tuples_hot_updated({oid})")).await, 50);
}
