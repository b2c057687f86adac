//! Messages that a batch uses up, takes back, queues and sends.

use super::{
    flight::columns,
    item::{Send, TurnCommit},
};
use crate::store::message::columns as message_columns;

/// The last due time that is kept, in ms since 1970, near the year 280 000: the database's calendar ends soon after.
pub(super) const LAST_DUE_MS: i64 = 8_800_000_000_000_000;

columns! {
    /// Messages used up.
    Consumed<'a> of ConsumedRow {
        instance: &'a str,
        id: i64,
    }
}

columns! {
    /// Timers taken back.
    Cancelled<'a> of CancelledRow {
        instance: &'a str,
        execution: i64,
        source: i32,
    }
}

columns! {
    /// Timers queued.
    Timers<'a> of TimerRow {
        instance: &'a str,
        execution: i64,
        source: i32,
        fire_at_ms: i64,
    }
}

columns! {
    /// Messages sent.
    Messages<'a> of MessageRow {
        sender: Option<&'a str>,
        instance: &'a str,
        kind: &'a str,
        execution: Option<i64>,
        source: Option<i32>,
        name: Option<&'a str>,
        data: Option<&'a str>,
        dedup_key: Option<&'a str>,
    }
}

/// What the batch does to inboxes.
#[derive(Debug, Default)]
pub(super) struct Inbox<'a> {
    pub(super) consumed: Consumed<'a>,
    pub(super) cancelled: Cancelled<'a>,
    pub(super) timers: Timers<'a>,
    pub(super) messages: Messages<'a>,
}

impl<'a> Inbox<'a> {
    /// Adds what a turn does.
    pub(super) fn turn(&mut self, turn: &'a TurnCommit) {
        let (instance, execution) = (turn.instance.as_str(), turn.execution);
        for id in &turn.consumed {
            self.consumed.push(ConsumedRow { instance, id: *id });
        }
        for source in &turn.cancelled_timers {
            self.cancelled.push(CancelledRow { instance, execution, source: *source });
        }
        for timer in &turn.timers {
            self.timers.push(TimerRow {
                instance,
                execution,
                source: timer.event,
                fire_at_ms: timer.fire_at_ms.clamp(0, LAST_DUE_MS),
            });
        }
        for send in &turn.sends {
            self.message(Some(instance), send);
        }
    }

    /// Adds a client's message; its instance may not be known yet.
    pub(super) fn client_message(&mut self, send: &'a Send) {
        self.message(None, send);
    }

    /// A message that a turn uses by its source.
    pub(super) fn used(&mut self, instance: &'a str, execution: i64, source: i32) {
        self.cancelled.push(CancelledRow { instance, execution, source });
    }

    fn message(&mut self, sender: Option<&'a str>, send: &'a Send) {
        let columns = message_columns(&send.body);
        self.messages.push(MessageRow {
            sender,
            instance: &send.instance,
            kind: columns.kind,
            execution: columns.execution,
            source: columns.source,
            name: columns.name,
            data: columns.data,
            dedup_key: send.dedup_key.as_deref(),
        });
    }
}
