//! What ordinary turns write: events in the exact order of facts and commands, effects beside them.

use holdfast_replay::{Carried, CarriedKind, StartInfo};

use crate::harness::*;

#[test]
fn first_turn_records_the_start_as_event_one() {
    let mut live = Live::begin();
    check(
        &live.turn(vec![], &[activity(0, "a", "1"), timer(0, 500)], WAITING),
        r#"1 OrchestrationStarted
           2 ActivityScheduled {"name":"a","input":1}
           3 TimerCreated {"fire_at_ms":1000500}
           + activity 2 a 1
           + timer 3 at 1000500"#,
    );
}

#[test]
fn commands_stand_behind_the_fact_they_follow() {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", "1"), activity(0, "b", "2")], WAITING);
    check(
        &live.turn(
            vec![done(3, "30"), raised("x", "1"), done(2, "20")],
            &[activity(1, "after-b", "3"), activity(3, "after-a", "4"), activity(3, "again", "5")],
            WAITING,
        ),
        r#"4 ActivityCompleted <3 {"result":30}
           5 ActivityScheduled {"name":"after-b","input":3}
           6 ExternalEvent {"name":"x","data":1}
           7 ActivityCompleted <2 {"result":20}
           8 ActivityScheduled {"name":"after-a","input":4}
           9 ActivityScheduled {"name":"again","input":5}
           + activity 5 after-b 3
           + activity 8 after-a 4
           + activity 9 again 5"#,
    );
}

#[test]
fn messages_before_the_first_turn_follow_the_start_and_its_commands() {
    let mut live = Live::begin();
    check(
        &live.turn(vec![raised("go", "true")], &[event(0, "go"), activity(1, "a", "1")], WAITING),
        r#"1 OrchestrationStarted
           2 ExternalSubscribed {"name":"go"}
           3 ExternalEvent {"name":"go","data":true}
           4 ActivityScheduled {"name":"a","input":1}
           + activity 4 a 1"#,
    );
}

#[test]
fn every_kind_of_command_has_its_event_and_effect() {
    let mut live = Live::begin();
    let rich = r#"{"activity":{"step":0,"name":"r","input":{"b":1,"a":2},"tag":"gpu","session":"s",
                   "retry":{"maxAttempts":2,"backoff":"fixed"},"timeoutMs":9}}"#;
    let named = r#"{"child":{"step":0,"name":"c","version":"2.0.0","instance":"mine","input":1}}"#;
    check(
        &live.turn(
            vec![],
            &[
                rich.to_owned(),
                event(0, "e"),
                queue(0, "q"),
                child(0, "c", "0"),
                named.to_owned(),
                detached(0, "d", "d-1"),
                status(0, "half"),
                r#"{"status":{"step":0}}"#.to_owned(),
            ],
            WAITING,
        ),
        r#"1 OrchestrationStarted
           2 ActivityScheduled {"name":"r","input":{"b":1,"a":2},"tag":"gpu","session":"s","retry":{"maxAttempts":2,"backoff":"fixed","baseDelayMs":1000,"maxDelayMs":60000,"jitterPercent":25},"timeout_ms":9}
           3 ExternalSubscribed {"name":"e"}
           4 QueueSubscribed {"name":"q"}
           5 SubOrchestrationScheduled {"name":"c","version":null,"instance":"i::sub::5","input":0}
           6 SubOrchestrationScheduled {"name":"c","version":"2.0.0","instance":"mine","input":1}
           7 OrchestrationChained {"name":"d","version":null,"instance":"d-1","input":1}
           8 CustomStatusUpdated {"status":"half"}
           9 CustomStatusUpdated {"status":null}
           + activity 2 r {"b":1,"a":2}
           + child 5 i::sub::5 c
           + child 6 mine c
           + detached d-1 d
           + status Some("half")
           + status None"#,
    );
}

#[test]
fn child_ids_name_the_execution_from_the_second_on() {
    let mut live = Live::begin_with(start(), 3);
    check(
        &live.turn(vec![], &[child(0, "c", "0")], WAITING),
        r#"1 OrchestrationStarted
           2 SubOrchestrationScheduled {"name":"c","version":null,"instance":"i::sub::3_2","input":0}
           + child 2 i::sub::3_2 c"#,
    );
}

#[test]
fn timer_counts_from_the_turn_and_never_wraps() {
    let mut live = Live::begin();
    live.turn(vec![], &[event(0, "e")], WAITING);
    check(
        &live.turn(vec![raised("e", "1")], &[timer(1, 0), timer(1, 1 << 40), timer(1, u64::MAX)], WAITING),
        r#"3 ExternalEvent {"name":"e","data":1}
           4 TimerCreated {"fire_at_ms":1001000}
           5 TimerCreated {"fire_at_ms":1099512628776}
           6 TimerCreated {"fire_at_ms":9223372036854775807}
           + timer 4 at 1001000
           + timer 5 at 1099512628776
           + timer 6 at 9223372036854775807"#,
    );
}

