//! What a committed turn adds to the counters of its runtime.

use crate::{
    store::commit::{TurnCommit, TurnEnd},
    telemetry::{FailureClass, RunCounters},
};

/// Counted once the turn is committed.
#[derive(Debug, Default)]
pub(super) struct Tally {
    first: bool,
    children: u64,
    end: Option<Ended>,
}

#[derive(Debug)]
enum Ended {
    Completed,
    ContinuedAsNew,
    Failed(FailureClass),
}

impl Tally {
    /// What a commit will add.
    pub(super) fn of(commit: &TurnCommit) -> Self {
        let wrote = i32::try_from(commit.events.len()).unwrap_or(i32::MAX);
        let children = commit.starts.iter().filter(|start| start.parent.is_some()).count();
        let end = commit.end.as_ref().map(|end| match end {
            TurnEnd::Completed { .. } => Ended::Completed,
            TurnEnd::ContinuedAsNew { .. } => Ended::ContinuedAsNew,
            TurnEnd::Failed { error } => Ended::Failed(FailureClass::of(error)),
            TurnEnd::Cancelled { .. } => Ended::Failed(FailureClass::Application),
        });
        // A parked instance shows as failed.
        let parked = commit.park.as_ref().map(|park| Ended::Failed(FailureClass::of(&park.error)));
        Self {
            first: commit.execution == 1 && wrote > 0 && wrote == commit.history_len,
            children: children as u64,
            end: end.or(parked),
        }
    }

    pub(super) fn add_to(&self, counters: &RunCounters) {
        counters.orch_starts.add(u64::from(self.first));
        counters.suborchestration_calls.add(self.children);
        match &self.end {
            None => {}
            Some(Ended::Completed) => counters.orch_completions.add(1),
            Some(Ended::ContinuedAsNew) => counters.orch_continue_as_new.add(1),
            Some(Ended::Failed(class)) => {
                counters.orch_failures.add(1);
                match class {
                    FailureClass::Application => counters.orch_application_errors.add(1),
                    FailureClass::Infrastructure => counters.orch_infrastructure_errors.add(1),
                    FailureClass::Configuration => counters.orch_configuration_errors.add(1),
                    FailureClass::Poison => counters.orch_poison.add(1),
                }
            }
        }
    }
}
