//! The end of each turn's lease, the last part of a commit.

use super::{
    flight::columns,
    item::{TurnCommit, TurnEnd},
};
use crate::store::{queue::MAX_MS, replay_version};

columns! {
    /// Turns whose instance goes on.
    SettledTurns<'a> of SettledTurnRow {
        instance: &'a str,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        progress: bool,
        execution: i64,
        history_len: i32,
        version: Option<&'a str>,
        due_now: bool,
        parked: bool,
        replay_version: i64,
    }
}

columns! {
    /// Turns whose instance is leased to their node again.
    RetakenTurns<'a> of RetakenTurnRow {
        instance: &'a str,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        lease_ms: i64,
    }
}

columns! {
    /// Turns whose instance ends.
    EndedTurns<'a> of EndedTurnRow {
        instance: &'a str,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        poisoned: bool,
    }
}

/// The turns of the batch as they are settled.
#[derive(Debug, Default)]
pub(super) struct Settle<'a> {
    pub(super) settled: SettledTurns<'a>,
    pub(super) settled_items: Vec<usize>,
    pub(super) retaken: RetakenTurns<'a>,
    pub(super) retaken_items: Vec<usize>,
    pub(super) ended: EndedTurns<'a>,
    pub(super) ended_items: Vec<usize>,
    /// Turns whose lease goes on: their row is not written.
    pub(super) kept_items: Vec<usize>,
}

impl<'a> Settle<'a> {
    /// Adds a turn.
    pub(super) fn turn(&mut self, index: usize, turn: &'a TurnCommit) {
        if turn.keeps {
            self.kept_items.push(index);
            return;
        }
        let (execution, history_len, version, due_now) = match &turn.end {
            None => {
                let version = match &turn.park {
                    Some(park) => park.version.as_deref(),
                    None => Some(turn.version.as_str()),
                };
                (turn.execution, turn.history_len, version, false)
            }
            Some(TurnEnd::ContinuedAsNew { version, .. }) => {
                (turn.execution + 1, 0, version.as_deref(), true)
            }
            Some(TurnEnd::Completed { .. } | TurnEnd::Failed { .. } | TurnEnd::Cancelled { .. }) => {
                self.ended.push(EndedTurnRow {
                    instance: &turn.instance,
                    fence: turn.fence.0,
                    owner: &turn.node.id,
                    owner_epoch: turn.node.epoch,
                    poisoned: turn.poisoned,
                });
                self.ended_items.push(index);
                return;
            }
        };
        self.settled.push(SettledTurnRow {
            instance: &turn.instance,
            fence: turn.fence.0,
            owner: &turn.node.id,
            owner_epoch: turn.node.epoch,
            // A parked turn is not delivered again by itself, so its deliveries are of no use.
            progress: !turn.consumed.is_empty() || !turn.events.is_empty() || turn.park.is_some(),
            execution,
            history_len,
            version,
            due_now,
            parked: turn.park.is_some(),
            replay_version: replay_version::current(),
        });
        self.settled_items.push(index);
        if let Some(lease_ms) = turn.retake_ms {
            self.retaken.push(RetakenTurnRow {
                instance: &turn.instance,
                fence: turn.fence.0,
                owner: &turn.node.id,
                owner_epoch: turn.node.epoch,
                lease_ms: lease_ms.clamp(0, MAX_MS),
            });
            self.retaken_items.push(index);
        }
    }
}
