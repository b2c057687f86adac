//! Which messages become facts and which are dropped, and what stays for the next turn.

use holdfast_replay::{EventId, MessageBody};

use crate::harness::*;

/// A waiting execution with activity (event 2), timer (3), child (4), wait (5) and a race's loser (event 6).
fn busy() -> Live {
    let mut live = Live::begin();
    let commands =
        [activity(0, "a", "1"), timer(0, 9), child(0, "c", "1"), event(0, "e"), activity(0, "loser", "1")];
    live.turn(vec![], &[&commands[..], &[cancel(0, 4)]].concat(), WAITING);
    live
}

/// Dropped for this reason, live and cold alike; nothing became a fact.
#[track_caller]
fn check_dropped(body: MessageBody, reason: &str) {
    let mut live = busy();
    for mut live in [live.cold(), {
        live.turn(vec![], &[], WAITING);
        live
    }] {
        let accepted = live.accept(vec![body.clone()]);
        assert_eq!(accepted.accepted, Vec::<i64>::new());
        let reasons: Vec<&str> = accepted.dropped.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [reason]);
        assert!(!live.execution.has_new_facts());
    }
}

#[test]
fn completion_for_another_execution_is_dropped() {
    let body = MessageBody::ActivityCompleted { execution: 2, source: EventId(2), result: json("1") };
    check_dropped(body, "meant for another execution");
    let body = MessageBody::TimerFired { execution: 0, source: EventId(3) };
    check_dropped(body, "meant for another execution");
}

#[test]
fn completion_of_nothing_is_dropped() {
    check_dropped(done(99, "1"), "answers nothing that was asked for");
    check_dropped(done(1, "1"), "answers nothing that was asked for");
}

#[test]
fn completion_of_another_kind_is_dropped() {
    check_dropped(done(3, "1"), "answers a command of another kind");
    check_dropped(fired(2), "answers a command of another kind");
    check_dropped(child_done(5, "1"), "answers a command of another kind");
}

#[test]
fn completion_of_a_cancelled_command_is_dropped() {
    check_dropped(done(6, "1"), "answers what is no longer wanted");
}

#[test]
fn second_completion_is_dropped_in_the_same_batch_and_later() {
    let mut live = busy();
    let accepted = live.accept(vec![done(2, "1"), failed(2, "1"), fired(3), fired(3)]);
    let again = "answers what has been answered already";
    assert_eq!(accepted.accepted, [1, 3]);
    assert_eq!(accepted.dropped, [(2, again), (4, again)]);
    live.activate();
    live.answer_at(2, &[], WAITING).unwrap();
    for mut live in [live.cold(), live] {
        assert_eq!(live.accept(vec![done(2, "1")]).dropped, [(5, again)]);
    }
}

#[test]
fn only_the_first_cancel_request_counts() {
    let mut live = busy();
    let accepted = live.accept(vec![cancel_request("first"), cancel_request("second")]);
    assert_eq!(accepted.accepted, [1]);
    assert_eq!(accepted.dropped, [(2, "cancellation was asked for already")]);
    assert_eq!(live.accept(vec![cancel_request("third")]).accepted, Vec::<i64>::new());
    live.activate();
    let turn = live.answer_at(1, &[], WAITING).unwrap();
    assert!(lines(&turn)[0].contains("first"));
}

#[test]
fn events_and_queue_messages_are_never_merged() {
    let mut live = busy();
    let accepted = live.accept(vec![raised("e", "1"), raised("e", "1"), queued("q", "1"), queued("q", "1")]);
    assert_eq!(accepted.accepted, [1, 2, 3, 4]);
}

#[test]
fn everything_is_dropped_after_the_end() {
    let mut live = busy();
    live.turn(vec![raised("e", "1")], &[], &completed("1"));
    for mut live in [live.cold(), live] {
        let accepted = live.accept(vec![done(2, "1"), raised("e", "1"), cancel_request("late")]);
        assert_eq!(accepted.accepted, Vec::<i64>::new());
        assert!(accepted.dropped.iter().all(|(_, reason)| *reason == "the execution has ended"));
        assert_eq!(accepted.dropped.len(), 3);
    }
}

#[test]
fn facts_accepted_while_an_activation_is_out_wait_for_the_next() {
    let mut live = busy();
    live.accept(vec![done(2, "1")]);
    live.activate();
    live.accept(vec![fired(3)]);
    assert!(live.execution.has_new_facts());
    check(&lines(&live.answer_at(1, &[], WAITING).unwrap()), r#"8 ActivityCompleted <2 {"result":1}"#);
    let activation = live.activate();
    assert_eq!((activation.applied, activation.facts.len()), (1, 1));
    check(&lines(&live.answer_at(2, &[], WAITING).unwrap()), "9 TimerFired <3 {}");
}
