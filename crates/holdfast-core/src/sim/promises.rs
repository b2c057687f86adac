//! What the model remembers of commits, so that an item that is run again is told the truth.

use super::model::Model;
use crate::store::{
    Fence,
    commit::{CommitItem, CommitOutcome},
};

impl Model {
    /// The fences that this batch settled.
    pub(super) fn note_settled(&mut self, items: &[CommitItem], outcomes: &[CommitOutcome]) {
        for (item, outcome) in items.iter().zip(outcomes) {
            if is_done(outcome) {
                self.settled.extend(fence(item).map(|fence| fence.0));
            }
        }
    }

    /// Fences that a commit of these items would settle once more.
    pub(super) fn settled_before(&self, items: &[CommitItem]) -> Vec<(usize, Fence)> {
        let fences = items.iter().enumerate().filter_map(|(index, item)| Some((index, fence(item)?)));
        fences.filter(|(_, fence)| self.settled.contains(&fence.0)).collect()
    }
}

/// Whether an item is told as written.
pub(super) fn is_done(outcome: &CommitOutcome) -> bool {
    matches!(outcome, CommitOutcome::Done { .. } | CommitOutcome::Settled(_))
}

fn fence(item: &CommitItem) -> Option<Fence> {
    match item {
        CommitItem::Turn(turn) => Some(turn.fence),
        CommitItem::Activity(activity) => Some(activity.fence),
        _ => None,
    }
}
