//! Kept values: events with their times, effects in order, carried over, and what fits on replay.

use holdfast_replay::{CarryOver, End, KeptValue, StartInfo};

use crate::harness::*;

fn kept(key: &str, value: &str, at_ms: i64) -> KeptValue {
    KeptValue { key: key.to_owned(), value: value.to_owned(), at_ms }
}

#[test]
fn each_change_is_an_event_and_an_effect_also_in_the_turn_that_ends() {
    let commands = [set(0, "a", "1", 5), clear(0, "b"), clear_all(0), set(0, "c", "2", 6)];
    check(
        &Live::begin().turn(vec![], &commands, &completed("1")),
        r#"1 OrchestrationStarted
           2 KeyValueSet {"key":"a","value":"1","last_updated_at_ms":5}
           3 KeyValueCleared {"key":"b"}
           4 KeyValuesCleared {}
           5 KeyValueSet {"key":"c","value":"2","last_updated_at_ms":6}
           6 OrchestrationCompleted {"output":1}
           + value a=1 at 5
           + clear b
           + clear all
           + value c=2 at 6
           = completed 1"#,
    );
}

#[test]
fn the_next_execution_starts_from_what_is_kept() {
    let info = StartInfo { values: vec![kept("old", "o", 1), kept("gone", "g", 2)], ..start() };
    let mut live = Live::begin_with(info, 1);
    live.turn(vec![], &[set(0, "new", "n", 3), clear(0, "gone"), timer(0, 1)], WAITING);
    let mut cold = live.cold();
    assert_eq!(cold.activate().start.expect("cold").values.len(), 2, "as the execution began");
    let mut cold = live.cold();
    let commands = [set(0, "new", "n", 3), clear(0, "gone"), timer(0, 1)];
    let turn = cold.try_turn(vec![fired(4)], &commands, r#"{"continued":{"input":1}}"#).expect("it fits");
    let Some(End::ContinuedAsNew { carried, .. }) = turn.end else { panic!("it continues as new") };
    assert_eq!(
        carried,
        CarryOver { messages: vec![], values: vec![kept("new", "n", 3), kept("old", "o", 1)] }
    );
}

#[test]
fn a_read_of_another_instance_is_recorded_as_an_activity_of_the_engine() {
    let mut live = Live::begin();
    check(
        &live.turn(vec![], &[read(0, "other", "k"), timer(0, 5)], WAITING),
        r#"1 OrchestrationStarted
           2 ActivityScheduled {"name":"__holdfast:get-value","input":{"instance":"other","key":"k"}}
           3 TimerCreated {"fire_at_ms":1000005}
           + read 2 other k
           + timer 3 at 1000005"#,
    );
    let mut cold = live.cold();
    let commands = [read(0, "other", "k"), timer(0, 5)];
    cold.try_turn(vec![done(2, "null")], &commands, WAITING).expect("it fits");
    let other = [read(0, "other", "another key"), timer(0, 5)];
    check_mismatch(
        live.cold().try_turn(vec![], &other, WAITING),
        2,
        r#"activity "__holdfast:get-value" with input {"instance":"other","key":"k"} at step 0"#,
        r#"activity "__holdfast:get-value" with input {"instance":"other","key":"another key"} at step 0"#,
    );
}

#[test]
fn clears_in_a_row_fit_in_any_order_and_nothing_else_does() {
    let mut live = Live::begin();
    let recorded =
        [clear(0, "a"), clear(0, "b"), clear(0, "c"), set(0, "a", "1", 7), clear(0, "d"), timer(0, 1)];
    live.turn(vec![], &recorded, WAITING);
    let order = |places: [usize; 6]| places.map(|place| recorded[place].clone());
    live.cold().try_turn(vec![], &order([2, 0, 1, 3, 4, 5]), WAITING).expect("any order");
    let expected = r#"a clear of value "c" at step 0"#;
    let found = r#"a clear of value "d" at step 0"#;
    check_mismatch(live.cold().try_turn(vec![], &order([0, 1, 4, 3, 2, 5]), WAITING), 4, expected, found);
    let missing: Vec<String> = recorded[1..].to_vec();
    let expected = r#"a clear of value "a" at step 0"#;
    let found = r#"a clear of value "b" at step 0"#;
    let result = live.cold().try_turn(vec![], &missing, WAITING);
    let mismatch = result.expect_err("a clear is missing");
    assert_eq!((mismatch.expected.as_str(), mismatch.found.as_str()), (expected, found));
}
