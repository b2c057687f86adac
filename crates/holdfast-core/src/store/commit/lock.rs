//! The turns of a batch and the turn rows it locks.
//!
//! Turns are numbered from 1 in batch order; rows of later statements name their turn by that number, 0 is a client.

use std::collections::BTreeSet;

use tokio_postgres::types::ToSql;

use super::{
    flight::{Params, columns},
    item::TurnCommit,
};

/// The number of a client's rows.
pub(super) const CLIENT: i32 = 0;

/// The turns: what the fence check needs.
#[derive(Debug, Default)]
pub(super) struct Turns<'a> {
    instance: Vec<&'a str>,
    fence: Vec<i64>,
    owner: Vec<&'a str>,
    owner_epoch: Vec<i64>,
    /// Index of each turn in the batch.
    pub(super) items: Vec<usize>,
}

columns! {
    /// Turn rows to be made when they are missing.
    Missing<'a> of MissingRow {
        turn: i32,
        instance: &'a str,
    }
}

/// Every turn row that the batch settles or addresses.
#[derive(Debug, Default)]
pub(super) struct Locks<'a> {
    pub(super) turns: Turns<'a>,
    pub(super) missing: Missing<'a>,
    addressed: BTreeSet<&'a str>,
    sorted: Vec<&'a str>,
}

impl<'a> Turns<'a> {
    /// The first four parameters of every guarded statement.
    pub(super) fn guard_params(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.instance, &self.fence, &self.owner, &self.owner_epoch]
    }

    /// Instances and fences.
    pub(super) fn key_params(&self) -> Option<Params<'_>> {
        if self.instance.is_empty() { None } else { Some(vec![&self.instance, &self.fence]) }
    }
}

impl<'a> Locks<'a> {
    /// Adds a turn with everybody it addresses; returns its number.
    pub(super) fn turn(&mut self, index: usize, turn: &'a TurnCommit) -> i32 {
        self.turns.instance.push(&turn.instance);
        self.turns.fence.push(turn.fence.0);
        self.turns.owner.push(&turn.node.id);
        self.turns.owner_epoch.push(turn.node.epoch);
        self.turns.items.push(index);
        let number = i32::try_from(self.turns.items.len()).expect("a batch is far smaller than 2^31");
        self.existing(&turn.instance);
        for send in &turn.sends {
            self.existing(&send.instance);
        }
        for start in &turn.starts {
            self.made(number, &start.instance);
        }
        number
    }

    /// A row that is locked when it exists.
    pub(super) fn existing(&mut self, instance: &'a str) {
        self.addressed.insert(instance);
    }

    /// A row that is made when it is missing.
    pub(super) fn made(&mut self, turn: i32, instance: &'a str) {
        self.addressed.insert(instance);
        self.missing.push(MissingRow { turn, instance });
    }

    /// Puts the rows to lock in key order.
    pub(super) fn seal(&mut self) {
        self.sorted = self.addressed.iter().copied().collect();
    }

    /// The rows to lock, in key order.
    pub(super) fn params(&self) -> Option<Params<'_>> {
        if self.sorted.is_empty() { None } else { Some(vec![&self.sorted]) }
    }
}