#[test]
fn cold_activation_carries_every_fact_and_a_warm_one_only_new() {
    let mut live = Live::begin();
    let first = live.execution.activation(FRAME);
    assert_eq!(
        serde_json::to_string(&first).unwrap(),
        r#"{"h":7,"start":{"instance":"i","execution":1,"name":"order","version":"1.0.0","input":{},"seed":"000000000000002a","atMs":1000000,"replaying":false},"n":0,"f":[],"r":0}"#
    );
    live.answer_at(0, &[activity(0, "a", "1"), timer(0, 1)], WAITING).unwrap();
    live.accept(vec![done(2, "20")]);
    live.accept(vec![]);
    let warm = live.activate();
    assert_eq!(
        serde_json::to_string(&warm).unwrap(),
        r#"{"h":7,"n":0,"f":[{"t":"done","at":1000000,"seq":0,"value":20}],"r":0}"#
    );
    live.answer_at(1, &[activity(1, "b", "1")], WAITING).unwrap();
    let mut cold = live.cold();
    cold.accept(vec![fired(3), failed(5, r#"{"message":"no"}"#)]);
    assert!(!cold.execution.is_warm() && cold.execution.has_new_facts());
    let activation = cold.activate();
    assert!(cold.execution.is_warm() && !cold.execution.has_new_facts());
    assert_eq!(
        serde_json::to_string(&activation).unwrap(),
        r#"{"h":7,"start":{"instance":"i","execution":1,"name":"order","version":"1.0.0","input":{},"seed":"000000000000002a","atMs":1000000,"replaying":true},"n":0,"f":[{"t":"done","at":1000000,"seq":0,"value":20},{"t":"done","at":1002000,"seq":1,"value":null},{"t":"fail","at":1002000,"seq":2,"error":{"message":"no"}}],"r":1}"#
    );
}

#[test]
fn cold_start_shows_parent_carried_messages_and_status() {
    let carried = vec![Carried { kind: CarriedKind::Queue, name: "q".to_owned(), data: json("[1]") }];
    let info =
        StartInfo { parent: Some(parent()), carried, custom_status: Some("old".to_owned()), ..start() };
    let mut live = Live::begin_with(info, 2);
    let activation = live.activate();
    assert_eq!(
        serde_json::to_string(&activation.start).unwrap(),
        r#"{"instance":"i","execution":2,"name":"order","version":"1.0.0","input":{},"parent":"boss","seed":"000000000000002a","atMs":1000000,"carried":[{"kind":"queue","name":"q","data":[1]}],"customStatus":"old","replaying":false}"#
    );
}

#[test]
fn the_clock_of_a_replayed_fact_is_the_one_of_its_turn() {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", "1")], WAITING);
    live.turn(vec![done(2, "1")], &[activity(1, "b", "1")], WAITING);
    let times: Vec<i64> = live.history.iter().map(|event| event.at_ms).collect();
    assert_eq!(times, [1_000_000, 1_000_000, 1_001_000, 1_001_000]);
}

#[test]
fn history_bytes_grow_alike_live_and_cold() {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", r#""x""#)], WAITING);
    live.turn(vec![done(2, "[1,2,3]")], &[timer(1, 5)], WAITING);
    assert_eq!(live.execution.history_bytes(), live.cold().execution.history_bytes());
    assert!(live.execution.history_bytes() > 100);
}

#[test]
fn an_activity_lost_in_the_turn_that_asked_for_it_is_never_queued() {
    let mut live = Live::begin();
    check(
        &live.turn(
            vec![raised("e", "1")],
            &[
                event(0, "e"),
                activity(0, "a", "1"),
                child(0, "c", "1"),
                timer(0, 9),
                cancel(1, 1),
                cancel(1, 2),
                cancel(1, 3),
            ],
            WAITING,
        ),
        r#"1 OrchestrationStarted
           2 ExternalSubscribed {"name":"e"}
           3 ActivityScheduled {"name":"a","input":1}
           4 SubOrchestrationScheduled {"name":"c","version":null,"instance":"i::sub::4","input":1}
           5 TimerCreated {"fire_at_ms":1000009}
           6 ExternalEvent {"name":"e","data":1}
           7 ActivityCancelRequested <3 {"reason":"dropped_future"}
           8 SubOrchestrationCancelRequested <4 {"reason":"dropped_future"}
           9 TimerCancelled <5 {}"#,
    );
}

#[test]
fn losers_of_a_race_are_taken_back() {
    let mut live = Live::begin();
    let commands = [activity(0, "a", "1"), timer(0, 9), event(0, "e"), queue(0, "q"), child(0, "c", "1")];
    live.turn(vec![], &commands, WAITING);
    let cancels = [cancel(1, 1), cancel(1, 2), cancel(1, 3), cancel(1, 4)];
    let mut cold = live.cold();
    let expected = r#"7 ActivityCompleted <2 {"result":0}
           8 TimerCancelled <3 {}
           9 ExternalSubscribedCancelled <4 {"reason":"dropped_future"}
           10 QueueSubscriptionCancelled <5 {"reason":"dropped_future"}
           11 SubOrchestrationCancelRequested <6 {"reason":"dropped_future"}
           + cancel timer 3
           + cancel child i::sub::6: parent dropped sub-orchestration future"#;
    check(&live.turn(vec![done(2, "0")], &cancels, WAITING), expected);
    check(&cold.turn(vec![done(2, "0")], &[&commands[..], &cancels[..]].concat(), WAITING), expected);
}

#[test]
fn a_result_that_came_with_the_winner_needs_no_taking_back() {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", "1"), activity(0, "b", "1")], WAITING);
    check(
        &live.turn(vec![done(2, "0"), done(3, "1")], &[cancel(1, 1)], WAITING),
        r#"4 ActivityCompleted <2 {"result":0}
           5 ActivityCancelRequested <3 {"reason":"dropped_future"}
           6 ActivityCompleted <3 {"result":1}"#,
    );
    live.cold();
}
