//! The turns of a batch and the turn rows it locks.
//!
//! Turns are numbered from 1 in batch order; rows of later statements name their turn by that number, 0 is a client.

use std::collections::BTreeMap;

use tokio_postgres::types::ToSql;

use super::{
    flight::{Params, columns},
    item::{ActivityCommit, TurnCommit},
};
use crate::store::{Fence, NodeKey, message::event_number};

/// The number of a client's rows.
const CLIENT: i32 = 0;

/// The turns: what the fence check needs.
#[derive(Debug, Default)]
pub(super) struct Turns<'a> {
    instance: Vec<&'a str>,
    fence: Vec<i64>,
    owner: Vec<&'a str>,
    owner_epoch: Vec<i64>,
    execution: Vec<i64>,
    /// First event of those that keep their lease.
    first_event: Vec<Option<i32>>,
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

columns! {
    /// The rows to lock, with the leases that a batch in one flight takes for granted.
    Expected<'a> of ExpectedRow {
        instance: &'a str,
        fence: Option<i64>,
        owner: Option<&'a str>,
        owner_epoch: Option<i64>,
    }
}

/// The lease that a turn, or an activity that ran under it, has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Needed<'a> {
    fence: Fence,
    node: &'a NodeKey,
}

/// A turn row that the batch locks.
#[derive(Debug, Default)]
struct Addressed<'a> {
    needed: Option<Needed<'a>>,
    /// A turn of the batch is its.
    turns: bool,
}

/// Every turn row that the batch settles or addresses.
#[derive(Debug, Default)]
pub(super) struct Locks<'a> {
    pub(super) turns: Turns<'a>,
    pub(super) missing: Missing<'a>,
    addressed: BTreeMap<&'a str, Addressed<'a>>,
    /// An instance has several turns, or other leases are needed of it: not everything can stand.
    pub(super) contested: bool,
    sorted: Vec<&'a str>,
}

impl<'a> Turns<'a> {
    /// What a statement needs to check the fences of the turns.
    pub(super) fn guard_params(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.instance, &self.fence, &self.owner, &self.owner_epoch]
    }

    /// What a statement needs to find out which of them an earlier run wrote.
    pub(super) fn found_params(&self) -> Option<Params<'_>> {
        if self.instance.is_empty() {
            return None;
        }
        Some(vec![&self.instance, &self.fence, &self.execution, &self.first_event])
    }
}

impl<'a> Locks<'a> {
    /// Adds a turn with everybody it addresses.
    pub(super) fn turn(&mut self, index: usize, turn: &'a TurnCommit) {
        self.turns.instance.push(&turn.instance);
        self.turns.fence.push(turn.fence.0);
        self.turns.owner.push(&turn.node.id);
        self.turns.owner_epoch.push(turn.node.epoch);
        self.turns.execution.push(turn.execution);
        let first_event = turn.events.first().filter(|_| turn.keeps);
        self.turns.first_event.push(first_event.map(|event| event_number(event.id)));
        self.turns.items.push(index);
        let number = i32::try_from(self.turns.items.len()).expect("a batch is far smaller than 2^31");
        let needed = Needed { fence: turn.fence, node: &turn.node };
        let other = std::mem::replace(&mut self.need(&turn.instance, needed).turns, true);
        self.contested |= other;
        for send in &turn.sends {
            self.existing(&send.instance);
        }
        for start in &turn.starts {
            self.made(number, &start.instance);
        }
    }

    /// Adds an activity that ran under the lease of its instance's turn.
    pub(super) fn rowless(&mut self, activity: &'a ActivityCommit) {
        let needed = Needed { fence: activity.fence, node: &activity.node };
        self.need(&activity.key.instance, needed);
    }

    fn need(&mut self, instance: &'a str, needed: Needed<'a>) -> &mut Addressed<'a> {
        let row = self.addressed.entry(instance).or_default();
        self.contested |= row.needed.replace(needed).is_some_and(|other| other != needed);
        row
    }

    /// A row that is locked when it exists.
    pub(super) fn existing(&mut self, instance: &'a str) {
        self.addressed.entry(instance).or_default();
    }

    /// A row that a client addresses: it is made when it is missing.
    pub(super) fn made_by_client(&mut self, instance: &'a str) {
        self.made(CLIENT, instance);
    }

    fn made(&mut self, turn: i32, instance: &'a str) {
        self.existing(instance);
        self.missing.push(MissingRow { turn, instance });
    }

    /// Puts the rows to lock in key order.
    pub(super) fn seal(&mut self) {
        self.sorted = self.addressed.keys().copied().collect();
    }

    /// The rows to lock, in key order.
    pub(super) fn params(&self) -> Option<Params<'_>> {
        if self.sorted.is_empty() { None } else { Some(vec![&self.sorted]) }
    }

    /// The rows to lock, in key order, each with the lease that its turn has to have.
    pub(super) fn expected(&self) -> Expected<'a> {
        let mut expected = Expected::default();
        for (instance, Addressed { needed, .. }) in &self.addressed {
            expected.push(ExpectedRow {
                instance,
                fence: needed.map(|needed| needed.fence.0),
                owner: needed.map(|needed| needed.node.id.as_str()),
                owner_epoch: needed.map(|needed| needed.node.epoch),
            });
        }
        expected
    }
}
