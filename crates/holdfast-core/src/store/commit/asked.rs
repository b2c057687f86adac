//! What the head of a commit asks of the tables, and the leases it is told of.

use std::collections::HashMap;

use super::{
    activities::lease_ms,
    flight::{Answers, Step, columns},
    item::{NewActivity, TurnCommit},
};
use crate::{
    error::Result,
    store::{Fence, NodeKey, row::column},
};

columns! {
    /// Turns whose instance completes.
    Completing<'a> of CompletingRow {
        instance: &'a str,
        fence: i64,
    }
}

columns! {
    /// Tasks that end.
    EndedTasks<'a> of EndedTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
    }
}

columns! {
    /// Tasks that an earlier run may have settled.
    SettledTasks<'a> of SettledTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        // `None` for one without a row.
        fence: Option<i64>,
    }
}

columns! {
    /// Tasks that an earlier run of a turn may have leased to its node.
    Handed<'a> of HandedRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        owner: &'a str,
        owner_epoch: i64,
        turn_fence: i64,
        deliveries: i32,
    }
}

columns! {
    /// Turns of which an earlier run may have leased the instance to its node again.
    Retaken<'a> of RetakenRow {
        instance: &'a str,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
    }
}

columns! {
    /// Starts of which an earlier run may have leased the first turn to its node.
    Begun<'a> of BegunRow {
        instance: &'a str,
        owner: &'a str,
        owner_epoch: i64,
    }
}

columns! {
    /// Results that a turn uses and that may lie in the inbox.
    Used<'a> of UsedRow {
        instance: &'a str,
        execution: i64,
        source: i32,
    }
}

/// The lease of a locked turn row.
pub(super) struct Lease<'r> {
    fence: Fence,
    owner: Option<(&'r str, i64)>,
}

impl Lease<'_> {
    /// Settling succeeds under the row's own fence when the owner is this node and epoch, or nobody.
    pub(super) fn admits(&self, fence: Fence, node: &NodeKey) -> bool {
        let NodeKey { id, epoch } = node;
        self.fence == fence && self.owner.is_none_or(|owner| owner == (id.as_str(), *epoch))
    }
}

/// The leases of the rows that were locked.
pub(super) fn leases(answers: &Answers) -> Result<HashMap<&str, Lease<'_>>> {
    let mut leases = HashMap::new();
    for row in answers.rows(Step::Locked) {
        let owner: Option<&str> = column(row, "owner")?;
        let epoch: Option<i64> = column(row, "owner_epoch")?;
        let lease = Lease { fence: Fence(column(row, "fence")?), owner: owner.zip(epoch) };
        leases.insert(column(row, "instance")?, lease);
    }
    Ok(leases)
}

/// The tasks that a turn leases to its node, each with the deliveries of it that count when nobody hears of that: a body that
/// ran before it had a row did start.
pub(super) fn taken(turn: &TurnCommit) -> impl Iterator<Item = (&NewActivity, i32)> {
    let queued = turn.activities.iter().map(|task| (task, 0));
    let belated = turn.belated.iter().map(|belated| (&belated.task, belated.deliveries + 1));
    queued.chain(belated).filter(|(task, _)| lease_ms(turn, task).is_some())
}
