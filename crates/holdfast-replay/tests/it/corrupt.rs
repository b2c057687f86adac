//! Rows that cannot be a history are refused, with the place.

use holdfast_replay::{EventId, Execution, StoredEvent};

const STARTED: (&str, u32, &str) =
    ("OrchestrationStarted", 0, r#"{"name":"order","version":"1.0.0","input":{},"seed":1}"#);
const ACTIVITY: (&str, u32, &str) = ("ActivityScheduled", 0, r#"{"name":"a","input":1}"#);
const TIMER: (&str, u32, &str) = ("TimerCreated", 0, r#"{"fire_at_ms":5}"#);
const WAIT: (&str, u32, &str) = ("ExternalSubscribed", 0, r#"{"name":"e"}"#);

fn read(rows: Vec<StoredEvent>) -> Result<Execution, holdfast_replay::CorruptHistory> {
    let events = rows.into_iter().map(StoredEvent::decode).collect::<Result<Vec<_>, _>>()?;
    Execution::replay("i".to_owned(), 1, events)
}

fn row(id: u32, (kind, source, data): (&str, u32, &str)) -> StoredEvent {
    let source = (source > 0).then_some(EventId(source));
    StoredEvent { id: EventId(id), kind: kind.to_owned(), source, at_ms: 5, data: data.to_owned() }
}

/// Refuses these rows, numbered from 1, at the last of them.
#[track_caller]
fn check_corrupt(rows: &[(&str, u32, &str)], text: &str) {
    let rows: Vec<StoredEvent> = (1..).zip(rows).map(|(id, data)| row(id, *data)).collect();
    let last = rows.len() as u32;
    let error = read(rows).expect_err("no history");
    assert_eq!((error.position, error.text.as_str()), (last, text));
}

#[test]
fn an_empty_history_is_corrupt() {
    let error = read(vec![]).expect_err("no history");
    assert_eq!(error.to_string(), "corrupt history at event 1: it is empty");
}

#[test]
fn a_gap_in_the_ids_is_corrupt() {
    for (ids, position) in [([1, 3], 3), ([1, 1], 1), ([2, 3], 2), ([0, 1], 0)] {
        let rows = vec![row(ids[0], STARTED), row(ids[1], ACTIVITY)];
        assert_eq!(read(rows).expect_err("no history").position, position);
    }
}

#[test]
fn a_second_completion_of_one_command_is_corrupt() {
    let done = ("ActivityCompleted", 2, r#"{"result":1}"#);
    let text = "it answers what has been answered already (event 2)";
    check_corrupt(&[STARTED, ACTIVITY, done, done], text);
    check_corrupt(&[STARTED, ACTIVITY, done, ("ActivityFailed", 2, r#"{"error":1}"#)], text);
    check_corrupt(&[STARTED, TIMER, ("TimerFired", 2, "{}"), ("TimerFired", 2, "{}")], text);
}

#[test]
fn a_completion_of_nothing_or_of_another_kind_is_corrupt() {
    let done = |source| ("ActivityCompleted", source, r#"{"result":1}"#);
    check_corrupt(&[STARTED, ACTIVITY, done(9)], "it answers nothing that was asked for (event 9)");
    check_corrupt(&[STARTED, ACTIVITY, done(1)], "it answers nothing that was asked for (event 1)");
    check_corrupt(&[STARTED, ACTIVITY, done(0)], "it answers nothing");
    check_corrupt(&[STARTED, TIMER, done(2)], "it answers a command of another kind (event 2)");
    check_corrupt(&[STARTED, WAIT, done(2)], "it answers a command of another kind (event 2)");
}

#[test]
fn a_cancel_of_nothing_or_of_another_kind_is_corrupt() {
    let text = "it cancels nothing that was asked for";
    check_corrupt(&[STARTED, ACTIVITY, ("TimerCancelled", 2, "{}")], text);
    check_corrupt(&[STARTED, ACTIVITY, ("TimerCancelled", 0, "{}")], text);
    let end = r#"{"reason":"orchestration_terminal_failed"}"#;
    check_corrupt(&[STARTED, TIMER, ("ActivityCancelRequested", 2, end)], text);
}

#[test]
fn a_history_starts_once_and_ends_once() {
    check_corrupt(&[ACTIVITY], "it does not begin with OrchestrationStarted");
    check_corrupt(&[STARTED, STARTED], "it starts twice");
    let end = ("OrchestrationCompleted", 0, r#"{"output":1}"#);
    check_corrupt(&[STARTED, end, end], "it goes on after its end");
    check_corrupt(&[STARTED, end, ACTIVITY], "it goes on after its end");
}

#[test]
fn a_second_cancel_request_is_corrupt() {
    let cancel = ("OrchestrationCancelRequested", 0, r#"{"reason":"r"}"#);
    check_corrupt(&[STARTED, cancel, cancel], "it is cancelled twice");
}

#[test]
fn a_row_that_cannot_be_read_says_why() {
    check_corrupt(
        &[STARTED, ("Teleported", 0, "{}")],
        "data of kind Teleported cannot be read: unknown variant `Teleported`, expected one of `OrchestrationStarted`, `OrchestrationCompleted`, `OrchestrationFailed`, `OrchestrationRetried`, `OrchestrationContinuedAsNew`, `OrchestrationCancelRequested`, `ActivityScheduled`, `ActivityCompleted`, `ActivityFailed`, `ActivityCancelRequested`, `TimerCreated`, `TimerFired`, `TimerCancelled`, `ExternalSubscribed`, `ExternalEvent`, `ExternalSubscribedCancelled`, `QueueSubscribed`, `QueueEventDelivered`, `QueueSubscriptionCancelled`, `SubOrchestrationScheduled`, `SubOrchestrationCompleted`, `SubOrchestrationFailed`, `SubOrchestrationCancelRequested`, `OrchestrationChained`, `CustomStatusUpdated`, `KeyValueSet`, `KeyValueCleared`, `KeyValuesCleared` at line 1 column 13",
    );
    check_corrupt(&[STARTED, ("Timer\"Fired", 0, "{}")], r#"unknown kind "Timer\"Fired""#);
    for data in
        ["", "{", "{}", "null", r#"{"name":1,"input":1}"#, r#"{"name":"a","input":1},"TimerFired":{}"#]
    {
        let error =
            read(vec![row(1, STARTED), row(2, ("ActivityScheduled", 0, data))]).expect_err("no history");
        assert_eq!(error.position, 2);
        assert!(error.text.starts_with("data of kind ActivityScheduled cannot be read"), "{}", error.text);
    }
}
