//! The promise that an item's owner hears of its end, whatever becomes of the worker that has it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    commit::{Settled, committer::closed},
    error::Result,
    store::commit::CommitOutcome,
};

/// Tells what became of an item also when its worker panicked with it: it is as if the provider were closed, its lease
/// goes back.
pub(super) struct Told(Option<Settled>);

impl Told {
    pub(super) fn new(settled: Settled) -> Self {
        Self(Some(settled))
    }

    pub(super) fn tell(mut self, outcome: Result<CommitOutcome>) {
        if let Some(settled) = self.0.take() {
            settled(outcome);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(settled) = self.0.take() {
            // It may run while a panic unwinds: a second one would end the process. The first was reported.
            let _ = catch_unwind(AssertUnwindSafe(|| settled(Err(closed()))));
        }
    }
}
