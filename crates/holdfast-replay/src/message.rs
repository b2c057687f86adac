//! Messages: inbox rows on their way to an execution. Accepting one turns it into an event.

use serde::{Deserialize, Serialize};

use crate::{
    EventBody, EventId, Payload,
    ledger::{CommandKind, Ledger, Refusal},
};

/// An inbox row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Row id; consumed messages are deleted by it. Rising, so it is also the order.
    pub id: i64,
    /// What it says.
    pub body: MessageBody,
}

/// What a message says. `execution` names the execution it is meant for; a message for another one is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum MessageBody {
    /// An activity returned.
    ActivityCompleted { execution: i64, source: EventId, result: Payload },
    /// An activity failed for good.
    ActivityFailed { execution: i64, source: EventId, error: Payload },
    /// A timer is due.
    TimerFired { execution: i64, source: EventId },
    /// A child completed.
    ChildCompleted { execution: i64, source: EventId, result: Payload },
    /// A child failed, was cancelled, or could not be started.
    ChildFailed { execution: i64, source: EventId, error: Payload },
    /// A one-shot event was raised.
    EventRaised { name: String, data: Payload },
    /// A queue message was sent.
    QueueMessage { name: String, data: Payload },
    /// Somebody wants the instance cancelled.
    CancelRequested { reason: String },
}

impl MessageBody {
    /// Bytes of the payload in it.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::ActivityCompleted { result: payload, .. }
            | Self::ActivityFailed { error: payload, .. }
            | Self::ChildCompleted { result: payload, .. }
            | Self::ChildFailed { error: payload, .. }
            | Self::EventRaised { data: payload, .. }
            | Self::QueueMessage { data: payload, .. } => payload.as_str().len(),
            Self::TimerFired { .. } | Self::CancelRequested { .. } => 0,
        }
    }
}

/// A fact of the coming turn.
#[derive(Debug, Clone)]
pub(crate) struct NewFact {
    /// Its event.
    pub(crate) body: EventBody,
    /// The scheduling event that a completion answers.
    pub(crate) source: Option<EventId>,
    /// The command of that event.
    pub(crate) seq: Option<u32>,
    /// Database time of the turn.
    pub(crate) at_ms: i64,
}

/// The fact that a message becomes, or why it is dropped. An accepted completion is noted in the ledger at once, so a
/// second one is refused even in the same batch.
pub(crate) fn read_message(
    body: MessageBody,
    execution: i64,
    at_ms: i64,
    ledger: &mut Ledger,
) -> Result<NewFact, &'static str> {
    let (addressee, body) = match body {
        MessageBody::ActivityCompleted { execution, source, result } => {
            (Some((execution, source)), EventBody::ActivityCompleted { result })
        }
        MessageBody::ActivityFailed { execution, source, error } => {
            (Some((execution, source)), EventBody::ActivityFailed { error })
        }
        MessageBody::TimerFired { execution, source } => {
            (Some((execution, source)), EventBody::TimerFired {})
        }
        MessageBody::ChildCompleted { execution, source, result } => {
            (Some((execution, source)), EventBody::SubOrchestrationCompleted { result })
        }
        MessageBody::ChildFailed { execution, source, error } => {
            (Some((execution, source)), EventBody::SubOrchestrationFailed { error })
        }
        MessageBody::EventRaised { name, data } => (None, EventBody::ExternalEvent { name, data }),
        MessageBody::QueueMessage { name, data } => (None, EventBody::QueueEventDelivered { name, data }),
        MessageBody::CancelRequested { reason } => (None, EventBody::OrchestrationCancelRequested { reason }),
    };
    let mut fact = NewFact { body, source: None, seq: None, at_ms };
    let (Some((addressed, source)), Some(kind)) = (addressee, CommandKind::answered_by(&fact.body)) else {
        return Ok(fact);
    };
    if addressed != execution {
        return Err("meant for another execution");
    }
    let seq = ledger.answers(source, kind).map_err(Refusal::text)?;
    if ledger.get(seq).is_some_and(|slot| slot.cancelled) {
        return Err("answers what is no longer wanted");
    }
    ledger.answer(seq);
    fact.source = Some(source);
    fact.seq = Some(seq);
    Ok(fact)
}
