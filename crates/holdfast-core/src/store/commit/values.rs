//! Values that turns keep, drop and read.

use super::{flight::columns, item::TurnCommit};

columns! {
    /// Values dropped; without a key all of an instance.
    Dropped<'a> of DroppedRow {
        instance: &'a str,
        key: Option<&'a str>,
    }
}

columns! {
    /// Values kept.
    Kept<'a> of KeptRow {
        instance: &'a str,
        key: &'a str,
        value: &'a str,
        at_ms: i64,
    }
}

columns! {
    /// Reads to be answered.
    Reads<'a> of ReadRow {
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
    pub(super) fn turn(&mut self, turn: &'a TurnCommit) {
        let instance = turn.instance.as_str();
        if turn.values.all_cleared {
            self.dropped.push(DroppedRow { instance, key: None });
        }
        for (key, change) in &turn.values.keys {
            match change {
                Some((value, at_ms)) => {
                    self.kept.push(KeptRow { instance, key, value, at_ms: *at_ms });
                }
                None => self.dropped.push(DroppedRow { instance, key: Some(key) }),
            }
        }
        for read in &turn.reads {
            self.reads.push(ReadRow {
                instance,
                execution: turn.execution,
                source: read.event,
                target: &read.instance,
                key: &read.key,
            });
        }
    }
}
