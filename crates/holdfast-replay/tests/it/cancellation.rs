//! Cancellation of a whole execution: sticky; what was open is taken back, the code may clean up for a while.

use holdfast_replay::limits;

use crate::harness::*;

const ERROR: &str = r#"{"name":"CancelledError","message":"canceled: enough","code":"CANCELLED"}"#;

/// Waits for activity (event 2), timer (3), child (4).
fn busy() -> Live {
    let mut live = Live::begin();
    live.turn(vec![], &[activity(0, "a", "1"), timer(0, 9), child(0, "c", "1")], WAITING);
    live
}

/// Cancelled, with an activity (event 8) to clean up.
fn cleaning() -> Live {
    let mut live = busy();
    live.turn(vec![cancel_request("enough")], &[activity(1, "undo", "1")], WAITING);
    live
}

#[test]
fn what_is_open_is_taken_back_and_cleaning_up_is_carried_out() {
    check(
        &busy().turn(vec![cancel_request("enough")], &[activity(1, "undo", "1"), timer(1, 7)], WAITING),
        r#"5 OrchestrationCancelRequested {"reason":"enough"}
           6 ActivityCancelRequested <2 {"reason":"orchestration_cancelled"}
           7 SubOrchestrationCancelRequested <4 {"reason":"parent canceled"}
           8 ActivityScheduled {"name":"undo","input":1}
           9 TimerCreated {"fire_at_ms":1001007}
           + cancel activity 2
           + cancel timer 3
           + cancel child i::sub::4: parent canceled
           + activity 8 undo 1
           + timer 9 at 1001007
           + timer 5 at 1301000"#,
    );
}

/// Whatever the outcome, these are the lines after the facts.
#[track_caller]
fn check_cancelled(outcome: &str) {
    check(
        &busy().turn(vec![cancel_request("enough")], &[], outcome),
        &format!(
            r#"5 OrchestrationCancelRequested {{"reason":"enough"}}
               6 ActivityCancelRequested <2 {{"reason":"orchestration_cancelled"}}
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
    check_cancelled(&completed("1"));
    check_cancelled(r#"{"failed":{"error":1}}"#);
    check_cancelled(r#"{"continued":{"input":1}}"#);
    check_cancelled(r#"{"foreign":{"message":"m"}}"#);
    check_cancelled(r#""diverged""#);
    let live = cleaning();
    for mut live in [live.cold(), live] {
        let commands = if live.execution.is_warm() { vec![] } else { commands_of_cleaning() };
        let written = live.turn(vec![done(8, "2")], &commands, &completed("1"));
        check(
            &written,
            &format!(
                r#"9 ActivityCompleted <8 {{"result":2}}
                   10 OrchestrationFailed {{"error":{ERROR}}}
                   = cancelled {ERROR}"#
            ),
        );
    }
}

fn commands_of_cleaning() -> Vec<String> {
    vec![activity(0, "a", "1"), timer(0, 9), child(0, "c", "1"), activity(1, "undo", "1")]
}

#[test]
fn answers_to_what_was_open_are_dropped_also_from_the_same_batch() {
    let mut live = busy();
    let accepted = live.accept(vec![done(2, "1"), cancel_request("enough"), fired(3), child_done(4, "1")]);
    assert_eq!(accepted.accepted, [1, 2]);
    let reason = "answers what is no longer wanted";
    assert_eq!(accepted.dropped, [(3, reason), (4, reason)]);
    live.activate();
    check(
        &lines(&live.answer_at(2, &[activity(1, "between", "1"), event(1, "e")], WAITING).unwrap()),
        r#"5 ActivityCompleted <2 {"result":1}
           6 ActivityScheduled {"name":"between","input":1}
           7 ExternalSubscribed {"name":"e"}
           8 OrchestrationCancelRequested {"reason":"enough"}
           9 SubOrchestrationCancelRequested <4 {"reason":"parent canceled"}
           10 ActivityCancelRequested <6 {"reason":"orchestration_cancelled"}
           + cancel timer 3
           + cancel child i::sub::4: parent canceled
           + timer 8 at 1301000"#,
    );
    for mut live in [live.cold(), live] {
        assert_eq!(live.accept(vec![done(6, "1")]).dropped, [(5, reason)]);
    }
}

#[test]
fn an_event_after_the_request_is_for_a_wait_after_it() {
    let mut live = Live::begin();
    live.turn(vec![], &[event(0, "e")], WAITING);
    live.turn(vec![cancel_request("enough"), raised("e", "1")], &[event(2, "e"), event(2, "e")], WAITING);
    for mut live in [live.cold(), live] {
        let commands = [event(0, "e"), event(2, "e"), event(2, "e")];
        let commands = if live.execution.is_warm() { &[] } else { &commands[..] };
        let written = live.turn(vec![raised("e", "2")], commands, r#"{"continued":{"input":1}}"#);
        assert_eq!(written.last(), Some(&format!("= cancelled {ERROR}")));
    }
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
fn cancelled_before_the_first_turn_nothing_is_dispatched_that_was_asked_for_before() {
    check(
        &Live::begin().turn(vec![cancel_request("enough")], &[activity(0, "a", "1")], &completed("1")),
        &format!(
            r#"1 OrchestrationStarted
               2 ActivityScheduled {{"name":"a","input":1}}
               3 OrchestrationCancelRequested {{"reason":"enough"}}
               4 ActivityCancelRequested <2 {{"reason":"orchestration_cancelled"}}
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
fn the_time_to_clean_up_ends() {
    let live = cleaning();
    for mut live in [live.cold(), live] {
        let commands = if live.execution.is_warm() { vec![] } else { commands_of_cleaning() };
        let accepted = live.accept(vec![fired(5)]);
        assert_eq!(accepted.dropped, [(2, "the time to clean up is over")]);
        live.activate();
        check(
            &lines(&live.answer_at(1, &commands, WAITING).unwrap()),
            &format!(
                r#"9 ActivityCancelRequested <8 {{"reason":"orchestration_terminal_cancelled"}}
                   10 OrchestrationFailed {{"error":{ERROR}}}
                   + cancel activity 8
                   = cancelled {ERROR}"#
            ),
        );
    }
}

#[test]
fn code_that_swallows_every_error_does_not_run_on() {
    let mut live = busy();
    live.turn(vec![cancel_request("enough")], &[], WAITING);
    let flood = |count: u32| (0..count).map(|_| raised("e", "1")).collect::<Vec<_>>();
    let written = live.turn(flood(limits::MAX_CLEANUP_FACTS), &[], WAITING);
    assert!(written.last().is_some_and(|line| !line.starts_with('=')), "it may go on");
    live.turn(flood(1), &[], WAITING);
    let written = live.turn(vec![raised("e", "1")], &[], WAITING);
    assert_eq!(written.last(), Some(&format!("= cancelled {ERROR}")));
}

#[test]
fn a_second_request_is_dropped_while_cleaning_up() {
    let live = cleaning();
    for mut live in [live.cold(), live] {
        let accepted = live.accept(vec![cancel_request("again")]);
        assert_eq!(accepted.dropped, [(2, "cancellation was asked for already")]);
    }
}

#[test]
fn a_cancelled_history_replays_as_ended() {
    let mut live = cleaning();
    live.turn(vec![done(8, "2")], &[], &completed("1"));
    let mut cold = live.cold();
    let activation = cold.activate();
    assert_eq!(activation.facts.len(), 2);
    let turn = cold.answer_at(2, &commands_of_cleaning(), &completed("1")).unwrap();
    assert_eq!(lines(&turn), Vec::<String>::new());
}
