//! The books of one execution: the ledger of commands, the mailboxes and the kept values, in step.
//!
//! Reading a history and writing a turn go through the same three calls in the same order, so what is known after a
//! cold start equals what was known in the running process.

use crate::{
    EventBody, EventId, StartInfo,
    event::CarriedKind,
    inbox::Mailboxes,
    ledger::{CommandKind, Ledger},
    values::Values,
};

/// Ledger, mailboxes and values.
#[derive(Debug)]
pub(crate) struct Books {
    /// What became of every command.
    pub(crate) ledger: Ledger,
    /// Unread messages and open waits.
    pub(crate) mailboxes: Mailboxes,
    /// Kept values.
    pub(crate) values: Values,
}

impl Books {
    /// The books of an execution that begins with what its predecessor left.
    pub(crate) fn new(start: &StartInfo) -> Self {
        Self {
            ledger: Ledger::default(),
            mailboxes: Mailboxes::carried(&start.carried),
            values: Values::carried(&start.values),
        }
    }

    /// Enters a command other than cancel; gives its number.
    pub(crate) fn command(&mut self, event: EventId, kind: CommandKind, body: &EventBody) -> u32 {
        let seq = self.ledger.push(event, kind);
        let at_once = match body {
            EventBody::ExternalSubscribed { name } => self.mailboxes.wait(CarriedKind::Event, name, seq),
            EventBody::QueueSubscribed { name } => self.mailboxes.wait(CarriedKind::Queue, name, seq),
            EventBody::SubOrchestrationScheduled { instance, .. } => {
                self.ledger.child(seq, instance.clone());
                false
            }
            EventBody::OrchestrationChained { .. } | EventBody::CustomStatusUpdated { .. } => true,
            EventBody::KeyValueSet { .. }
            | EventBody::KeyValueCleared { .. }
            | EventBody::KeyValuesCleared {} => {
                self.values.event(body);
                true
            }
            _ => false,
        };
        if at_once {
            self.ledger.answer(seq);
        }
        seq
    }

    /// Enters a cancel command; gives the id of a child that may still run.
    pub(crate) fn cancel(&mut self, event: EventId, target: u32) -> Option<String> {
        let own = self.ledger.push(event, CommandKind::Cancel);
        self.ledger.answer(own);
        self.mailboxes.cancel(target);
        self.ledger.cancel(target)
    }

    /// The command `seq` is no longer wanted because the execution was cancelled; gives the id of a child that may still run.
    pub(crate) fn drop_command(&mut self, seq: u32) -> Option<String> {
        self.mailboxes.cancel(seq);
        self.ledger.cancel(seq)
    }

    /// Enters a recorded request to cancel: everything open is no longer wanted.
    pub(crate) fn cancelled(&mut self) {
        let open: Vec<u32> = self.ledger.open().map(|(seq, _)| seq).collect();
        for seq in open {
            self.drop_command(seq);
        }
    }

    /// Enters an event or queue message that arrived; other facts are entered when they are accepted.
    pub(crate) fn arrival(&mut self, body: &EventBody) {
        let taken_by = match body {
            EventBody::ExternalEvent { name, data } => self.mailboxes.arrive(CarriedKind::Event, name, data),
            EventBody::QueueEventDelivered { name, data } => {
                self.mailboxes.arrive(CarriedKind::Queue, name, data)
            }
            _ => None,
        };
        if let Some(wait) = taken_by {
            self.ledger.answer(wait);
        }
    }
}
