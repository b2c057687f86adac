//! Rows come back as they were, payload text byte for byte.

use holdfast_replay::{
    Activation, Carried, CarriedKind, ErrorPayload, Event, EventBody, EventId, Execution, KeptValue, Message,
    MessageBody, Payload, RetryPolicy, StartInfo, StoredEvent,
};

use crate::harness::*;

/// Texts that a parser would like to rewrite.
fn exact() -> Vec<String> {
    let mut texts: Vec<String> = [
        "null",
        "true",
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1.50",
        "1e3",
        "1E+3",
        "1e400",
        "0.1000000000000000055511151231257827",
        "123456789012345678901234567890",
        "9007199254740993",
        r#""""#,
        r#""\u0000""#,
        r#""\ud800""#,
        r#""\udc00 before \ud83d\ude00""#,
        r#""\u0061\/\b\f\n\r\t\"\\""#,
        "\"\u{2028}\u{2029}é😀\"",
        r#"{"b":1,"a":2,"10":3,"9":4}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"\ud800":[],"":{}}"#,
        r#"{"$serde_json::private::RawValue":"1"}"#,
        "[ 1 ,\n 2 ]",
        "[[],{}]",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    texts.push(format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)));
    texts.push(format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)));
    texts
}

/// One body of every kind that has payloads, all with this one.
fn bodies(payload: &Payload) -> Vec<EventBody> {
    let text = || "n\u{0}\"\\\u{2028}".to_owned();
    let data = || payload.clone();
    vec![
        EventBody::OrchestrationStarted(StartInfo {
            input: data(),
            parent: Some(parent()),
            seed: u64::MAX,
            carried: vec![Carried { kind: CarriedKind::Event, name: text(), data: data() }],
            custom_status: Some(text()),
            values: vec![KeptValue { key: text(), value: text(), at_ms: 1 }],
            ..start()
        }),
        EventBody::OrchestrationCompleted { output: data() },
        EventBody::OrchestrationFailed { error: data() },
        EventBody::OrchestrationContinuedAsNew { input: data(), version: Some(text()) },
        EventBody::OrchestrationCancelRequested { reason: text() },
        EventBody::ActivityScheduled {
            name: text(),
            input: data(),
            tag: Some(text()),
            session: Some(text()),
            retry: Some(RetryPolicy { total_timeout_ms: Some(u64::MAX), ..RetryPolicy::default() }),
            timeout_ms: Some(u64::MAX),
            local: true,
        },
        EventBody::ActivityCompleted { result: data() },
        EventBody::ActivityFailed { error: data() },
        EventBody::ActivityCancelRequested { reason: text() },
        EventBody::TimerCreated { fire_at_ms: i64::MAX },
        EventBody::TimerFired {},
        EventBody::TimerCancelled {},
        EventBody::ExternalSubscribed { name: text() },
        EventBody::ExternalEvent { name: text(), data: data() },
        EventBody::ExternalSubscribedCancelled { reason: text() },
        EventBody::QueueSubscribed { name: text() },
        EventBody::QueueEventDelivered { name: text(), data: data() },
        EventBody::QueueSubscriptionCancelled { reason: text() },
        EventBody::SubOrchestrationScheduled { name: text(), version: None, instance: text(), input: data() },
        EventBody::SubOrchestrationCompleted { result: data() },
        EventBody::SubOrchestrationFailed { error: data() },
        EventBody::SubOrchestrationCancelRequested { reason: text() },
        EventBody::OrchestrationChained { name: text(), version: None, instance: text(), input: data() },
        EventBody::CustomStatusUpdated { status: None },
        EventBody::CustomStatusUpdated { status: Some(text()) },
        EventBody::KeyValueSet { key: text(), value: text(), last_updated_at_ms: i64::MAX },
        EventBody::KeyValueCleared { key: text() },
        EventBody::KeyValuesCleared {},
    ]
}

#[test]
fn every_kind_of_event_comes_back_with_its_payload_byte_for_byte() {
    for text in exact() {
        for body in bodies(&json(&text)) {
            let event = Event { id: EventId(3), at_ms: -1, source: Some(EventId(2)), body };
            let row = StoredEvent::encode(&event);
            assert_eq!(row.clone().decode().expect("a row of ours"), event);
            assert_eq!(StoredEvent::encode(&row.clone().decode().expect("a row of ours")), row);
            assert!(!row.data.contains('\0'), "PostgreSQL refuses NUL");
        }
    }
}

