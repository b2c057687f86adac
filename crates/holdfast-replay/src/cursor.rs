//! The cursor: reads a recorded history, event by event, and checks that it is one.
//!
//! It gives the facts for a cold activation, the recorded commands to match the code against, and the bookkeeping
//! that stays: ledger and mailboxes. Work is linear in the number of events. It never repairs a history: ids with a
//! gap, a second answer to one command, an answer to nothing, or events after the end are errors.

use crate::{
    CorruptHistory, Event, EventBody, EventId, StartInfo,
    activation::Fact,
    books::Books,
    cancel::{CancelRequest, cancelled_kind},
    ledger::CommandKind,
    stored::stored_bytes,
};

/// A recorded command, to be matched against what the code gives.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Its event.
    pub(crate) event: EventId,
    /// Facts before it.
    pub(crate) step: u32,
    /// The target of a cancel command.
    pub(crate) target: Option<u32>,
    /// What was recorded.
    pub(crate) body: EventBody,
}

/// A history that was read.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// What the execution started from.
    pub(crate) start: StartInfo,
    /// Time of the first turn.
    pub(crate) start_at_ms: i64,
    /// Time of the last turn.
    pub(crate) last_at_ms: i64,
    /// Every fact, in order.
    pub(crate) facts: Vec<Fact>,
    /// The event of every fact.
    pub(crate) fact_events: Vec<EventId>,
    /// Every command, in order.
    pub(crate) commands: Vec<Recorded>,
    /// Ledger and mailboxes.
    pub(crate) books: Books,
    /// The cancel request, if there was one.
    pub(crate) cancel: Option<CancelRequest>,
    /// The terminal event, if the execution has ended.
    pub(crate) terminal: Option<EventBody>,
    /// Its first turn was never answered: it was poisoned, and is retried.
    pub(crate) unrun: bool,
    /// How many events.
    pub(crate) len: u32,
    /// About how many bytes they take.
    pub(crate) bytes: usize,
}

impl Cursor {
    /// Reads a history.
    pub(crate) fn read(events: Vec<Event>) -> Result<Self, CorruptHistory> {
        let mut events = events.into_iter();
        let first = events.next().ok_or_else(|| corrupt(EventId(1), "it is empty"))?;
        let bytes = stored_bytes(&first.body);
        if first.id != EventId(1) {
            return Err(corrupt(first.id, "ids do not begin with 1"));
        }
        let EventBody::OrchestrationStarted(start) = first.body else {
            return Err(corrupt(first.id, "it does not begin with OrchestrationStarted"));
        };
        let mut cursor = Self {
            books: Books::new(&start),
            start,
            start_at_ms: first.at_ms,
            last_at_ms: first.at_ms,
            facts: Vec::new(),
            fact_events: Vec::new(),
            commands: Vec::new(),
            cancel: None,
            terminal: None,
            unrun: false,
            len: 1,
            bytes,
        };
        for event in events {
            cursor.step(event)?;
        }
        Ok(cursor)
    }

    fn step(&mut self, event: Event) -> Result<(), CorruptHistory> {
        if event.id.0 != self.len + 1 {
            return Err(corrupt(event.id, format!("ids have a gap: {} follows {}", event.id.0, self.len)));
        }
        if matches!(event.body, EventBody::OrchestrationRetried {}) {
            self.retried(event.id)?;
        } else if self.terminal.is_some() {
            return Err(corrupt(event.id, "it goes on after its end"));
        }
        self.len = event.id.0;
        self.bytes += stored_bytes(&event.body);
        self.last_at_ms = event.at_ms;
        match &event.body {
            EventBody::OrchestrationStarted(_) => Err(corrupt(event.id, "it starts twice")),
            EventBody::OrchestrationRetried {} => Ok(()),
            EventBody::OrchestrationCompleted { .. }
            | EventBody::OrchestrationFailed { .. }
            | EventBody::OrchestrationContinuedAsNew { .. } => {
                self.terminal = Some(event.body);
                Ok(())
            }
            body => match scheduled_kind(body) {
                Some(kind) => {
                    self.books.command(event.id, kind, body);
                    self.record(event, None);
                    Ok(())
                }
                None => match cancelled_kind(body) {
                    Some(kind) => self.cancel_command(event, kind),
                    None => self.fact(event),
                },
            },
        }
    }

    /// The end is taken back. An execution that was poisoned before its first turn was answered has not run yet.
    fn retried(&mut self, id: EventId) -> Result<(), CorruptHistory> {
        match self.terminal.take() {
            Some(EventBody::OrchestrationFailed { .. }) => {
                self.unrun = self.commands.is_empty() && self.facts.is_empty();
                Ok(())
            }
            _ => Err(corrupt(id, "it takes back an end that is not there")),
        }
    }

