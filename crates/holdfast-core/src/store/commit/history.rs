//! Events that turns append.

use super::{flight::columns, item::TurnCommit};
use crate::store::message::event_number;

columns! {
    /// Events to append.
    Events<'a> of EventRow {
        instance: &'a str,
        execution: i64,
        event_id: i32,
        kind: &'a str,
        source: Option<i32>,
        at_ms: i64,
        data: &'a str,
    }
}

/// What the batch appends to histories.
#[derive(Debug, Default)]
pub(super) struct History<'a> {
    pub(super) events: Events<'a>,
}

impl<'a> History<'a> {
    /// Adds the events of a turn.
    pub(super) fn turn(&mut self, turn: &'a TurnCommit) {
        for event in &turn.events {
            self.events.push(EventRow {
                instance: &turn.instance,
                execution: turn.execution,
                event_id: event_number(event.id),
                kind: &event.kind,
                source: event.source.map(event_number),
                at_ms: event.at_ms,
                data: &event.data,
            });
        }
    }
}
