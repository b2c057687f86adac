//! Events that turns append.

use std::borrow::Cow;

use super::{flight::columns, item::TurnCommit};
use crate::store::history::pack;

columns! {
    /// Events to append, packed.
    Events<'a> of EventRow {
        instance: &'a str,
        execution: i64,
        event_id: i32,
        events: i32,
        at_ms: i64,
        kinds: Cow<'a, str>,
        data: Cow<'a, str>,
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
        for packed in pack(&turn.events) {
            self.events.push(EventRow {
                instance: &turn.instance,
                execution: turn.execution,
                event_id: packed.event_id,
                events: packed.events,
                at_ms: packed.at_ms,
                kinds: packed.kinds,
                data: packed.data,
            });
        }
    }
}
