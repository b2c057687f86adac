//! Code that does not fit its history: found, with position, what was expected and what was found.

use crate::harness::*;

/// History: activity (2), its result (3), timer (4), wait for event (5); commands 0, 1, 2 at steps 0, 1, 1.
fn recorded() -> (Live, Vec<String>) {
    let mut live = Live::begin();
    let commands = vec![activity(0, "a", r#"{"k":1}"#), timer(1, 9), event(1, "e")];
    live.turn(vec![], &commands[..1], WAITING);
    live.turn(vec![done(2, "1")], &commands[1..], WAITING);
    (live, commands)
}

/// Replaces command `index` on replay and expects the mismatch.
#[track_caller]
fn check_changed(index: usize, command: String, position: u32, expected: &str, found: &str) {
    let (live, mut commands) = recorded();
    commands[index] = command;
    check_mismatch(live.cold().try_turn(vec![], &commands, WAITING), position, expected, found);
}

#[test]
fn the_same_commands_fit() {
    let (live, commands) = recorded();
    check(&live.cold().turn(vec![], &commands, WAITING), "");
}

#[test]
fn another_activity_name_is_found() {
    check_changed(
        0,
        activity(0, "b", r#"{"k":1}"#),
        2,
        r#"activity "a" with input {"k":1} at step 0"#,
        r#"activity "b" with input {"k":1} at step 0"#,
    );
}

#[test]
fn another_input_is_found_even_by_spelling() {
    check_changed(
        0,
        activity(0, "a", r#"{"k":1.0}"#),
        2,
        r#"activity "a" with input {"k":1} at step 0"#,
        r#"activity "a" with input {"k":1.0} at step 0"#,
    );
}

#[test]
fn another_tag_or_session_is_found() {
    let tagged = r#"{"activity":{"step":0,"name":"a","input":{"k":1},"tag":"t","session":"s"}}"#;
    check_changed(
        0,
        tagged.to_owned(),
        2,
        r#"activity "a" with input {"k":1} at step 0"#,
        r#"activity "a" with tag "t" on session "s" with input {"k":1} at step 0"#,
    );
}

#[test]
fn another_kind_is_found() {
    check_changed(1, status(1, "s"), 4, "a timer at step 1", "a custom status at step 1");
    check_changed(
        2,
        queue(1, "e"),
        5,
        r#"a wait for event "e" at step 1"#,
        r#"a wait for queue "e" at step 1"#,
    );
    check_changed(2, cancel(1, 1), 5, r#"a wait for event "e" at step 1"#, "a cancel of command 1 at step 1");
}

#[test]
fn another_event_name_is_found() {
    check_changed(
        2,
        event(1, "f"),
        5,
        r#"a wait for event "e" at step 1"#,
        r#"a wait for event "f" at step 1"#,
    );
}

#[test]
fn another_step_is_found() {
    check_changed(1, timer(0, 9), 4, "a timer at step 1", "a timer at step 0");
}

#[test]
fn what_may_change_is_not_compared() {
    let mut live = Live::begin();
    live.turn(vec![], &[timer(0, 9), status(0, "a"), child(0, "c", "1"), activity(0, "a", "1")], WAITING);
    let other = r#"{"child":{"step":0,"name":"c","version":"9","instance":"x","input":1}}"#.to_owned();
    let retried =
        r#"{"activity":{"step":0,"name":"a","input":1,"retry":{"maxAttempts":9},"timeoutMs":1}}"#.to_owned();
    check(&live.cold().turn(vec![], &[timer(0, 99_999), status(0, "b"), other, retried], WAITING), "");
}

#[test]
fn children_and_detached_starts_are_compared() {
    let mut live = Live::begin();
    live.turn(vec![], &[child(0, "c", "1"), detached(0, "d", "x")], WAITING);
    check_mismatch(
        live.cold().try_turn(vec![], &[child(0, "c", "2"), detached(0, "d", "x")], WAITING),
        2,
        r#"sub-orchestration "c" with input 1 at step 0"#,
        r#"sub-orchestration "c" with input 2 at step 0"#,
    );
    check_mismatch(
        live.cold().try_turn(vec![], &[child(0, "c", "1"), detached(0, "d", "y")], WAITING),
        3,
        r#"detached orchestration "d" as "x" with input 1 at step 0"#,
        r#"detached orchestration "d" as "y" with input 1 at step 0"#,
    );
}

#[test]
fn another_target_of_a_cancel_is_found() {
    let mut live = Live::begin();
    let commands = [timer(0, 1), timer(0, 2), event(0, "e")];
    live.turn(vec![], &commands, WAITING);
    live.turn(vec![raised("e", "1")], &[cancel(1, 0)], WAITING);
    let changed = [&commands[..], &[cancel(1, 1)]].concat();
    check_mismatch(
        live.cold().try_turn(vec![], &changed, WAITING),
        6,
        "a cancel of command 0 at step 1",
        "a cancel of command 1 at step 1",
    );
}

#[test]
fn a_missing_command_is_named() {
    let (live, commands) = recorded();
    check_mismatch(
        live.cold().try_turn(vec![], &commands[..2], WAITING),
        5,
        r#"a wait for event "e" at step 1"#,
        "no such command: it is waiting",
    );
}

#[test]
fn an_early_return_is_found_with_commands_left() {
    let (live, commands) = recorded();
    check_mismatch(
        live.cold().try_turn(vec![], &commands[..1], &completed("1")),
        4,
        "a timer at step 1",
        "no such command: it completed with 1",
    );
}

#[test]
fn an_early_return_is_found_without_commands_left() {
    let (live, commands) = recorded();
    check_mismatch(
        live.cold().try_turn(vec![], &commands, &completed("1")),
        6,
        "an execution that goes on",
        "an early end: it completed with 1",
    );
    let mut cold = live.cold();
    cold.accept(vec![]);
    cold.activate();
    check_mismatch(
        cold.answer_at(0, &commands[..1], r#"{"failed":{"error":0}}"#),
        4,
        "a timer at step 1",
        "no such command: it failed with 0",
    );
}

#[test]
fn divergence_names_the_recorded_command_that_is_missing() {
    let mut live = Live::begin();
    live.turn(vec![], &[timer(0, 1), activity(0, "b", "1")], WAITING);
    live.turn(vec![done(3, "1")], &[timer(1, 5)], WAITING);
    let mut cold = live.cold();
    cold.accept(vec![]);
    cold.activate();
    check_mismatch(
        cold.answer_at(0, &[timer(0, 1)], r#""diverged""#),
        3,
        r#"activity "b" with input 1 at step 0"#,
        "no such command: it has not given the command that the next fact answers",
    );
}

#[test]
fn a_command_more_at_a_recorded_step_is_found() {
    let (live, mut commands) = recorded();
    commands.push(activity(1, "new", "1"));
    check_mismatch(
        live.cold().try_turn(vec![], &commands, WAITING),
        6,
        "no further command",
        r#"activity "new" with input 1 at step 1"#,
    );
    let (mut warm, _) = recorded();
    check_mismatch(
        warm.try_turn(vec![], &[timer(1, 1)], WAITING),
        6,
        "no further command",
        "a timer at step 1",
    );
}

#[test]
fn commands_after_new_facts_go_on_from_history() {
    let (live, mut commands) = recorded();
    commands.push(activity(2, "new", "1"));
    check(
        &live.cold().turn(vec![raised("e", "1")], &commands, WAITING),
        r#"6 ExternalEvent {"name":"e","data":1}
           7 ActivityScheduled {"name":"new","input":1}
           + activity 7 new 1"#,
    );
}

#[test]
fn a_malformed_reply_is_told_in_clear_text() {
    let answer = |applied, commands: &[String]| {
        let mut live = recorded().0;
        live.accept(vec![raised("e", "1")]);
        live.activate();
        live.answer_at(applied, commands, WAITING)
    };
    check_mismatch(answer(3, &[]), 6, "2 facts", "an answer after 3 facts");
    check_mismatch(answer(1, &[]), 6, "2 facts", "a wait after 1 of them");
    check_mismatch(answer(2, &[timer(3, 1)]), 6, "a command at a step from 0 to 2", "a timer at step 3");
    check_mismatch(
        answer(2, &[timer(2, 1), timer(1, 1)]),
        6,
        "a command at a step from 2 to 2",
        "a timer at step 1",
    );
    for seq in [3, 4, 99] {
        check_mismatch(
            answer(2, &[cancel(2, seq), timer(2, 1)]),
            6,
            "a cancel of an earlier activity, timer, wait or child",
            &format!("a cancel of command {seq} at step 2"),
        );
    }
}

#[test]
fn an_answer_of_another_frame_or_of_none_is_refused() {
    let mut live = Live::begin();
    check_mismatch(
        live.answer_at(0, &[], WAITING),
        1,
        "no activation to be answered",
        "an answer of frame 7",
    );
    live.execution.activation(holdfast_replay::FrameId(8));
    check_mismatch(live.answer_at(0, &[], WAITING), 1, "an activation of frame 8", "an answer of frame 7");
}

#[test]
fn a_mismatch_changes_nothing() {
    let (live, commands) = recorded();
    let mut cold = live.cold();
    cold.accept(vec![raised("e", "1")]);
    cold.activate();
    assert!(cold.answer_at(2, &commands[..1], WAITING).is_err());
    assert_eq!(cold.execution.history_len(), 5);
    let turn = cold.execution.abort(json(r#"{"code":"NONDETERMINISM"}"#));
    cold.commit(&turn);
    check(
        &lines(&turn),
        r#"6 ExternalEvent {"name":"e","data":1}
           7 OrchestrationFailed {"error":{"code":"NONDETERMINISM"}}
           + cancel timer 4
           = failed {"code":"NONDETERMINISM"}"#,
    );
}

#[test]
fn an_ended_history_is_checked_to_its_end() {
    let (mut live, mut commands) = recorded();
    live.turn(vec![raised("e", "1")], &[status(2, "s")], &completed("5"));
    commands.push(status(2, "s"));
    check(&live.cold().turn(vec![], &commands, &completed("5")), "");
    check_mismatch(
        live.cold().try_turn(vec![], &commands, &completed("6")),
        8,
        "the end OrchestrationCompleted",
        "another end: it completed with 6",
    );
    check_mismatch(
        live.cold().try_turn(vec![], &commands, WAITING),
        8,
        "the end OrchestrationCompleted",
        "another end: it is waiting",
    );
}

#[test]
fn the_message_says_position_expected_and_found() {
    let (live, mut commands) = recorded();
    commands[1] = event(1, "x");
    let mismatch = live.cold().try_turn(vec![], &commands, WAITING).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        r#"nondeterministic: at event 4 history has a timer at step 1 but the code gave a wait for event "x" at step 1"#
    );
}