    fn cancel_command(&mut self, event: Event, kind: CommandKind) -> Result<(), CorruptHistory> {
        let target = self.target(&event, kind)?;
        self.books.cancel(event.id, target);
        self.record(event, Some(target));
        Ok(())
    }

    /// A fact, or the trace that the end of an execution leaves.
    fn fact(&mut self, event: Event) -> Result<(), CorruptHistory> {
        let seq = match CommandKind::answered_by(&event.body) {
            None => None,
            Some(kind) => {
                let source = event.source.ok_or_else(|| corrupt(event.id, "it answers nothing"))?;
                let seq = self.books.ledger.answers(source, kind).map_err(|refusal| {
                    corrupt(event.id, format!("it {} (event {})", refusal.text(), source.0))
                })?;
                self.books.ledger.answer(seq);
                Some(seq)
            }
        };
        match &event.body {
            EventBody::OrchestrationCancelRequested { reason } => {
                if self.cancel.is_some() {
                    return Err(corrupt(event.id, "it is cancelled twice"));
                }
                let fact = u32::try_from(self.facts.len()).expect("fewer facts than event ids") + 1;
                self.cancel =
                    Some(CancelRequest { reason: reason.clone(), recorded: Some((event.id, fact)) });
                self.books.cancelled();
            }
            EventBody::ActivityCancelRequested { .. } => {
                return self.target(&event, CommandKind::Activity).map(drop);
            }
            EventBody::SubOrchestrationCancelRequested { .. } => {
                return self.target(&event, CommandKind::Child).map(drop);
            }
            body => self.books.arrival(body),
        }
        let fact = fact_of(event.body, event.at_ms, seq)
            .ok_or_else(|| corrupt(event.id, "an event of this kind has no place here"))?;
        self.facts.push(fact);
        self.fact_events.push(event.id);
        Ok(())
    }

    fn target(&self, event: &Event, kind: CommandKind) -> Result<u32, CorruptHistory> {
        event
            .source
            .and_then(|source| self.books.ledger.find(source))
            .filter(|seq| self.books.ledger.get(*seq).is_some_and(|slot| slot.kind == kind))
            .ok_or_else(|| corrupt(event.id, "it cancels nothing that was asked for"))
    }

    fn record(&mut self, event: Event, target: Option<u32>) {
        let step = u32::try_from(self.facts.len()).expect("fewer facts than event ids");
        self.commands.push(Recorded { event: event.id, step, target, body: event.body });
    }
}

/// The fact that an event is to user code; `seq` is the command that a completion answers.
pub(crate) fn fact_of(body: EventBody, at: i64, seq: Option<u32>) -> Option<Fact> {
    match body {
        EventBody::ActivityCompleted { result } | EventBody::SubOrchestrationCompleted { result } => {
            Some(Fact::Done { at, seq: seq?, value: result })
        }
        EventBody::TimerFired {} => Some(Fact::Done { at, seq: seq?, value: crate::Payload::null() }),
        EventBody::ActivityFailed { error } | EventBody::SubOrchestrationFailed { error } => {
            Some(Fact::Fail { at, seq: seq?, error })
        }
        EventBody::ExternalEvent { name, data } => Some(Fact::Event { at, name, data }),
        EventBody::QueueEventDelivered { name, data } => Some(Fact::Queue { at, name, data }),
        EventBody::OrchestrationCancelRequested { reason } => Some(Fact::Cancel { at, reason }),
        _ => None,
    }
}

fn scheduled_kind(body: &EventBody) -> Option<CommandKind> {
    match body {
        EventBody::ActivityScheduled { .. } => Some(CommandKind::Activity),
        EventBody::TimerCreated { .. } => Some(CommandKind::Timer),
        EventBody::ExternalSubscribed { .. } => Some(CommandKind::WaitEvent),
        EventBody::QueueSubscribed { .. } => Some(CommandKind::Dequeue),
        EventBody::SubOrchestrationScheduled { .. } => Some(CommandKind::Child),
        EventBody::OrchestrationChained { .. } => Some(CommandKind::Detached),
        EventBody::CustomStatusUpdated { .. } => Some(CommandKind::Status),
        EventBody::KeyValueSet { .. }
        | EventBody::KeyValueCleared { .. }
        | EventBody::KeyValuesCleared {} => Some(CommandKind::Value),
        _ => None,
    }
}

fn corrupt(position: EventId, text: impl Into<String>) -> CorruptHistory {
    CorruptHistory { position: position.0, text: text.into() }
}
