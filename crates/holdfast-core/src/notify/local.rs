//! Whether work stays in this process: then no hint leaves it. No I/O.

use crate::store::commit::{ActivityOutcome, CommitItem, NewActivity, TurnCommit, TurnEnd};

/// What a runtime of this process can take.
pub trait LocalSlots: Send + Sync {
    /// Whether it takes anything at all: not once it stops, nor while it is held up.
    fn claims(&self) -> bool;
    /// Slots that are free: for turns, for activities.
    fn free(&self) -> (usize, usize);
    /// Whether it runs turns of this instance; the name is not known for messages.
    fn runs_turn(&self, instance: &str, name: Option<&str>) -> bool;
    /// Whether a turn of this instance is in progress here, or the next one will be in a moment.
    fn is_under_way(&self, instance: &str) -> bool;
    /// Whether it runs this activity.
    fn runs_activity(&self, name: &str, tag: Option<&str>) -> bool;
}

/// What a commit made ready that a runtime here may take.
struct Taking<'a> {
    /// None takes nothing.
    slots: Option<&'a dyn LocalSlots>,
    turns: usize,
    activities: usize,
}

/// How much of what a commit made ready no runtime of this process takes alone.
pub(super) fn left_over(items: &[CommitItem], local: &[&dyn LocalSlots]) -> u32 {
    let left =
        |mut taking: Taking<'_>| items.iter().map(|item| taking.leaves(item)).fold(0, u32::saturating_add);
    let claiming = local.iter().filter(|slots| slots.claims());
    let least = claiming.map(|slots| {
        let (turns, activities) = slots.free();
        left(Taking { slots: Some(*slots), turns, activities })
    });
    least.min().unwrap_or_else(|| left(Taking { slots: None, turns: 0, activities: 0 }))
}

impl Taking<'_> {
    fn leaves(&mut self, item: &CommitItem) -> u32 {
        match item {
            CommitItem::Start(start) if start.lease.is_some() => 0,
            CommitItem::Start(start) => self.turn(&start.instance, Some(&start.name)),
            CommitItem::Send(send) => self.turn(&send.instance, None),
            CommitItem::Activity(activity) => match activity.outcome {
                // It ran here, so it can again, unless nothing runs here any more.
                ActivityOutcome::Retry { .. } => u32::from(self.slots.is_none()),
                ActivityOutcome::StandaloneEnded(_) => 0,
                ActivityOutcome::Ended(_) => self.turn(&activity.key.instance, None),
            },
            CommitItem::Enqueue(enqueue) => {
                sum(enqueue.tasks.iter().map(|task| self.activity(&task.name, task.tag.as_deref())))
            }
            CommitItem::Turn(turn) => self.results_of(turn),
        }
    }

    fn results_of(&mut self, turn: &TurnCommit) -> u32 {
        let again = matches!(turn.end, Some(TurnEnd::ContinuedAsNew { .. }));
        let again = if again { self.turn(&turn.instance, Some(&turn.name)) } else { 0 };
        let belated = turn.belated.iter().map(|row| &row.task);
        let activities = sum(turn
            .activities
            .iter()
            .chain(belated)
            .filter(queued)
            .map(|task| self.activity(&task.name, task.tag.as_deref())));
        let sends = sum(turn.sends.iter().map(|send| self.turn(&send.instance, None)));
        let starts = sum(turn.starts.iter().map(|start| self.turn(&start.instance, Some(&start.name))));
        sum([again, activities, sends, starts].into_iter())
    }

    fn turn(&mut self, instance: &str, name: Option<&str>) -> u32 {
        let runs = self.slots.is_some_and(|slots| slots.runs_turn(instance, name));
        take(&mut self.turns, runs)
    }

    fn activity(&mut self, name: &str, tag: Option<&str>) -> u32 {
        let runs = self.slots.is_some_and(|slots| slots.runs_activity(name, tag));
        take(&mut self.activities, runs)
    }
}

/// The node of the turn took the others at once.
fn queued(task: &&NewActivity) -> bool {
    task.lease_ms.is_none()
}

/// Takes a free slot for what runs here; 1 when it is left to others.
fn take(free: &mut usize, runs: bool) -> u32 {
    if !runs || *free == 0 {
        return 1;
    }
    *free -= 1;
    0
}

fn sum(parts: impl Iterator<Item = u32>) -> u32 {
    parts.fold(0, u32::saturating_add)
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

        fn is_under_way(&self, _instance: &str) -> bool {
            false
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
    fn work_stays_where_a_slot_is_free_and_the_handler_is_there_and_the_rest_is_counted() {
        let left = |items: &[CommitItem], local: &[&dyn LocalSlots]| left_over(items, local);
        assert_eq!(left(&[start("mine")], &[&Slots(1)]), 0);
        assert_eq!(left(&[start("mine")], &[]), 1, "a client without a runtime");
        assert_eq!(left(&[start("mine")], &[&Slots(0)]), 1, "no free slot");
        assert_eq!(left(&[start("other")], &[&Slots(9)]), 1, "no handler");
        assert_eq!(
            left(&[start("mine"), start("other"), start("mine")], &[&Slots(1)]),
            2,
            "more than the slots take"
        );
        assert_eq!(left(&[start("mine")], &[&Slots(0), &Slots(1)]), 0, "the second runtime takes it");
    }
}
