//! Messages that a batch uses up, takes back, queues and sends.

use super::{
    flight::columns,
    item::{Send, TurnCommit},
    lock::{CLIENT, Locks},
};
use crate::store::message::columns as message_columns;

/// The last due time that is kept, in ms since 1970, near the year 280 000: the database's calendar ends soon after.
pub(super) const LAST_DUE_MS: i64 = 8_800_000_000_000_000;

columns! {
    /// Messages used up.
    Consumed<'a> of ConsumedRow {
        turn: i32,
        instance: &'a str,
        id: i64,
    }
}

columns! {
    /// Timers taken back.
    Cancelled<'a> of CancelledRow {
        turn: i32,
        instance: &'a str,
        execution: i64,
        source: i32,
    }
}

columns! {
    /// Timers queued.
    Timers<'a> of TimerRow {
        turn: i32,
        instance: &'a str,
        execution: i64,
        source: i32,
        fire_at_ms: i64,
    }
}

columns! {
    /// Messages sent.
    Messages<'a> of MessageRow {
        turn: i32,
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
    pub(super) fn turn(&mut self, number: i32, turn: &'a TurnCommit) {
        let (instance, execution) = (turn.instance.as_str(), turn.execution);
        for id in &turn.consumed {
            self.consumed.push(ConsumedRow { turn: number, instance, id: *id });
        }
        for source in &turn.cancelled_timers {
            self.cancelled.push(CancelledRow { turn: number, instance, execution, source: *source });
        }
        for timer in &turn.timers {
            self.timers.push(TimerRow {
                turn: number,
                instance,
                execution,
                source: timer.event,
                fire_at_ms: timer.fire_at_ms.clamp(0, LAST_DUE_MS),
            });
        }
        for send in &turn.sends {
            self.message(number, Some(instance), send);
        }
    }

    /// Adds a client's message; its instance may not be known yet.
    pub(super) fn client_message(&mut self, send: &'a Send, locks: &mut Locks<'a>) {
        locks.made(CLIENT, &send.instance);
        self.message(CLIENT, None, send);
    }

    fn message(&mut self, turn: i32, sender: Option<&'a str>, send: &'a Send) {
        let columns = message_columns(&send.body);
        self.messages.push(MessageRow {
            turn,
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
