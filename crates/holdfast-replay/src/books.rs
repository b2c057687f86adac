//! The books of one execution: the ledger of commands and the mailboxes, kept in step.
//!
//! Reading a history and writing a turn go through the same three calls in the same order, so what is known after a
//! cold start equals what was known in the running process.

use crate::{
    Carried, EventBody, EventId,
    event::CarriedKind,
    inbox::Mailboxes,
    ledger::{CommandKind, Ledger},
};

/// Ledger and mailboxes.
#[derive(Debug)]
pub(crate) struct Books {
    /// What became of every command.
    pub(crate) ledger: Ledger,
    /// Unread messages and open waits.
    pub(crate) mailboxes: Mailboxes,
}

impl Books {
    /// The books of an execution that begins with what its predecessor left.
    pub(crate) fn new(carried: &[Carried]) -> Self {
        Self { ledger: Ledger::default(), mailboxes: Mailboxes::carried(carried) }
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
