//! Events: the append-only facts of one execution. Ids run 1..n without a gap.
//!
//! An event is stored as id, kind, source, time and data. The data is a JSON object made of the variant's
//! fields, with payloads embedded as they are.

use serde::{Deserialize, Serialize};

use crate::{Payload, RetryPolicy};

/// The position of an event in its execution's history; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub u32);

/// Who started an execution and waits for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// Instance id of the parent.
    pub instance: String,
    /// Execution of the parent that waits.
    pub execution: i64,
    /// The parent's scheduling event.
    pub event: EventId,
}

/// What kind of message was carried into an execution by continue-as-new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarriedKind {
    /// A one-shot event that nobody had waited for.
    Event,
    /// An unread queue message.
    Queue,
}

/// A message that its execution did not read before it continued as new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Event or queue.
    pub kind: CarriedKind,
    /// Name of the event or queue.
    pub name: String,
    /// Its payload.
    pub data: Payload,
}

/// A value that the code of an instance keeps under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptValue {
    /// Key.
    pub key: String,
    /// The text, as it was given.
    pub value: String,
    /// When it was set: database time of the last fact before the call, in ms since 1970.
    #[serde(rename = "at")]
    pub at_ms: i64,
}

/// What continue-as-new hands to the next execution beside its input; kept with the instance until its first turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CarryOver {
    /// Unread messages, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Carried>,
    /// Kept values, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<KeptValue>,
}

impl CarryOver {
    /// Nothing is carried over.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.values.is_empty()
    }
}

/// All that an execution starts from; recorded in its first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartInfo {
    /// Orchestration name.
    pub name: String,
    /// The exact version that runs it.
    pub version: String,
    /// Input.
    pub input: Payload,
    /// Who waits for the end, if anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// Seed of the deterministic random numbers of this execution.
    pub seed: u64,
    /// Messages left over from the predecessor, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
    /// Custom status taken over from the predecessor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<String>,
    /// Values taken over from the predecessor, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<KeptValue>,
}

/// One recorded fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the history.
    pub id: EventId,
    /// Database time of the turn that recorded it, in ms since 1970.
    pub at_ms: i64,
    /// The scheduling event that a completion or a cancellation belongs to.
    pub source: Option<EventId>,
    /// What happened.
    pub body: EventBody,
}

/// What happened. Variant names are the `kind` that users see. Externally tagged, so that payloads pass as raw text
/// and `{"Kind":data}` of a stored row is the whole encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum EventBody {
    /// First event of every execution.
    OrchestrationStarted(StartInfo),
    /// Ended with a value.
    OrchestrationCompleted { output: Payload },
    /// Ended with an error (also: cancelled, poisoned).
    OrchestrationFailed { error: Payload },
    /// Somebody asked to run a poisoned execution again: the end before this event is taken back.
    OrchestrationRetried {},
    /// Ended here and goes on as the next execution.
    OrchestrationContinuedAsNew { input: Payload, version: Option<String> },
    /// Somebody asked to cancel the instance.
    OrchestrationCancelRequested { reason: String },

    /// Command: run an activity.
    ActivityScheduled {
        name: String,
        input: Payload,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<RetryPolicy>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// It ran in place, in the turn that recorded it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        local: bool,
    },
    /// Fact: an activity returned.
    ActivityCompleted { result: Payload },
    /// Fact: an activity failed for good.
    ActivityFailed { error: Payload },
    /// Command: an activity is no longer wanted.
    ActivityCancelRequested { reason: String },

    /// Command: a timer; `fire_at_ms` is the turn's time plus the delay.
    TimerCreated { fire_at_ms: i64 },
    /// Fact: a timer was due.
    TimerFired {},
    /// Command: a timer is no longer wanted.
    TimerCancelled {},

    /// Command: wait for a one-shot event.
    ExternalSubscribed { name: String },
    /// Fact: a one-shot event was raised.
    ExternalEvent { name: String, data: Payload },
    /// Command: a wait for an event is no longer wanted.
    ExternalSubscribedCancelled { reason: String },

    /// Command: wait for the next message of a queue.
    QueueSubscribed { name: String },
    /// Fact: a queue message arrived.
    QueueEventDelivered { name: String, data: Payload },
    /// Command: a wait for a queue message is no longer wanted.
    QueueSubscriptionCancelled { reason: String },

    /// Command: start a child and wait for its end. `instance` is the child's final id.
    SubOrchestrationScheduled { name: String, version: Option<String>, instance: String, input: Payload },
    /// Fact: a child completed.
    SubOrchestrationCompleted { result: Payload },
    /// Fact: a child failed.
    SubOrchestrationFailed { error: Payload },
    /// Command: a child is no longer wanted.
    SubOrchestrationCancelRequested { reason: String },

    /// Command: start an orchestration nobody waits for.
    OrchestrationChained { name: String, version: Option<String>, instance: String, input: Payload },
    /// Command: set (or with none, reset) the custom status.
    CustomStatusUpdated { status: Option<String> },

    /// Command: keep a value under a key.
    KeyValueSet { key: String, value: String, last_updated_at_ms: i64 },
    /// Command: drop the value of a key.
    KeyValueCleared { key: String },
    /// Command: drop all values.
    KeyValuesCleared {},
}

/// How an event row is stored: its kind as the variant's name, its fields as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Position in the history.
    pub id: EventId,
    /// Variant name.
    pub kind: String,
    /// Scheduling event.
    pub source: Option<EventId>,
    /// Database time in ms since 1970.
    pub at_ms: i64,
    /// JSON of the fields; empty object for a variant without fields.
    pub data: String,
}
