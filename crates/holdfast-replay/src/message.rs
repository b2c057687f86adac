//! Messages: inbox rows on their way to an execution. Accepting one turns it into an event.

use serde::{Deserialize, Serialize};

use crate::{EventId, Payload};

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
