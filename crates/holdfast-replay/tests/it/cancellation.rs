//! Cancellation of a whole execution: sticky, and nothing starts at or after it.

use crate::harness::*;

const ERROR: &str = r#"{"name":"CancelledError","message":"canceled: enough","code":"CANCELLED"}"#;

/// Waits for activity (event 2), timer (3), child (4).
fn busy() -> Live {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", "1"), timer(0, 9), child(0, "c", "1")], WAITING);
    live
}

/// Whatever the outcome, these are the lines after the facts.
#[track_caller]
fn check_cancelled(outcome: &str) {
    check(
        &busy().turn(vec![cancel_request("enough")], &[], outcome),
        &format!(
            r#"5 OrchestrationCancelRequested {{"reason":"enough"}}
               6 ActivityCancelRequested <2 {{"reason":"orchestration_terminal_cancelled"}}
               7 SubOrchestrationCancelRequested <4 {{"reason":"parent canceled"}}
               8 OrchestrationFailed {{"error":{ERROR}}}
               + cancel activity 2
               + cancel timer 3
               + cancel child i::sub::4: parent canceled
               = cancelled {ERROR}"#
        ),
    );
}

#[test]
fn a_cancelled_execution_ends_as_cancelled_whatever_the_code_does() {
    check_cancelled(WAITING);
    check_cancelled(&completed("1"));
    check_cancelled(r#"{"failed":{"error":1}}"#);
    check_cancelled(r#"{"continued":{"input":1}}"#);
    check_cancelled(r#"{"foreign":{"message":"m"}}"#);
    check_cancelled(r#""diverged""#);
}

#[test]
fn code_that_ended_before_the_request_in_the_same_turn_is_cancelled_too() {
    let mut live = busy();
    live.accept(vec![fired(3), cancel_request("enough")]);
    live.activate();
    let turn = live.answer_at(1, &[detached(1, "d", "d-1")], &completed("1")).unwrap();
    let written = lines(&turn);
    assert!(written.contains(&"+ detached d-1 d".to_owned()), "{written:?}");
    assert_eq!(written.last(), Some(&format!("= cancelled {ERROR}")));
}

#[test]
fn commands_at_or_after_the_request_are_not_recorded() {
    let mut live = busy();
    check(
        &live.turn(
            vec![done(2, "1"), cancel_request("enough"), fired(3)],
            &[activity(1, "before", "1"), activity(2, "cleanup", "1"), detached(3, "late", "l")],
            WAITING,
        ),
        &format!(
            r#"5 ActivityCompleted <2 {{"result":1}}
               6 ActivityScheduled {{"name":"before","input":1}}
               7 OrchestrationCancelRequested {{"reason":"enough"}}
               8 TimerFired <3 {{}}
               9 SubOrchestrationCancelRequested <4 {{"reason":"parent canceled"}}
               10 ActivityCancelRequested <6 {{"reason":"orchestration_terminal_cancelled"}}
               11 OrchestrationFailed {{"error":{ERROR}}}
               + cancel child i::sub::4: parent canceled
               = cancelled {ERROR}"#
        ),
    );
    live.cold();
}

#[test]
fn code_that_stops_at_the_request_keeps_what_it_asked_for_before() {
    let mut live = busy();
    live.accept(vec![done(2, "1"), cancel_request("enough"), fired(3)]);
    live.activate();
    let turn = live.answer_at(2, &[activity(1, "before", "1")], WAITING).unwrap();
    assert!(lines(&turn)[1].contains("before"));
}

#[test]
fn cancelled_before_the_first_turn_records_start_request_and_end() {
    check(
        &Live::begin().turn(vec![cancel_request("enough")], &[activity(0, "a", "1")], WAITING),
        &format!(
            r#"1 OrchestrationStarted
               2 ActivityScheduled {{"name":"a","input":1}}
               3 OrchestrationCancelRequested {{"reason":"enough"}}
               4 ActivityCancelRequested <2 {{"reason":"orchestration_terminal_cancelled"}}
               5 OrchestrationFailed {{"error":{ERROR}}}
               = cancelled {ERROR}"#
        ),
    );
}

#[test]
fn code_that_does_not_fit_its_history_can_still_be_cancelled() {
    let mut cold = busy().cold();
    let written = cold.turn(vec![cancel_request("enough")], &[activity(0, "other", "1")], WAITING);
    assert_eq!(written.last(), Some(&format!("= cancelled {ERROR}")));
    assert!(!written.iter().any(|line| line.contains("other")));
}

#[test]
fn a_child_whose_result_came_along_is_not_asked_to_stop() {
    let written = busy().turn(vec![cancel_request("enough"), child_done(4, "1")], &[], WAITING);
    assert!(!written.iter().any(|line| line.contains("parent canceled")), "{written:?}");
}

#[test]
fn a_cancelled_history_replays_as_ended() {
    let mut live = busy();
    live.turn(vec![cancel_request("enough")], &[], WAITING);
    let mut cold = live.cold();
    let activation = cold.activate();
    assert_eq!(activation.facts.len(), 1);
    let commands = [activity(0, "a", "1"), timer(0, 9), child(0, "c", "1"), activity(1, "cleanup", "1")];
    let turn = cold.answer_at(1, &commands, WAITING).unwrap();
    assert_eq!(lines(&turn), Vec::<String>::new());
}
