//! The ledger: one small slot per command, in order of issue, saying what became of it.
//!
//! It holds no payloads; it is what stays in memory beside a live frame. Event ids rise with the command's number,
//! so a scheduling event is found by binary search.

use std::collections::BTreeMap;

use crate::{EventBody, EventId, ReplyCommand};

/// Kinds of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Activity,
    Timer,
    WaitEvent,
    Dequeue,
    Child,
    Detached,
    Cancel,
    Status,
    Value,
}

impl CommandKind {
    /// The kind of a command as user code gives it.
    pub(crate) fn of_reply(command: &ReplyCommand) -> Self {
        match command {
            ReplyCommand::Activity { .. } | ReplyCommand::ReadValue { .. } | ReplyCommand::Local { .. } => {
                Self::Activity
            }
            ReplyCommand::Timer { .. } => Self::Timer,
            ReplyCommand::WaitEvent { .. } => Self::WaitEvent,
            ReplyCommand::Dequeue { .. } => Self::Dequeue,
            ReplyCommand::Child { .. } => Self::Child,
            ReplyCommand::Detached { .. } => Self::Detached,
            ReplyCommand::Cancel { .. } => Self::Cancel,
            ReplyCommand::Status { .. } => Self::Status,
            ReplyCommand::SetValue { .. }
            | ReplyCommand::ClearValue { .. }
            | ReplyCommand::ClearValues { .. } => Self::Value,
        }
    }

    /// Whether a cancel command may name it.
    pub(crate) fn is_cancellable(self) -> bool {
        matches!(self, Self::Activity | Self::Timer | Self::WaitEvent | Self::Dequeue | Self::Child)
    }

    /// The kind whose result a completion is.
    pub(crate) fn answered_by(body: &EventBody) -> Option<Self> {
        match body {
            EventBody::ActivityCompleted { .. } | EventBody::ActivityFailed { .. } => Some(Self::Activity),
            EventBody::TimerFired {} => Some(Self::Timer),
            EventBody::SubOrchestrationCompleted { .. } | EventBody::SubOrchestrationFailed { .. } => {
                Some(Self::Child)
            }
            _ => None,
        }
    }
}

/// What is known of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// Its event.
    pub(crate) event: EventId,
    /// What it is.
    pub(crate) kind: CommandKind,
    /// A completion was accepted.
    pub(crate) answered: bool,
    /// It is no longer wanted.
    pub(crate) cancelled: bool,
}

impl Slot {
    /// Still waited for.
    pub(crate) fn is_open(&self) -> bool {
        !self.answered && !self.cancelled
    }
}

/// Why a completion is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    UnknownSource,
    OtherKind,
    AnsweredAlready,
}

impl Refusal {
    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::UnknownSource => "answers nothing that was asked for",
            Self::OtherKind => "answers a command of another kind",
            Self::AnsweredAlready => "answers what has been answered already",
        }
    }
}

/// All commands of an execution.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    slots: Vec<Slot>,
    /// Instance ids of the open children, by command.
    children: BTreeMap<u32, String>,
}

impl Ledger {
    /// How many commands.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("fewer commands than event ids")
    }

    /// Adds the next command.
    pub(crate) fn push(&mut self, event: EventId, kind: CommandKind) -> u32 {
        let seq = self.len();
        self.slots.push(Slot { event, kind, answered: false, cancelled: false });
        seq
    }

    /// Notes the id of the child that command `seq` starts.
    pub(crate) fn child(&mut self, seq: u32, instance: String) {
        self.children.insert(seq, instance);
    }

    /// The command `seq`.
    pub(crate) fn get(&self, seq: u32) -> Option<&Slot> {
        self.slots.get(seq as usize)
    }

    /// The command that an event recorded.
    pub(crate) fn find(&self, event: EventId) -> Option<u32> {
        let index = self.slots.binary_search_by_key(&event, |slot| slot.event).ok()?;
        u32::try_from(index).ok()
    }

    /// The command that a completion of `kind` with this source answers, still to be answered.
    pub(crate) fn answers(&self, source: EventId, kind: CommandKind) -> Result<u32, Refusal> {
        let seq = self.find(source).ok_or(Refusal::UnknownSource)?;
        let slot = &self.slots[seq as usize];
        if slot.kind != kind {
            Err(Refusal::OtherKind)
        } else if slot.answered {
            Err(Refusal::AnsweredAlready)
        } else {
            Ok(seq)
        }
    }

    /// Notes that command `seq` has its completion.
    pub(crate) fn answer(&mut self, seq: u32) {
        self.slots[seq as usize].answered = true;
        self.children.remove(&seq);
    }

    /// Notes that command `seq` is no longer wanted; gives the id of a child that may still run.
    pub(crate) fn cancel(&mut self, seq: u32) -> Option<String> {
        self.slots[seq as usize].cancelled = true;
        self.children.remove(&seq)
    }

    /// Marks the open commands whose answers come as messages as no longer wanted; their children stay known.
    pub(crate) fn doom(&mut self) -> Vec<u32> {
        let awaited = |slot: &Slot| {
            matches!(slot.kind, CommandKind::Activity | CommandKind::Timer | CommandKind::Child)
        };
        let doomed = self.open().filter(|(_, slot)| awaited(slot)).map(|(seq, _)| seq).collect::<Vec<u32>>();
        for seq in &doomed {
            self.slots[*seq as usize].cancelled = true;
        }
        doomed
    }

    /// The open commands, in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, Slot)> {
        (0u32..).zip(self.slots.iter().copied()).filter(|(_, slot)| slot.is_open())
    }
}
