//! How executions end: terminal event last, what is open taken back, the parent told, unread messages carried on.

use holdfast_replay::{Carried, CarriedKind, StartInfo};

use crate::harness::*;

/// An execution with a parent that waits for activity (event 2), timer (3), child (4).
fn busy() -> Live {
    let mut live = Live::begin_with(StartInfo { parent: Some(parent()), ..start() }, 1);
    live.turn(vec![], &[activity(0, "a", "1"), timer(0, 9), child(0, "c", "1")], WAITING);
    live
}

#[test]
fn completing_takes_back_what_is_open_and_tells_the_parent() {
    check(
        &busy().turn(vec![raised("e", "1")], &[], &completed("5")),
        r#"5 ExternalEvent {"name":"e","data":1}
           6 ActivityCancelRequested <2 {"reason":"orchestration_terminal_completed"}
           7 OrchestrationCompleted {"output":5}
           + cancel activity 2
           + cancel timer 3
           + tell boss ok 5
           = completed 5"#,
    );
}

#[test]
fn failing_takes_back_what_is_open_and_tells_the_parent() {
    check(
        &busy().turn(vec![fired(3)], &[], r#"{"failed":{"error":{"name":"E","message":"m"}}}"#),
        r#"5 TimerFired <3 {}
           6 ActivityCancelRequested <2 {"reason":"orchestration_terminal_failed"}
           7 OrchestrationFailed {"error":{"name":"E","message":"m"}}
           + cancel activity 2
           + tell boss error {"name":"E","message":"m"}
           = failed {"name":"E","message":"m"}"#,
    );
}

#[test]
fn continuing_as_new_does_not_tell_the_parent() {
    check(
        &busy().turn(vec![fired(3)], &[], r#"{"continued":{"input":2,"version":"2.0.0"}}"#),
        r#"5 TimerFired <3 {}
           6 ActivityCancelRequested <2 {"reason":"orchestration_terminal_continued_as_new"}
           7 OrchestrationContinuedAsNew {"input":2,"version":"2.0.0"}
           + cancel activity 2
           = continued 2 Some("2.0.0") []"#,
    );
}

#[test]
fn commands_of_the_last_turn_are_recorded_but_only_detached_starts_and_status_take_effect() {
    let mut live = Live::begin();
    check(
        &live.turn(
            vec![],
            &[
                activity(0, "a", "1"),
                timer(0, 9),
                child(0, "c", "1"),
                detached(0, "d", "d-1"),
                status(0, "bye"),
            ],
            r#"{"continued":{"input":1}}"#,
        ),
        r#"1 OrchestrationStarted
           2 ActivityScheduled {"name":"a","input":1}
           3 TimerCreated {"fire_at_ms":1000009}
           4 SubOrchestrationScheduled {"name":"c","version":null,"instance":"i::sub::4","input":1}
           5 OrchestrationChained {"name":"d","version":null,"instance":"d-1","input":1}
           6 CustomStatusUpdated {"status":"bye"}
           7 ActivityCancelRequested <2 {"reason":"orchestration_terminal_continued_as_new"}
           8 OrchestrationContinuedAsNew {"input":1,"version":null}
           + detached d-1 d
           + status Some("bye")
           = continued 1 None []"#,
    );
}

#[test]
fn facts_behind_the_end_are_recorded_before_it() {
    let mut live = busy();
    live.accept(vec![fired(3), done(2, "2"), raised("late", "1")]);
    live.activate();
    check(
        &lines(&live.answer_at(1, &[], &completed("1")).unwrap()),
        r#"5 TimerFired <3 {}
           6 ActivityCompleted <2 {"result":2}
           7 ExternalEvent {"name":"late","data":1}
           8 OrchestrationCompleted {"output":1}
           + tell boss ok 1
           = completed 1"#,
    );
}

#[test]
fn foreign_wait_fails_the_execution_with_its_message() {
    check(
        &busy().turn(vec![], &[], r#"{"foreign":{"message":"use ctx.scheduleTimer"}}"#)[2..],
        r#"+ cancel activity 2
           + cancel timer 3
           + tell boss error {"name":"ForeignWaitError","message":"use ctx.scheduleTimer","code":"FOREIGN_WAIT"}
           = failed {"name":"ForeignWaitError","message":"use ctx.scheduleTimer","code":"FOREIGN_WAIT"}"#,
    );
}

#[test]
fn a_foreign_wait_on_replay_or_a_command_from_outside_is_still_a_foreign_wait() {
    let foreign = r#"{"foreign":{"message":"m"}}"#;
    let mut live = busy();
    let mut cold = live.cold();
    let early = cold.turn(vec![], &[activity(0, "a", "1")], foreign);
    let outside = live.turn(vec![], &[activity(0, "outside", "1")], foreign);
    assert_eq!(early, outside);
    assert!(early.iter().any(|line| line.contains("FOREIGN_WAIT")));
}

#[test]
fn abort_records_the_facts_and_ends_without_the_code() {
    let mut live = busy();
    live.accept(vec![done(2, "2")]);
    let turn = live.execution.abort(json(r#"{"code":"POISONED"}"#));
    live.commit(&turn);
    check(
        &lines(&turn),
        r#"5 ActivityCompleted <2 {"result":2}
           6 OrchestrationFailed {"error":{"code":"POISONED"}}
           + cancel timer 3
           + tell boss error {"code":"POISONED"}
           = failed {"code":"POISONED"}"#,
    );
    assert_eq!(lines(&live.execution.abort(json("1"))), Vec::<String>::new());
    live.cold();
}

#[test]
fn abort_without_a_new_time_carries_the_time_of_the_last_turn() {
    let mut live = busy();
    live.turn(vec![raised("e", "1")], &[], WAITING);
    let turn = live.cold().execution.abort(json("1"));
    assert!(turn.events.iter().all(|event| event.at_ms == 1_001_000));
}

#[test]
fn abort_before_the_first_turn_records_the_start() {
    let mut live = Live::begin();
    live.accept(vec![raised("e", "1")]);
    check(
        &lines(&live.execution.abort(json("1"))),
        r#"1 OrchestrationStarted
           2 ExternalEvent {"name":"e","data":1}
           3 OrchestrationFailed {"error":1}
           = failed 1"#,
    );
}

#[test]
fn abort_after_a_mismatch_still_records_the_first_turn() {
    let mut live = Live::begin();
    live.accept(vec![raised("e", "1")]);
    live.activate();
    assert!(live.answer_at(9, &[], WAITING).is_err());
    assert_eq!(lines(&live.execution.abort(json("1"))).len(), 4);
}

#[test]
fn unread_messages_of_all_names_are_carried_in_the_order_they_came() {
    let carried = vec![
        Carried { kind: CarriedKind::Queue, name: "q".to_owned(), data: json("0") },
        Carried { kind: CarriedKind::Event, name: "b".to_owned(), data: json("1") },
    ];
    let mut live = Live::begin_with(StartInfo { carried, ..start() }, 2);
    live.turn(vec![queued("z", "2"), raised("a", "3"), queued("q", "4")], &[], WAITING);
    let mut cold = live.cold();
    let commands = [queue(4, "q"), event(4, "none")];
    let expected = "= continued 0 None [Event b 1, Queue z 2, Event a 3, Queue q 4, Queue a 5]";
    for live in [&mut live, &mut cold] {
        let written = live.turn(vec![queued("a", "5")], &commands, r#"{"continued":{"input":0}}"#);
        assert_eq!(written.last().map(String::as_str), Some(expected));
    }
}

#[test]
fn a_message_behind_the_end_is_carried_too() {
    let mut live = Live::begin();
    live.turn(vec![], &[event(0, "go")], WAITING);
    live.accept(vec![raised("go", "1"), raised("go", "2"), queued("q", "3")]);
    live.activate();
    let turn = live.answer_at(1, &[], r#"{"continued":{"input":0}}"#).unwrap();
    let expected = "= continued 0 None [Event go 2, Queue q 3]";
    assert_eq!(lines(&turn).last().map(String::as_str), Some(expected));
}

#[test]
fn a_wait_of_code_that_has_ended_takes_no_message() {
    let mut live = Live::begin();
    live.turn(vec![], &[event(0, "go"), event(0, "go")], WAITING);
    live.accept(vec![raised("go", "1"), raised("go", "2")]);
    live.activate();
    let turn = live.answer_at(1, &[], r#"{"continued":{"input":0}}"#).unwrap();
    assert_eq!(lines(&turn).last().map(String::as_str), Some("= continued 0 None [Event go 2]"));
}

#[test]
fn a_cancelled_wait_takes_no_message() {
    let mut live = Live::begin();
    let commands = [event(0, "e"), event(0, "e"), queue(0, "q"), timer(0, 1)];
    live.turn(vec![], &commands, WAITING);
    live.turn(vec![fired(5)], &[cancel(1, 0), cancel(1, 2)], WAITING);
    let mut cold = live.cold();
    let messages = || vec![raised("e", "1"), raised("e", "2"), queued("q", "3")];
    let expected = "= continued 0 None [Event e 2, Queue q 3]";
    let warm = live.turn(messages(), &[], r#"{"continued":{"input":0}}"#);
    assert_eq!(warm.last().map(String::as_str), Some(expected));
    let all = [&commands[..], &[cancel(1, 0), cancel(1, 2)]].concat();
    assert_eq!(cold.turn(messages(), &all, r#"{"continued":{"input":0}}"#), warm);
}

#[test]
fn a_message_goes_to_the_oldest_open_wait() {
    let mut live = Live::begin();
    live.turn(vec![], &[event(0, "e"), event(0, "e")], WAITING);
    live.turn(vec![raised("e", "1")], &[cancel(1, 1)], WAITING);
    let written = live.turn(vec![raised("e", "2")], &[], r#"{"continued":{"input":0}}"#);
    assert_eq!(written.last().map(String::as_str), Some("= continued 0 None [Event e 2]"));
}

#[test]
fn limits_end_the_execution_with_a_clear_error() {
    let long = "n".repeat(513);
    for command in [activity(0, &long, "1"), event(0, &long), detached(0, "d", &long), child(0, &long, "1")] {
        let written = Live::begin().turn(vec![], &[command], WAITING);
        assert_eq!(written.len(), 3);
        assert!(written[2].contains("LIMIT_EXCEEDED") && written[2].contains("513 bytes"), "{written:?}");
    }
    let fits = "n".repeat(512);
    assert_eq!(Live::begin().turn(vec![], &[event(0, &fits)], WAITING).len(), 2);
    let many = vec![timer(0, 1); 100_001];
    let written = Live::begin().turn(vec![], &many, WAITING);
    assert!(written[2].contains("100001 commands, more than fanOutLimit (100000)"), "{written:?}");
}
