//! Turns that begin without a claim and meet one: what becomes of the claim when the turn does not stand.

use serde_json::json;

use crate::support::{
    TestDatabase,
    hand::{Hand, facts, is_leased},
    world::{PATIENCE, sql_at, start},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_result_does_not_count_gives_back_the_claim_that_it_went_on_under() {
    let mut hand = Hand::new().await;
    let job = hand.begin_with_row().await;
    let taken_by_others = "update @activity_queue set fence = nextval('@fence_seq'), owner = null,
        owner_epoch = null, leased_at = null, due_at = clock_timestamp() + interval '1 hour'";
    sql_at(TestDatabase::get().url(), &hand.schema, taken_by_others).await;
    hand.finish(&job);
    let local = hand.turn().await;
    assert!(!is_leased(&local));
    hand.send("go").await;
    hand.claimed_again().await;
    hand.reply(&local, 1, json!([]), json!("waiting"));
    // The claim's own message is found by the next one, at once and not when the lease is over.
    let next = hand.turn().await;
    assert!(is_leased(&next));
    assert_eq!(facts(&next), ["event"]);
    assert_eq!(hand.provider.counters().leases_lost.get(), 1, "the activity's, and no turn's");
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_comes_to_a_local_step_gives_back_the_claim_that_it_went_on_under() {
    let mut hand = Hand::new().await;
    let job = hand.begin_with_row().await;
    hand.finish(&job);
    let local = hand.turn().await;
    assert!(!is_leased(&local));
    hand.send("go").await;
    hand.claimed_again().await;
    // The result of a turn that is late goes to the inbox alone.
    hand.until_waiting(2).await;
    hand.engine.complete(&json!({ "turns": [{ "h": local["h"], "abandon": true }] }).to_string(), 0);
    let next = hand.turn().await;
    assert!(is_leased(&next));
    assert_eq!(facts(&next).len(), 2, "{next}");
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_cancelled_activity_begins_no_turn_and_leaves_the_frame_alone() {
    let mut hand = Hand::new().await;
    let job = hand.begin_with_row().await;
    hand.send("go").await;
    let second = hand.turn().await;
    let commands =
        json!([{ "cancel": { "step": 1, "seq": 0 } }, { "event": { "step": 1, "name": "again" } }]);
    hand.reply(&second, 1, commands, json!("waiting"));
    // It is told to stop once the turn is committed.
    hand.pull(|hand| &mut hand.aborts).await;
    hand.finish(&job);
    hand.send("again").await;
    let third = hand.turn().await;
    assert!(is_leased(&third) && third.get("start").is_none(), "{third}");
    assert_eq!(facts(&third), ["event"]);
    assert_eq!(hand.provider.counters().local_turns.get(), 0);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_a_deleted_instance_does_not_answer_for_the_one_that_has_its_id() {
    let mut hand = Hand::new().await;
    let old = hand.turn().await;
    let deleted = "with deleted as (delete from @turn_queue) delete from @instance";
    sql_at(TestDatabase::get().url(), &hand.schema, deleted).await;
    start(&hand.client, "i", "main", json!("another")).await;
    hand.reply(&old, 0, json!([]), json!({ "completed": { "output": "old" } }));
    let new = hand.turn().await;
    hand.reply(&new, 0, json!([]), json!({ "completed": { "output": "new" } }));
    let end = hand.client.wait("i", PATIENCE).await.expect("wait").expect("an end");
    assert_eq!(end.output.as_deref(), Some("\"new\""));
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_what_goes_on_here_hears_of_an_end_elsewhere() {
    let mut hand = Hand::new().await;
    hand.turn().await;
    let ended = "update @instance set status = 'Completed', output = '1', finished_at = clock_timestamp()";
    let (waited, ()) = tokio::join!(hand.client.wait("i", PATIENCE), async {
        sql_at(TestDatabase::get().url(), &hand.schema, ended).await;
    });
    assert_eq!(waited.expect("no error").and_then(|row| row.output).as_deref(), Some("1"));
    hand.stop().await;
}
