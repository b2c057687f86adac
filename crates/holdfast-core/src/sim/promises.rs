//! What an item that is run again must be told: the truth, as long as nobody went on with its instance or its task.

use super::model::Model;
use crate::store::commit::{CommitItem, CommitOutcome};

impl Model {
    /// The items that an earlier commit settled, as far as the tables still tell.
    pub(super) fn settled_before(&self, items: &[CommitItem]) -> Vec<usize> {
        let settled = |item: &CommitItem| match item {
            CommitItem::Turn(turn) => self.was_turn_settled(turn),
            CommitItem::Activity(activity) => self.was_settled(activity),
            _ => false,
        };
        items.iter().enumerate().filter(|(_, item)| settled(item)).map(|(index, _)| index).collect()
    }
}

/// Whether an item is told as written.
pub(super) fn is_done(outcome: &CommitOutcome) -> bool {
    matches!(outcome, CommitOutcome::Done { .. } | CommitOutcome::Settled(_))
}
