//! How a message is stored in the columns of an inbox row.
//!
//! The kind is the variant's name; a message that answers a scheduling event has execution and source; a payload or a
//! reason is the data. A row that cannot be read is left where it is: it parks its instance and stops no other.

use holdfast_replay::{EventId, MessageBody, Payload};

/// The columns of an inbox row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageColumns<'a> {
    pub(crate) kind: &'a str,
    pub(crate) execution: Option<i64>,
    pub(crate) source: Option<i32>,
    pub(crate) name: Option<&'a str>,
    pub(crate) data: Option<&'a str>,
}

/// An event id as it is stored.
pub(crate) fn event_number(id: EventId) -> i32 {
    i32::try_from(id.0).expect("a history is far shorter than 2^31 events")
}

/// The columns of a message.
pub(crate) fn columns(body: &MessageBody) -> MessageColumns<'_> {
    let answer = |kind, execution: i64, source: EventId, data| MessageColumns {
        kind,
        execution: Some(execution),
        source: Some(event_number(source)),
        name: None,
        data,
    };
    let named =
        |kind, name, data| MessageColumns { kind, execution: None, source: None, name, data: Some(data) };
    match body {
        MessageBody::ActivityCompleted { execution, source, result } => {
            answer("ActivityCompleted", *execution, *source, Some(result.as_str()))
        }
        MessageBody::ActivityFailed { execution, source, error } => {
            answer("ActivityFailed", *execution, *source, Some(error.as_str()))
        }
        MessageBody::TimerFired { execution, source } => answer("TimerFired", *execution, *source, None),
        MessageBody::ChildCompleted { execution, source, result } => {
            answer("ChildCompleted", *execution, *source, Some(result.as_str()))
        }
        MessageBody::ChildFailed { execution, source, error } => {
            answer("ChildFailed", *execution, *source, Some(error.as_str()))
        }
        MessageBody::EventRaised { name, data } => named("EventRaised", Some(name.as_str()), data.as_str()),
        MessageBody::QueueMessage { name, data } => named("QueueMessage", Some(name.as_str()), data.as_str()),
        MessageBody::CancelRequested { reason } => named("CancelRequested", None, reason.as_str()),
    }
}

/// The message of the columns; `None` when they make none.
pub(super) fn body(row: MessageColumns<'_>) -> Option<MessageBody> {
    let execution = row.execution;
    let source = row.source.and_then(|source| u32::try_from(source).ok()).map(EventId);
    let payload = || Payload::from_text(row.data?.to_owned());
    let name = || row.name.map(str::to_owned);
    Some(match row.kind {
        "ActivityCompleted" => {
            MessageBody::ActivityCompleted { execution: execution?, source: source?, result: payload()? }
        }
        "ActivityFailed" => {
            MessageBody::ActivityFailed { execution: execution?, source: source?, error: payload()? }
        }
        "TimerFired" => MessageBody::TimerFired { execution: execution?, source: source? },
        "ChildCompleted" => {
            MessageBody::ChildCompleted { execution: execution?, source: source?, result: payload()? }
        }
        "ChildFailed" => {
            MessageBody::ChildFailed { execution: execution?, source: source?, error: payload()? }
        }
        "EventRaised" => MessageBody::EventRaised { name: name()?, data: payload()? },
        "QueueMessage" => MessageBody::QueueMessage { name: name()?, data: payload()? },
        "CancelRequested" => MessageBody::CancelRequested { reason: row.data?.to_owned() },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_back_as_it_was() {
        let payload = || Payload::from_text(r#"{"b":1.50,"a":"\u0000"}"#.to_owned()).expect("JSON");
        let (execution, source) = (3, EventId(7));
        let all = [
            MessageBody::ActivityCompleted { execution, source, result: payload() },
            MessageBody::ActivityFailed { execution, source, error: payload() },
            MessageBody::TimerFired { execution, source },
            MessageBody::ChildCompleted { execution, source, result: payload() },
            MessageBody::ChildFailed { execution, source, error: payload() },
            MessageBody::EventRaised { name: "go".to_owned(), data: payload() },
            MessageBody::QueueMessage { name: "q".to_owned(), data: payload() },
            MessageBody::CancelRequested { reason: "no \"need\"".to_owned() },
        ];
        for message in all {
            assert_eq!(body(columns(&message)).as_ref(), Some(&message));
        }
    }

    #[test]
    fn a_row_that_makes_no_message_is_told_apart() {
        let row = MessageColumns { kind: "Later", execution: None, source: None, name: None, data: None };
        assert_eq!(body(row), None);
        assert_eq!(
            body(MessageColumns { kind: "EventRaised", name: Some("x"), data: Some("{"), ..row }),
            None
        );
    }
}
