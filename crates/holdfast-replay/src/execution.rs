//! One execution as its history tells it: what was asked for, what came back, what is still open.
//!
//! A turn is `accept` (messages become facts), `activation` (facts go to the code), `complete` (the code's answer
//! becomes events and effects). Between turns only bookkeeping stays: no payload of a fact that was handed over is
//! kept, except of messages that nobody has read yet, because the next execution inherits those.
//!
//! A reply that does not fit changes nothing; [`Execution::abort`] can still end the execution after it.
//!
//! length: the steps of one execution share all its fields, and are read together.

pub use crate::turn::{Effect, End, TurnResult};
use crate::{
    Activation, CorruptHistory, ErrorPayload, Event, EventBody, EventId, FrameId, LocalResult, Message,
    Mismatch, ParentLink, Payload, Reply, ReplyCommand, ReplyOutcome, StartInfo,
    activation::{ActivationStart, Fact},
    books::Books,
    cancel::{CancelRequest, close_open, take_back_open},
    carry_over::{end_of, terminal_event},
    cursor::{Cursor, Recorded, fact_of},
    determinism::Standing,
    limits::{self, Limits, Size},
    message::{NewFact, read_message},
    turn::TurnWriter,
};

/// What became of the messages handed to [`Execution::accept`]. Every message is in one of the lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Row ids that became facts.
    pub accepted: Vec<i64>,
    /// Row ids that were dropped (for another execution, or already answered), with the reason.
    pub dropped: Vec<(i64, &'static str)>,
}

/// What a cold frame needs and a warm one does not.
#[derive(Debug)]
struct Cold {
    facts: Vec<Fact>,
    fact_events: Vec<EventId>,
    commands: Vec<Recorded>,
    /// The terminal event, when the history has one.
    terminal: Option<EventBody>,
    /// The first turn was never answered.
    unrun: bool,
}

/// An activation that was handed out and not answered yet.
#[derive(Debug, Clone, Copy)]
struct Given {
    frame: FrameId,
    /// How many of the pending facts it carried.
    facts: usize,
}

/// One execution.
#[derive(Debug)]
pub struct Execution {
    pub(crate) instance: String,
    pub(crate) execution: i64,
    parent: Option<ParentLink>,
    /// Kept until the first turn is recorded, respectively until the cold activation.
    start: Option<StartInfo>,
    start_at_ms: i64,
    pub(crate) now_ms: i64,
    pub(crate) books: Books,
    /// Facts recorded.
    pub(crate) facts: u32,
    pub(crate) cancel: Option<CancelRequest>,
    /// Commands that the accepted request to cancel ends as soon as it is recorded.
    pub(crate) doomed: Vec<u32>,
    /// The time to clean up after a cancellation is over.
    pub(crate) overdue: bool,
    /// Facts of the coming turn.
    pub(crate) pending: Vec<NewFact>,
    cold: Option<Cold>,
    given: Option<Given>,
    warm: bool,
    /// A terminal event is recorded.
    ended: bool,
    len: u32,
    bytes: usize,
    limits: Limits,
}

impl Execution {
    /// An execution without history. Its first event is OrchestrationStarted, recorded by the first turn.
    pub fn begin(instance: String, execution: i64, start: StartInfo, at_ms: i64) -> Self {
        Self {
            instance,
            execution,
            parent: start.parent.clone(),
            start_at_ms: at_ms,
            now_ms: at_ms,
            books: Books::new(&start),
            start: Some(start),
            facts: 0,
            cancel: None,
            doomed: Vec::new(),
            overdue: false,
            pending: Vec::new(),
            cold: None,
            given: None,
            warm: false,
            ended: false,
            len: 0,
            bytes: 0,
            limits: Limits::default(),
        }
    }

    /// An execution as its stored history tells it.
    pub fn replay(instance: String, execution: i64, events: Vec<Event>) -> Result<Self, CorruptHistory> {
        let cursor = Cursor::read(events)?;
        let ended = cursor.terminal.is_some();
        Ok(Self {
            instance,
            execution,
            parent: cursor.start.parent.clone(),
            start: Some(cursor.start),
            start_at_ms: cursor.start_at_ms,
            now_ms: cursor.last_at_ms,
            books: cursor.books,
            facts: u32::try_from(cursor.facts.len()).expect("fewer facts than event ids"),
            cancel: cursor.cancel,
            doomed: Vec::new(),
            overdue: false,
            pending: Vec::new(),
            cold: Some(Cold {
                facts: cursor.facts,
                fact_events: cursor.fact_events,
                commands: cursor.commands,
                terminal: cursor.terminal,
                unrun: cursor.unrun,
            }),
            given: None,
            warm: false,
            ended,
            len: cursor.len,
            bytes: cursor.bytes,
            limits: Limits::default(),
        })
    }

