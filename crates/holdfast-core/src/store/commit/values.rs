//! Values that turns keep, drop and read.

use super::{flight::columns, item::TurnCommit};

columns! {
    /// Values dropped; without a key all of an instance.
    Dropped<'a> of DroppedRow {
        turn: i32,
        instance: &'a str,
        key: Option<&'a str>,
    }
}

columns! {
    /// Values kept.
    Kept<'a> of KeptRow {
        turn: i32,
        instance: &'a str,
        key: &'a str,
        value: &'a str,
        at_ms: i64,
    }
}

columns! {
    /// Reads to be answered.
    Reads<'a> of ReadRow {
        turn: i32,
        instance: &'a str,
        execution: i64,
        source: i32,
        target: &'a str,
        key: &'a str,
    }
}

/// What the batch does to values.
#[derive(Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) dropped: Dropped<'a>,
    pub(super) kept: Kept<'a>,
    pub(super) reads: Reads<'a>,
}

impl<'a> Values<'a> {
    /// Adds what a turn does.
    pub(super) fn turn(&mut self, number: i32, turn: &'a TurnCommit) {
        let instance = turn.instance.as_str();
        if turn.values.all_cleared {
            self.dropped.push(DroppedRow { turn: number, instance, key: None });
        }
        for (key, change) in &turn.values.keys {
            match change {
                Some((value, at_ms)) => {
                    self.kept.push(KeptRow { turn: number, instance, key, value, at_ms: *at_ms });
                }
                None => self.dropped.push(DroppedRow { turn: number, instance, key: Some(key) }),
            }
        }
        for read in &turn.reads {
            self.reads.push(ReadRow {
                turn: number,
                instance,
                execution: turn.execution,
                source: read.event,
                target: &read.instance,
                key: &read.key,
            });
        }
    }
}
