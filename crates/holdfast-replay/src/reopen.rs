//! What an execution has under way: the messages it waits for, and, of a poisoned one, what a retry puts back.
//!
//! Its end took the activities back; timers and messages were left where they are, children went on. It never changes a
//! history: the retry is an event behind the end.

use std::collections::BTreeMap;

use crate::{
    CarriedKind, CorruptHistory, Event, EventBody, EventId, Execution, cursor::Cursor, ledger::CommandKind,
};

/// What is to be put back.
#[derive(Debug, Default)]
pub struct Reopened {
    /// The ActivityScheduled events of the open activities.
    pub activities: Vec<(EventId, EventBody)>,
    /// The scheduling events of the open children, with their ids.
    pub children: Vec<(EventId, String)>,
}

/// What an execution had under way when it failed.
pub fn reopen(events: Vec<Event>) -> Result<Reopened, CorruptHistory> {
    let scheduled: BTreeMap<EventId, EventBody> = events
        .iter()
        .filter(|event| {
            matches!(
                event.body,
                EventBody::ActivityScheduled { local: false, .. }
                    | EventBody::SubOrchestrationScheduled { .. }
            )
        })
        .map(|event| (event.id, event.body.clone()))
        .collect();
    let cursor = Cursor::read(events)?;
    let mut reopened = Reopened::default();
    for (_, slot) in cursor.books.ledger.open() {
        match (slot.kind, scheduled.get(&slot.event)) {
            (CommandKind::Activity, Some(body)) => reopened.activities.push((slot.event, body.clone())),
            (CommandKind::Child, Some(EventBody::SubOrchestrationScheduled { instance, .. })) => {
                reopened.children.push((slot.event, instance.clone()));
            }
            _ => {}
        }
    }
    Ok(reopened)
}

impl Execution {
    /// True once somebody asked to cancel: it ends as cancelled whatever its code does.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some()
    }

    /// The messages that it waits for, in the order of the waits.
    pub fn open_waits(&self) -> Vec<(CarriedKind, String)> {
        self.books.mailboxes.open_waits()
    }
}