    /// The same execution under other limits than the default.
    #[must_use]
    pub fn bounded_by(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Turns messages into facts of the coming turn; `now_ms` is the database time of the claim. May be called
    /// without messages to set the time alone. Facts accepted while an activation is out belong to the turn after it.
    pub fn accept(&mut self, messages: Vec<Message>, now_ms: i64) -> Accepted {
        self.now_ms = now_ms;
        let mut accepted = Accepted::default();
        for message in messages {
            let read = if self.ended {
                Err("the execution has ended")
            } else if self.ends_clean_up(&message.body) {
                self.overdue = true;
                Err("the time to clean up is over")
            } else {
                read_message(message.body, self.execution, now_ms, &mut self.books.ledger)
            };
            match read {
                Ok(NewFact { body: EventBody::OrchestrationCancelRequested { .. }, .. })
                    if self.cancel.is_some() =>
                {
                    accepted.dropped.push((message.id, "cancellation was asked for already"));
                }
                Ok(fact) => {
                    accepted.accepted.push(message.id);
                    self.pending.push(fact);
                    self.note_cancel();
                }
                Err(reason) => accepted.dropped.push((message.id, reason)),
            }
        }
        accepted
    }

    /// What user code is given. Cold (with everything) the first time after begin or replay, else warm. Each
    /// activation must be answered by [`Self::complete`] before the next: facts are handed over once.
    pub fn activation(&mut self, frame: FrameId) -> Activation {
        let mut facts = Vec::new();
        let mut applied = self.facts;
        let mut start = None;
        if !self.warm {
            start = self.activation_start();
            applied = 0;
            facts = self.cold.as_mut().map(|cold| std::mem::take(&mut cold.facts)).unwrap_or_default();
        }
        let replayed = u32::try_from(facts.len()).expect("fewer facts than event ids");
        facts.extend(self.pending.iter().filter_map(|fact| fact_of(fact.body.clone(), fact.at_ms, fact.seq)));
        self.warm = true;
        self.given = Some(Given { frame, facts: self.pending.len() });
        Activation { frame, start, applied, facts, replayed, unleased: false }
    }

    /// True once an activation was made: the next one carries only new facts. A frame that was lost cannot be made
    /// again from here; that takes a fresh [`Self::replay`].
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// Matches the reply against history and gives what the turn writes. After an error nothing has changed, except
    /// that the activation counts as answered; then [`Self::abort`] ends the execution, or it is dropped. An execution
    /// whose history has an end is only checked: the turn writes nothing.
    pub fn complete(&mut self, mut reply: Reply) -> Result<TurnResult, Mismatch> {
        let given = self.answered_by(reply.frame)?;
        let commands = match self.check(&mut reply, given) {
            Ok(commands) => commands,
            // A cancelled execution ends as cancelled also when its code does not fit any more.
            Err(_) if self.cancel.is_some() => {
                reply.outcome = ReplyOutcome::Diverged;
                reply.locals.clear();
                Vec::new()
            }
            Err(mismatch) => return Err(mismatch),
        };
        self.cold = None;
        if self.ended {
            return Ok(TurnResult::nothing());
        }
        Ok(self.write(commands, reply, given))
    }

    /// Ends the execution without asking the code (poison, mismatch): facts accepted so far are recorded, what is open is
    /// cancelled, the parent is told.
    pub fn abort(&mut self, error: Payload) -> TurnResult {
        if self.ended {
            return TurnResult::nothing();
        }
        let mut turn = self.open_turn();
        for fact in std::mem::take(&mut self.pending) {
            self.write_fact(&mut turn, fact);
        }
        self.close_turn(turn, Some(End::Failed { error }))
    }

    /// Events recorded, those of completed turns included.
    pub fn history_len(&self) -> u32 {
        self.len
    }

    /// Encoded bytes of the history, for the bound of the frame cache.
    pub fn history_bytes(&self) -> usize {
        self.bytes
    }

    /// Facts accepted that no activation has carried yet.
    pub fn has_new_facts(&self) -> bool {
        self.pending.len() > self.given.map_or(0, |given| given.facts)
    }

    /// The start as the code sees it. The whole start is kept while the first turn has not recorded it.
    fn activation_start(&mut self) -> Option<ActivationStart> {
        let start = if self.len == 0 { self.start.clone() } else { self.start.take() }?;
        Some(ActivationStart {
            instance: self.instance.clone(),
            execution: self.execution,
            name: start.name,
            version: start.version,
            input: start.input,
            parent: start.parent.map(|parent| parent.instance),
            seed: format!("{:016x}", start.seed),
            at_ms: self.start_at_ms,
            carried: start.carried,
            custom_status: start.custom_status,
            values: start.values,
            replaying: self.len > 0,
        })
    }

    fn answered_by(&mut self, frame: FrameId) -> Result<usize, Mismatch> {
        let expected = match self.given {
            Some(given) if given.frame == frame => {
                self.given = None;
                return Ok(given.facts);
            }
            Some(given) => format!("an activation of frame {}", given.frame.0),
            None => "no activation to be answered".to_owned(),
        };
        Err(Mismatch { position: self.len + 1, expected, found: format!("an answer of frame {}", frame.0) })
    }

    /// The reply's new commands, when it fits.
    fn check(&self, reply: &mut Reply, given: usize) -> Result<Vec<ReplyCommand>, Mismatch> {
        let cold = self.cold.as_ref();
        let standing = Standing {
            recorded: cold.map_or(&[], |cold| &cold.commands),
            fact_events: cold.map_or(&[], |cold| &cold.fact_events),
            ledger: &self.books.ledger,
            facts: self.facts,
            given: u32::try_from(given).expect("an inbox batch is bounded"),
            events: self.len,
            terminal: cold.and_then(|cold| cold.terminal.as_ref()),
            unrun: cold.is_some_and(|cold| cold.unrun),
        };
        standing.check(reply)
    }

    /// Writes the turn: each new fact, followed by the commands given after it; then the end.
    fn write(&mut self, commands: Vec<ReplyCommand>, reply: Reply, given: usize) -> TurnResult {
        let Reply { applied, locals, outcome, .. } = reply;
        let size = Size {
            instance: &self.instance,
            events: self.len as usize,
            bytes: self.bytes,
            unread: self.books.mailboxes.unread(),
        };
        let limit = limits::exceeded(&self.limits, &size, &commands);
        let (commands, locals, outcome) = match limit {
            Some(error) => (Vec::new(), Vec::new(), ReplyOutcome::Failed { error: error.to_payload() }),
            None => (commands, locals, outcome),
        };
        let goes_on = matches!(outcome, ReplyOutcome::Waiting) && !self.cleaned_up();
        let recorded = if goes_on { given } else { self.pending.len() };
        let mut turn = self.open_turn();
        let mut commands = commands.into_iter().peekable();
        let later = self.pending.split_off(recorded);
        let facts = std::mem::replace(&mut self.pending, later);
        self.write_commands(&mut turn, &mut commands, goes_on);
        for fact in facts {
            if self.facts >= applied {
                // The code has ended before this fact: no wait of its takes the message, the next execution does.
                self.books.mailboxes.close_waits();
            }
            self.write_fact(&mut turn, fact);
            self.write_commands(&mut turn, &mut commands, goes_on);
        }
        for local in locals {
            self.write_local(&mut turn, local);
            self.write_commands(&mut turn, &mut commands, goes_on);
        }
        let end = match &self.cancel {
            Some(_) if goes_on => None,
            Some(cancel) => {
                Some(End::Cancelled { error: ErrorPayload::cancelled(&cancel.reason).to_payload() })
            }
            None => end_of(outcome, &mut self.books),
        };
        self.close_turn(turn, end)
    }

    fn open_turn(&mut self) -> TurnWriter {
        let mut turn = TurnWriter::new(self.len);
        if self.len == 0
            && let Some(start) = self.start.take()
        {
            turn.started(self.start_at_ms, start);
        }
        turn
    }

    fn write_fact(&mut self, turn: &mut TurnWriter, fact: NewFact) {
        self.books.arrival(&fact.body);
        let cancels = matches!(fact.body, EventBody::OrchestrationCancelRequested { .. });
        let event = turn.event(fact.at_ms, fact.source, fact.body);
        self.facts += 1;
        if cancels && let Some(cancel) = &mut self.cancel {
            cancel.recorded = Some((event, self.facts));
            take_back_open(&mut self.books, turn, fact.at_ms, std::mem::take(&mut self.doomed));
            turn.clean_up_until(event, self.now_ms.saturating_add(limits::MAX_CLEANUP_MS));
        }
    }

    /// The result of a step that ran in place, behind its command.
    fn write_local(&mut self, turn: &mut TurnWriter, local: LocalResult) {
        let event = self.books.ledger.get(local.seq).expect("checked before the turn is written").event;
        self.books.ledger.answer(local.seq);
        let body = match (local.ok, local.err) {
            (_, Some(error)) => EventBody::ActivityFailed { error },
            (result, None) => EventBody::ActivityCompleted { result: result.unwrap_or_else(Payload::null) },
        };
        turn.event(local.at, Some(event), body);
        self.facts += 1;
    }

    /// Writes the commands given after the facts written so far.
    fn write_commands(
        &mut self,
        turn: &mut TurnWriter,
        commands: &mut std::iter::Peekable<std::vec::IntoIter<ReplyCommand>>,
        dispatch: bool,
    ) {
        while let Some(command) = commands.next_if(|command| command.step() <= self.facts) {
            self.write_command(turn, command, dispatch);
        }
    }

    /// Records the end, if there is one, and closes the books of the turn.
    fn close_turn(&mut self, mut turn: TurnWriter, end: Option<End>) -> TurnResult {
        if let Some(end) = &end {
            close_open(&mut self.books.ledger, &mut turn, self.now_ms, end);
            turn.event(self.now_ms, None, terminal_event(end));
            self.ended = true;
            let result = match end {
                End::Completed { output } => Some(Ok(output.clone())),
                End::Failed { error } | End::Cancelled { error } => Some(Err(error.clone())),
                End::ContinuedAsNew { .. } => None,
            };
            if let (Some(parent), Some(result)) = (self.parent.clone(), result) {
                turn.effect(Effect::TellParent { parent, result });
            }
        }
        let (events, bytes) = turn.size();
        self.len += events;
        self.bytes += bytes;
        turn.finish(end)
    }
}