#[test]
fn a_row_is_kind_and_fields() {
    let body = EventBody::ActivityFailed { error: json(r#"{"z":1,"a":1.0}"#) };
    let row = StoredEvent::encode(&Event { id: EventId(4), at_ms: 5, source: Some(EventId(2)), body });
    assert_eq!((row.kind.as_str(), row.data.as_str()), ("ActivityFailed", r#"{"error":{"z":1,"a":1.0}}"#));
    let row = StoredEvent::encode(&Event {
        id: EventId(4),
        at_ms: 5,
        source: None,
        body: EventBody::TimerFired {},
    });
    assert_eq!((row.kind.as_str(), row.data.as_str()), ("TimerFired", "{}"));
}

#[test]
fn payloads_pass_through_a_whole_turn_and_back_unchanged() {
    for text in exact() {
        let mut live = Live::begin();
        live.turn(vec![], &[activity(0, "a", &text)], WAITING);
        live.accept(vec![done(2, &text), raised("e", &text)]);
        let warm = facts_text(&live.activate());
        assert!(warm.matches(&text).count() >= 2);
        live.answer_at(2, &[], WAITING).unwrap();
        assert_eq!(facts_text(&live.cold().activate()), warm);
    }
}

fn facts_text(activation: &Activation) -> String {
    serde_json::to_string(&activation.facts).expect("JSON")
}

#[test]
fn messages_come_back_as_they_were() {
    for text in exact() {
        for body in
            [done(2, &text), failed(2, &text), child_done(2, &text), raised("n", &text), queued("q", &text)]
        {
            let stored = serde_json::to_string(&body).expect("JSON");
            assert_eq!(serde_json::from_str::<MessageBody>(&stored).expect("a message of ours"), body);
        }
    }
}

#[test]
fn text_that_is_no_json_is_no_payload() {
    for text in ["", "{", "1 2", "{a:1}", "'a'", "NaN", "\"\n\"", "01", "\u{feff}1"] {
        assert_eq!(Payload::from_text(text.to_owned()), None, "{text}");
    }
}

#[test]
fn engine_errors_have_the_shape_of_any_error() {
    let error = ErrorPayload {
        cause: Some(ErrorPayload::cancelled("why").to_payload()),
        data: Some(json(r#"{"b":1.0}"#)),
        retryable: Some(false),
        stack: Some("s".to_owned()),
        ..ErrorPayload::new("TimeoutError", "TIMEOUT", "too slow")
    };
    assert_eq!(
        error.to_payload().as_str(),
        r#"{"name":"TimeoutError","message":"too slow","code":"TIMEOUT","stack":"s","data":{"b":1.0},"cause":{"name":"CancelledError","message":"canceled: why","code":"CANCELLED"},"retryable":false}"#
    );
    assert_eq!(serde_json::from_str::<ErrorPayload>(error.to_payload().as_str()).expect("ours"), error);
}

#[test]
fn unread_payloads_are_kept_and_others_are_not() {
    let mut execution = Execution::begin("i".to_owned(), 1, start(), 0);
    let secret = "\"x-marks-the-spot\"";
    let body = MessageBody::EventRaised { name: "e".to_owned(), data: json(secret) };
    execution.accept(vec![Message { id: 1, body }], 0);
    execution.activation(FRAME);
    let waits = format!(r#"{{"h":7,"n":1,"c":[{}],"o":"waiting"}}"#, event(0, "e"));
    let mut unread = Live::begin();
    unread.turn(vec![raised("e", secret)], &[], WAITING);
    assert!(format!("{:?}", unread.execution).contains("x-marks-the-spot"));
    execution.complete(serde_json::from_str(&waits).expect("a reply")).expect("it fits");
    let mut cold = Live::begin();
    cold.turn(vec![], &[activity(0, "a", "1")], WAITING);
    cold.turn(vec![done(2, secret)], &[], WAITING);
    let mut cold = cold.cold();
    cold.activate();
    assert!(!format!("{:?}", cold.execution).contains("x-marks-the-spot"));
    assert!(!format!("{execution:?}").contains("x-marks-the-spot"));
}
