//! What one turn writes: events, effects and the end, put together in order.
//!
//! Ids follow the history without a gap. An effect that belongs to a command given in this very turn is dropped when
//! the same turn takes the command back, so nothing is queued only to be removed again.

use std::collections::BTreeSet;

use crate::{
    CarryOver, Event, EventBody, EventId, ParentLink, Payload, RetryPolicy, StartInfo, stored::stored_bytes,
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
    /// Keep a value.
    SetValue { key: String, value: String, at_ms: i64 },
    /// Drop a value.
    ClearValue { key: String },
    /// Drop all values.
    ClearValues,
    /// Answer with the value that an instance keeps, `null` when there is none.
    ReadValue { event: EventId, instance: String, key: String },
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
    ContinuedAsNew { input: Payload, version: Option<String>, carried: CarryOver },
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

impl TurnResult {
    /// A turn that writes nothing.
    pub(crate) fn nothing() -> Self {
        Self { events: Vec::new(), effects: Vec::new(), end: None }
    }
}

/// Puts a turn's events and effects together.
#[derive(Debug)]
pub(crate) struct TurnWriter {
    recorded: u32,
    events: Vec<Event>,
    bytes: usize,
    effects: Vec<(Option<u32>, Effect)>,
    taken_back: BTreeSet<u32>,
    clean_up: Option<Effect>,
}

impl TurnWriter {
    /// A writer for a turn after `recorded` events.
    pub(crate) fn new(recorded: u32) -> Self {
        Self {
            recorded,
            events: Vec::new(),
            bytes: 0,
            effects: Vec::new(),
            taken_back: BTreeSet::new(),
            clean_up: None,
        }
    }

    /// The id that the next event gets.
    pub(crate) fn next_id(&self) -> EventId {
        EventId(self.recorded + u32::try_from(self.events.len()).expect("bounded by limits") + 1)
    }

    /// Appends an event.
    pub(crate) fn event(&mut self, at_ms: i64, source: Option<EventId>, body: EventBody) -> EventId {
        let id = self.next_id();
        self.bytes += stored_bytes(&body);
        self.events.push(Event { id, at_ms, source, body });
        id
    }

    /// Appends the first event.
    pub(crate) fn started(&mut self, at_ms: i64, start: StartInfo) {
        self.event(at_ms, None, EventBody::OrchestrationStarted(start));
    }

    /// Adds an effect.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push((None, effect));
    }

    /// Adds the effect of the new command `seq`.
    pub(crate) fn effect_of(&mut self, seq: u32, effect: Effect) {
        self.effects.push((Some(seq), effect));
    }

    /// Notes that the new command `seq` is no longer wanted.
    pub(crate) fn take_back(&mut self, seq: u32) {
        self.taken_back.insert(seq);
    }

    /// The execution was cancelled by `event` and has until then to clean up, if this turn does not end it.
    pub(crate) fn clean_up_until(&mut self, event: EventId, fire_at_ms: i64) {
        self.clean_up = Some(Effect::CreateTimer { event, fire_at_ms });
    }

    /// True for an event that an earlier turn recorded: its effect was carried out.
    pub(crate) fn was_dispatched(&self, event: EventId) -> bool {
        event.0 <= self.recorded
    }

    /// How many events, and how many bytes of them.
    pub(crate) fn size(&self) -> (u32, usize) {
        (self.next_id().0 - 1 - self.recorded, self.bytes)
    }

    /// What the turn writes.
    pub(crate) fn finish(self, end: Option<End>) -> TurnResult {
        let taken_back = self.taken_back;
        let wanted = |seq: &Option<u32>| !seq.is_some_and(|seq| taken_back.contains(&seq));
        let mut effects: Vec<Effect> =
            self.effects.into_iter().filter(|(seq, _)| wanted(seq)).map(|(_, effect)| effect).collect();
        effects.extend(self.clean_up.filter(|_| end.is_none()));
        TurnResult { events: self.events, effects, end }
    }
}
