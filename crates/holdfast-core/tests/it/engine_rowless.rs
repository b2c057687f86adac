//! Activities without a row: they run under the lease of their turn, get a row when they take long, and are found again when
//! that lease is cut off.

use serde_json::{Value, json};

use crate::support::{
    hand::{Hand, facts, is_leased},
    world::PATIENCE,
};

const TASKS: &str = "select count(*) from @activity_queue";

/// What is inserted, updated or deleted in a table from now on is counted.
async fn counted(hand: &Hand, table: &str) {
    let statements = [
        "create table @touched (what text)".to_owned(),
        "create function @touch() returns trigger language plpgsql set search_path from current as
         $$ begin insert into @touched values (tg_op); return null; end $$"
            .to_owned(),
        format!(
            "create trigger touched after insert or update or delete on @{table} for each row execute function @touch()"
        ),
    ];
    for statement in statements {
        hand.sql(&statement).await;
    }
}

async fn touched(hand: &Hand, what: &str) -> i64 {
    hand.number(&format!("select count(*) from @touched where what = '{what}'")).await
}

async fn output(hand: &Hand) -> Option<String> {
    hand.client.wait("i", PATIENCE).await.expect("wait").expect("an end").output
}

fn activity(step: u32) -> Value {
    json!([{ "activity": { "step": step, "name": "slow", "input": null } }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_steps_write_their_history_and_nothing_else() {
    let mut hand = Hand::rowless().await;
    let mut turn = hand.turn().await;
    counted(&hand, "activity_queue").await;
    hand.sql("create trigger touched after insert or update or delete on @turn_queue for each row execute function @touch()")
        .await;
    for step in 0..3 {
        hand.reply(&turn, step, activity(step), json!("waiting"));
        let job = hand.pull(|hand| &mut hand.activities).await;
        assert_eq!(job["delivery"], 1, "{job}");
        hand.finish(&job);
        turn = hand.turn().await;
        assert!(is_leased(&turn));
        assert_eq!(facts(&turn), ["done"]);
    }
    hand.reply(&turn, 3, json!([]), json!({ "completed": { "output": 3 } }));
    assert_eq!(output(&hand).await.as_deref(), Some("3"));
    assert_eq!((touched(&hand, "INSERT").await, touched(&hand, "UPDATE").await), (0, 0));
    assert_eq!(touched(&hand, "DELETE").await, 1, "the turn row, at the end");
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_long_gets_its_row_and_the_lease_of_its_turn_ends() {
    let mut hand = Hand::new().await;
    let job = hand.begin().await;
    let free = "select count(*) from @turn_queue where owner is null and history_len = 3 and not cut_off";
    hand.until(1, free).await;
    let leased =
        "select count(*) from @activity_queue where owner is not null and deliveries = 1 and attempt = 1";
    assert_eq!(hand.number(leased).await, 1);
    hand.send("go").await;
    let event = hand.turn().await;
    assert_eq!(facts(&event), ["event"], "a message is not held up by it");
    hand.reply(&event, 1, json!([]), json!("waiting"));
    hand.finish(&job);
    let result = hand.turn().await;
    assert_eq!(facts(&result), ["done"]);
    hand.reply(&result, 2, json!([]), json!({ "completed": { "output": 2 } }));
    assert_eq!(output(&hand).await.as_deref(), Some("2"));
    assert_eq!(hand.number(TASKS).await + hand.number("select count(*) from @inbox").await, 0);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_lease_was_cut_off_runs_again_and_its_first_body_is_told() {
    let mut hand = Hand::rowless().await;
    let first = hand.begin().await;
    let cut_off = "update @turn_queue set cut_off = true, fence = nextval('@fence_seq'), owner = null, owner_epoch = null,
        leased_at = null, due_at = clock_timestamp()";
    hand.sql(cut_off).await;
    let again = hand.turn().await;
    assert!(again.get("start").is_some(), "its frame is not trusted: {again}");
    let abort = hand.pull(|hand| &mut hand.aborts).await;
    assert_eq!(abort["h"], first["h"]);
    let commands = json!([
        { "activity": { "step": 0, "name": "slow", "input": null } },
        { "event": { "step": 0, "name": "go" } },
    ]);
    hand.reply(&again, 0, commands, json!("waiting"));
    hand.until(1, "select count(*) from @activity_queue where deliveries >= 1").await;
    // The first body has not ended: this process goes on with it under the lease of the row.
    hand.until(1, "select count(*) from @activity_queue where deliveries = 2 and owner is not null").await;
    hand.finish(&first);
    let result = hand.turn().await;
    assert_eq!(facts(&result), ["done"]);
    hand.reply(&result, 1, json!([]), json!({ "completed": { "output": 1 } }));
    assert_eq!(output(&hand).await.as_deref(), Some("1"));
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_fails_is_tried_again_from_its_row() {
    let mut hand = Hand::rowless().await;
    let turn = hand.turn().await;
    let retry = json!({ "maxAttempts": 2, "backoff": "fixed", "baseDelayMs": 1, "jitterPercent": 0 });
    let commands = json!([{ "activity": { "step": 0, "name": "slow", "input": null, "retry": retry } }]);
    hand.reply(&turn, 0, commands, json!("waiting"));
    let job = hand.pull(|hand| &mut hand.activities).await;
    hand.fail(&job);
    let second = hand.pull(|hand| &mut hand.activities).await;
    assert_eq!((&second["attempt"], &second["delivery"]), (&json!(2), &json!(1)), "{second}");
    hand.fail(&second);
    let turn = hand.turn().await;
    assert_eq!(facts(&turn), ["fail"]);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_comes_during_a_turn_goes_through_the_inbox() {
    let mut hand = Hand::rowless().await;
    let turn = hand.turn().await;
    let commands = json!([
        { "activity": { "step": 0, "name": "slow", "input": 1 } },
        { "activity": { "step": 0, "name": "slow", "input": 2 } },
        { "activity": { "step": 0, "name": "slow", "input": 3 } },
    ]);
    hand.reply(&turn, 0, commands, json!("waiting"));
    let jobs = [
        hand.pull(|hand| &mut hand.activities).await,
        hand.pull(|hand| &mut hand.activities).await,
        hand.pull(|hand| &mut hand.activities).await,
    ];
    hand.finish(&jobs[0]);
    let first = hand.turn().await;
    hand.finish(&jobs[1]);
    hand.until_waiting(1).await;
    hand.reply(&first, 1, json!([]), json!("waiting"));
    let second = hand.turn().await;
    assert!(is_leased(&second));
    assert_eq!(facts(&second), ["done"]);
    hand.until(1, "select count(*) from @activity_queue where owner is not null").await;
    hand.reply(&second, 2, json!([]), json!("waiting"));
    hand.finish(&jobs[2]);
    let third = hand.turn().await;
    assert_eq!(facts(&third), ["done"]);
    hand.reply(&third, 3, json!([]), json!({ "completed": { "output": 3 } }));
    assert_eq!(output(&hand).await.as_deref(), Some("3"));
    assert_eq!(hand.number(TASKS).await, 0);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_is_not_held_up_by_one() {
    let mut hand = Hand::rowless().await;
    let turn = hand.turn().await;
    let commands = json!([
        { "activity": { "step": 0, "name": "slow", "input": null } },
        { "timer": { "step": 0, "delayMs": 1 } },
    ]);
    hand.reply(&turn, 0, commands, json!("waiting"));
    let job = hand.pull(|hand| &mut hand.activities).await;
    let fired = hand.turn().await;
    assert_eq!(facts(&fired), ["done"]);
    assert_eq!(hand.number(TASKS).await, 1, "it has its row");
    hand.reply(&fired, 1, json!([]), json!("waiting"));
    hand.finish(&job);
    assert_eq!(facts(&hand.turn().await), ["done"]);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_leaves_its_row_for_others() {
    let mut hand = Hand::rowless().await;
    hand.begin().await;
    hand.engine.shutdown(std::time::Duration::ZERO).await;
    let free = "select count(*) from @activity_queue where owner is null and deliveries = 1 and due_at <= clock_timestamp()";
    assert_eq!(hand.number(free).await, 1);
    let settled = "select count(*) from @turn_queue where owner is null and history_len = 3 and not cut_off";
    assert_eq!(hand.number(settled).await, 1);
    hand.stop().await;
}
