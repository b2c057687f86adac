//! One execution as its history tells it: what was asked for, what came back, what is still open.

use crate::{
    Activation, Carried, CorruptHistory, Event, EventId, FrameId, Message, Mismatch, ParentLink, Payload,
    Reply, RetryPolicy, StartInfo,
};

/// An effect of a turn, to be carried out in the same transaction as its events.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum Effect {
    /// Queue an activity task.
    ScheduleActivity {
        event: EventId,
        name: String,
        input: Payload,
        tag: Option<String>,
        session: Option<String>,
        retry: Option<RetryPolicy>,
        timeout_ms: Option<u64>,
    },
    /// Queue a timer message.
    CreateTimer { event: EventId, fire_at_ms: i64 },
    /// Start a child that this execution waits for.
    StartChild { event: EventId, instance: String, name: String, version: Option<String>, input: Payload },
    /// Start an orchestration that nobody waits for.
    StartDetached { instance: String, name: String, version: Option<String>, input: Payload },
    /// Take an activity task back.
    CancelActivity { event: EventId },
    /// Take a timer back.
    CancelTimer { event: EventId },
    /// Ask a child to stop.
    CancelChild { instance: String, reason: String },
    /// Set or reset the custom status.
    SetStatus { status: Option<String> },
    /// Tell the parent how this execution ended.
    TellParent { parent: ParentLink, result: Result<Payload, Payload> },
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum End {
    /// With a value.
    Completed { output: Payload },
    /// With an error.
    Failed { error: Payload },
    /// Cancelled; the error says so.
    Cancelled { error: Payload },
    /// As the next execution.
    ContinuedAsNew { input: Payload, version: Option<String>, carried: Vec<Carried> },
}

/// All that one turn writes.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// Events to append, ids following the history without a gap.
    pub events: Vec<Event>,
    /// Effects, in order.
    pub effects: Vec<Effect>,
    /// How the execution ended, if it did.
    pub end: Option<End>,
}

/// What became of the messages handed to [`Execution::accept`]. Every message is in one of the lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Row ids that became facts.
    pub accepted: Vec<i64>,
    /// Row ids that were dropped (for another execution, or already answered), with the reason.
    pub dropped: Vec<(i64, &'static str)>,
}

/// One execution.
#[derive(Debug)]
pub struct Execution {
    _private: (),
}

impl Execution {
    /// An execution without history. Its first event is OrchestrationStarted, recorded by the first turn.
    pub fn begin(instance: String, execution: i64, start: StartInfo, at_ms: i64) -> Self {
        todo!("{instance} {execution} {start:?} {at_ms}")
    }

    /// An execution as its stored history tells it.
    pub fn replay(instance: String, execution: i64, events: Vec<Event>) -> Result<Self, CorruptHistory> {
        todo!("{instance} {execution} {events:?}")
    }

    /// Turns messages into facts of the coming turn; `now_ms` is the database time of the claim.
    pub fn accept(&mut self, messages: Vec<Message>, now_ms: i64) -> Accepted {
        todo!("{messages:?} {now_ms}")
    }

    /// What user code is given. Cold (with everything) the first time after begin, replay or [`Self::chill`], else warm.
    pub fn activation(&mut self, frame: FrameId) -> Activation {
        todo!("{frame:?}")
    }

    /// Forgets that the code is live: the next activation must come from a fresh [`Self::replay`].
    pub fn is_warm(&self) -> bool {
        todo!()
    }

    /// Matches the reply against history and gives what the turn writes.
    pub fn complete(&mut self, reply: Reply) -> Result<TurnResult, Mismatch> {
        todo!("{reply:?}")
    }

    /// Ends the execution without asking the code (poison, mismatch): facts accepted so far are recorded, what is open is
    /// cancelled, the parent is told.
    pub fn abort(&mut self, error: Payload) -> TurnResult {
        todo!("{error:?}")
    }

    /// Events recorded, those of completed turns included.
    pub fn history_len(&self) -> u32 {
        todo!()
    }

    /// Encoded bytes of the history, for the bound of the frame cache.
    pub fn history_bytes(&self) -> usize {
        todo!()
    }

    /// Facts accepted that no activation has carried yet.
    pub fn has_new_facts(&self) -> bool {
        todo!()
    }
}
