//! The look: one statement that says what is due for a node, without taking it.

use holdfast_core::store::look::Due;

use crate::store_harness::*;

#[tokio::test]
async fn a_look_finds_what_a_claim_would_take_and_takes_nothing() {
    let store = Store::new().await;
    let node = store.node("a").await;
    assert_eq!(store.look(&node).await, NOTHING);
    store.start("order").await;
    for _ in 0..2 {
        assert_eq!(store.look(&node).await, Due { turns: true, ..NOTHING });
    }
    let claimed = store.claim_one(&node).await;
    store.commit_one(scheduling(&claimed, &node, 1).item()).await;
    assert_eq!(store.look(&node).await, Due { activities: true, ..NOTHING });
    store.run("update @turn_queue set isolated = true, due_at = now(); update @activity_queue set deliveries = 2").await;
    let due = store.look(&node).await;
    assert_eq!((due.turn_suspects, due.activity_suspects), (true, true));
}

#[tokio::test]
async fn a_heartbeat_takes_a_look_along() {
    let store = Store::new().await;
    let node = store.node("a").await;
    assert_eq!(store.beat_and_look(&node).await, (true, Some(NOTHING)));
    store.start("order").await;
    store.run("insert into @activity_queue (instance, execution, event, name, input) values ('x', 0, 0, 'charge', '1')").await;
    let found = Due { turns: true, activities: true, ..NOTHING };
    assert_eq!((store.beat_and_look(&node).await, store.look(&node).await), ((true, Some(found)), found));
    store.claim_one(&node).await;
    assert!(!store.beat_and_look(&node).await.1.expect("a look").turns, "its own lease is not for it");
    store.run("update @turn_queue set leased_at = now() - interval '2 min'").await;
    assert!(store.beat_and_look(&node).await.1.expect("a look").turns, "what the heartbeat released is due");
}

#[tokio::test]
async fn a_look_that_has_to_wait_costs_no_heartbeat() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let other = store.another().await;
    assert_eq!(store.beat_and_look(&node).await, (true, Some(NOTHING)));
    // The look alone reads this table.
    other.run("begin; lock table @session in access exclusive mode").await;
    assert_eq!(store.beat_and_look(&node).await, (true, None));
    other.run("commit").await;
    assert_eq!(store.beat_and_look(&node).await, (true, Some(NOTHING)));
}

#[tokio::test]
async fn the_next_due_time_is_that_of_the_first_row_this_node_wants() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let later = "insert into @activity_queue (instance, execution, event, name, input, due_at)
                 select 'x' || n, 0, 0, 'NAME', '1', now() + n * interval '1 min' from generate_series(FROM, TO) n";
    let add = |name: &str, from: i32, to: i32| {
        later.replace("NAME", name).replace("FROM", &from.to_string()).replace("TO", &to.to_string())
    };
    store.run(&add(ACTIVITY, 10, 10)).await;
    let minutes = store.look(&node).await.next.expect("an activity").as_secs_f64() / 60.0;
    assert!((9.0..=10.0).contains(&minutes), "{minutes}");
    store.run(&add("foreign", 1, 5)).await;
    let minutes = store.look(&node).await.next.expect("an activity").as_secs_f64() / 60.0;
    assert!((9.0..=10.0).contains(&minutes), "nearer rows of others do not wake this node: {minutes}");
    store.run("delete from @activity_queue").await;
    store.run(&add("foreign", 1, 40)).await;
    let minutes = store.look(&node).await.next.expect("the last row looked at").as_secs_f64() / 60.0;
    assert!((31.0..=32.0).contains(&minutes), "what is behind the rows looked at may be wanted: {minutes}");
}

#[tokio::test]
async fn a_row_below_the_mark_is_found_and_then_claimed() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.run("update @turn_queue set due_at = now() - interval '1 hour'").await;
    assert!(store.look(&node).await.turns, "the first look is from the beginning");
    assert_eq!(store.claim_one(&node).await.instance, "order");
}
