//! Whether work stays in this process: then no hint leaves it. No I/O.

use crate::store::commit::{ActivityOutcome, CommitItem, TurnCommit, TurnEnd};

/// What a runtime of this process can take.
pub trait LocalSlots: Send + Sync {
    /// Whether it takes anything at all: not once it stops, nor while it is held up.
    fn claims(&self) -> bool;
    /// Slots that are free: for turns, for activities.
    fn free(&self) -> (usize, usize);
    /// Whether it runs turns of this instance; the name is not known for messages.
    fn runs_turn(&self, instance: &str, name: Option<&str>) -> bool;
    /// Whether it runs this activity.
    fn runs_activity(&self, name: &str, tag: Option<&str>) -> bool;
}

/// What a commit made ready that runtimes here may take.
struct Taking<'a> {
    slots: &'a dyn LocalSlots,
    turns: usize,
    activities: usize,
}

/// Whether a commit made more ready than one runtime of this process takes.
pub(super) fn leaves(items: &[CommitItem], local: &[&dyn LocalSlots]) -> bool {
    !local.iter().filter(|slots| slots.claims()).any(|slots| {
        let (turns, activities) = slots.free();
        let mut taking = Taking { slots: *slots, turns, activities };
        items.iter().all(|item| taking.takes(item))
    })
}

impl Taking<'_> {
    fn takes(&mut self, item: &CommitItem) -> bool {
        match item {
            CommitItem::Start(start) => self.takes_turn(&start.instance, Some(&start.name)),
            CommitItem::Send(send) => self.takes_turn(&send.instance, None),
            CommitItem::Activity(activity) => match activity.outcome {
                // It ran here, so it can again.
                ActivityOutcome::Retry { .. } | ActivityOutcome::StandaloneEnded(_) => true,
                ActivityOutcome::Ended(_) => self.takes_turn(&activity.key.instance, None),
            },
            CommitItem::Enqueue(enqueue) => {
                enqueue.tasks.iter().all(|task| self.takes_activity(&task.name, task.tag.as_deref()))
            }
            CommitItem::Turn(turn) => self.takes_results_of(turn),
        }
    }

    fn takes_results_of(&mut self, turn: &TurnCommit) -> bool {
        let again = matches!(turn.end, Some(TurnEnd::ContinuedAsNew { .. }));
        (!again || self.takes_turn(&turn.instance, Some(&turn.name)))
            && turn.activities.iter().all(|task| self.takes_activity(&task.name, task.tag.as_deref()))
            && turn.sends.iter().all(|send| self.takes_turn(&send.instance, None))
            && turn.starts.iter().all(|start| self.takes_turn(&start.instance, Some(&start.name)))
    }

    fn takes_turn(&mut self, instance: &str, name: Option<&str>) -> bool {
        let takes = self.turns > 0 && self.slots.runs_turn(instance, name);
        self.turns = self.turns.saturating_sub(1);
        takes
    }

    fn takes_activity(&mut self, name: &str, tag: Option<&str>) -> bool {
        let takes = self.activities > 0 && self.slots.runs_activity(name, tag);
        self.activities = self.activities.saturating_sub(1);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::commit::Start;

    struct Slots(usize);

    impl LocalSlots for Slots {
        fn claims(&self) -> bool {
            true
        }

        fn free(&self) -> (usize, usize) {
            (self.0, self.0)
        }

        fn runs_turn(&self, _instance: &str, name: Option<&str>) -> bool {
            name == Some("mine")
        }

        fn runs_activity(&self, name: &str, tag: Option<&str>) -> bool {
            name == "mine" && tag.is_none()
        }
    }

    fn start(name: &str) -> CommitItem {
        CommitItem::Start(Start {
            instance: "i".to_owned(),
            name: name.to_owned(),
            input: "1".to_owned(),
            ..Start::default()
        })
    }

    #[test]
    fn work_stays_where_a_slot_is_free_and_the_handler_is_there() {
        assert!(!leaves(&[start("mine")], &[&Slots(1)]));
        assert!(leaves(&[start("mine")], &[]), "a client without a runtime");
        assert!(leaves(&[start("mine")], &[&Slots(0)]), "no free slot");
        assert!(leaves(&[start("other")], &[&Slots(9)]), "no handler");
        assert!(leaves(&[start("mine"), start("mine")], &[&Slots(1)]), "more than the slots take");
        assert!(!leaves(&[start("mine")], &[&Slots(0), &Slots(1)]), "the second runtime takes it");
    }
}
