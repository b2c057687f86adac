//! What the lists of commands know: leases that were handed out, in use or long gone, and batches that may be run again.
//! All numbers are the model's.

use holdfast_replay::{MessageBody, ParentLink};

use crate::store::{
    ActivityKey, Fence, NodeKey, activity::ClaimedActivity, commit::CommitItem, turn::ClaimedTurn,
};

/// Leases and batches remembered at most; older ones are forgotten.
const MEMORY: usize = 12;

/// A turn that was claimed, or that may be settled under the fence its last one left.
#[derive(Debug, Clone)]
pub(super) struct TurnLease {
    pub(super) instance: String,
    pub(super) fence: Fence,
    pub(super) node: NodeKey,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) execution: i64,
    pub(super) history_len: i32,
    pub(super) parent: Option<ParentLink>,
    pub(super) parked: bool,
    pub(super) poisoned: bool,
    /// What was read of the inbox.
    pub(super) messages: Vec<(i64, MessageBody)>,
}

impl TurnLease {
    pub(super) fn of(claimed: &ClaimedTurn, node: &NodeKey) -> Self {
        Self {
            instance: claimed.instance.clone(),
            fence: claimed.fence,
            node: node.clone(),
            name: claimed.name.clone(),
            version: claimed.version.clone(),
            execution: claimed.execution,
            history_len: claimed.history_len,
            parent: claimed.parent.clone(),
            parked: claimed.parked,
            poisoned: claimed.poisoned,
            messages: Vec::new(),
        }
    }
}

/// An activity that was claimed or handed over.
#[derive(Debug, Clone)]
pub(super) struct TaskLease {
    pub(super) key: ActivityKey,
    pub(super) fence: Fence,
    pub(super) node: NodeKey,
    pub(super) attempt: i32,
}

impl TaskLease {
    pub(super) fn of(claimed: &ClaimedActivity, node: &NodeKey) -> Self {
        Self { key: claimed.key.clone(), fence: claimed.fence, node: node.clone(), attempt: claimed.attempt }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) nodes: Vec<NodeKey>,
    pub(super) turns: Vec<TurnLease>,
    pub(super) tasks: Vec<TaskLease>,
    /// The last one is the newest.
    pub(super) batches: Vec<Vec<CommitItem>>,
    /// Numbers that make values differ.
    pub(super) values: u64,
}

/// Remembers the newest.
pub(super) fn remember<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MEMORY {
        list.remove(0);
    }
    list.push(item);
}

impl Book {
    /// A value that no other command has, as JSON.
    pub(super) fn value(&mut self) -> String {
        self.values += 1;
        self.values.to_string()
    }
}
