//! What became of each item, read from the answers of the flight.
//!
//! What the first flight decided stands. Of the rest, a turn or task that the settling statement returned is done; else it
//! is fenced.

use std::collections::{HashMap, HashSet};

use super::{
    Plan,
    flight::{Answers, Step},
    head::Standing,
    item::{ActivityOutcome, CommitItem, CommitOutcome, HandedTask, SettledTurn},
};
use crate::{
    error::{Error, ErrorKind, Result},
    pool::Row,
    store::{
        Fence,
        instance::{InstanceRow, instance_row},
        row::column,
    },
};

/// The outcome of each item.
pub(super) fn read(
    batch: &[CommitItem],
    plan: &Plan<'_>,
    standing: Standing<'_>,
    answers: &Answers,
) -> Result<Vec<CommitOutcome>> {
    let fenced = |decided: Option<CommitOutcome>| decided.unwrap_or(CommitOutcome::Fenced);
    let mut outcomes: Vec<CommitOutcome> = standing.decided.into_iter().map(fenced).collect();
    let activities = &plan.activities;
    for index in activities.quiet_items.iter().chain(&activities.ended_items) {
        outcomes[*index] = CommitOutcome::Done { more_work: false };
    }
    for index in &plan.settle.kept_items {
        outcomes[*index] = CommitOutcome::Kept;
    }
    let mut set = |items: &[usize], row: &Row, outcome: CommitOutcome| -> Result<()> {
        outcomes[item_of(items, row)?] = outcome;
        Ok(())
    };
    let mut handed = handed(answers)?;
    for row in answers.rows(Step::SettledTurns) {
        let instance = match &batch[item_of(&plan.settle.settled_items, row)?] {
            CommitItem::Turn(turn) => turn.instance.as_str(),
            _ => "",
        };
        let settled = SettledTurn {
            more_work: column(row, "more_work")?,
            next: Fence(column(row, "next_fence")?),
            retaken: false,
            now_ms: column(row, "now_ms")?,
            handed: handed.remove(instance).unwrap_or_default(),
        };
        set(&plan.settle.settled_items, row, CommitOutcome::Settled(settled))?;
    }
    let rows = answers.rows(Step::Awaited).iter().map(instance_row);
    let rows = rows.map(|row| row.map(|row| (row.instance.clone(), row)));
    let mut awaited: HashMap<String, InstanceRow> = rows.collect::<Result<_>>()?;
    for row in answers.rows(Step::EndedTurns) {
        let end = match &batch[item_of(&plan.settle.ended_items, row)?] {
            CommitItem::Turn(turn) => awaited.remove(&turn.instance),
            _ => None,
        };
        let done = CommitOutcome::Done { more_work: false };
        set(&plan.settle.ended_items, row, end.map_or(done, |end| CommitOutcome::Ended(Box::new(end))))?;
    }
    for row in answers.rows(Step::ToldResults) {
        let rides = match &batch[item_of(&activities.ended_items, row)?] {
            CommitItem::Activity(activity) => activity.rides,
            _ => false,
        };
        set(&activities.ended_items, row, CommitOutcome::Done { more_work: !rides })?;
    }
    for row in answers.rows(Step::RetriedActivities) {
        let more_work = retries_at_once(&batch[item_of(&activities.retried_items, row)?]);
        set(&activities.retried_items, row, CommitOutcome::Done { more_work })?;
    }
    for row in answers.rows(Step::EndedStandalone) {
        set(&plan.standalone.ended_items, row, CommitOutcome::Done { more_work: false })?;
    }
    for row in answers.rows(Step::Retaken) {
        if let CommitOutcome::Settled(settled) = &mut outcomes[item_of(&plan.settle.retaken_items, row)?] {
            (settled.next, settled.retaken) = (Fence(column(row, "next_fence")?), true);
        }
    }
    enqueued(batch, answers, &mut outcomes)?;
    starts(batch, plan, answers, &mut outcomes)?;
    sends(batch, plan, answers, &mut outcomes)?;
    Ok(outcomes)
}

/// The tasks that are leased to the node that queued them or runs them already, by instance.
fn handed(answers: &Answers) -> Result<HashMap<&str, Vec<HandedTask>>> {
    let mut handed: HashMap<&str, Vec<HandedTask>> = HashMap::new();
    for row in answers.rows(Step::Scheduled).iter().chain(answers.rows(Step::Belated)) {
        if column(row, "handed")? {
            handed.entry(column(row, "instance")?).or_default().push(HandedTask {
                event: column(row, "event")?,
                fence: Fence(column(row, "fence")?),
                scheduled_at_ms: column(row, "scheduled_at_ms")?,
            });
        }
    }
    Ok(handed)
}

fn retries_at_once(item: &CommitItem) -> bool {
    match item {
        CommitItem::Activity(activity) => {
            matches!(activity.outcome, ActivityOutcome::Retry { delay_ms, .. } if delay_ms <= 0)
        }
        _ => false,
    }
}

/// The first task of an id in the batch made it, when it was made and not taken back.
fn enqueued(batch: &[CommitItem], answers: &Answers, outcomes: &mut [CommitOutcome]) -> Result<()> {
    let mut made: HashSet<&str> = HashSet::new();
    for row in answers.rows(Step::Enqueued) {
        made.insert(column(row, "instance")?);
    }
    for row in answers.rows(Step::Undone) {
        made.remove(column::<&str>(row, "instance")?);
    }
    for (item, outcome) in batch.iter().zip(outcomes) {
        if let CommitItem::Enqueue(enqueue) = item {
            let created = enqueue.tasks.iter().map(|task| made.remove(task.id.as_str())).collect();
            *outcome = CommitOutcome::Enqueued { created };
        }
    }
    Ok(())
}

/// The first start of an id in the batch made it, when it was made; every other one finds it there. What is neither made
/// nor there met a deletion in between.
fn starts(
    batch: &[CommitItem],
    plan: &Plan<'_>,
    answers: &Answers,
    outcomes: &mut [CommitOutcome],
) -> Result<()> {
    let mut created: HashMap<&str, CommitOutcome> = HashMap::new();
    for row in answers.rows(Step::Begun).iter().chain(answers.rows(Step::Created)) {
        let outcome = match column(row, "begun")? {
            true => {
                CommitOutcome::Begun { fence: Fence(column(row, "fence")?), now_ms: column(row, "now_ms")? }
            }
            false => CommitOutcome::Created,
        };
        created.insert(column(row, "instance")?, outcome);
    }
    let items = &plan.instances.compared_items;
    for index in items {
        if let CommitItem::Start(start) = &batch[*index] {
            let made = created.remove(start.instance.as_str());
            outcomes[*index] = made.unwrap_or(CommitOutcome::Unsettled);
        }
    }
    for row in answers.rows(Step::Compared) {
        let index = item_of(items, row)?;
        if !matches!(outcomes[index], CommitOutcome::Created | CommitOutcome::Begun { .. }) {
            outcomes[index] = CommitOutcome::Exists { same: column(row, "same")? };
        }
    }
    Ok(())
}

/// A message is delivered unless its instance had ended, or ended in this very batch.
fn sends(
    batch: &[CommitItem],
    plan: &Plan<'_>,
    answers: &Answers,
    outcomes: &mut [CommitOutcome],
) -> Result<()> {
    let mut told: HashSet<&str> = HashSet::new();
    let mut sent_before: HashSet<(&str, &str)> = HashSet::new();
    for row in answers.rows(Step::Told) {
        let instance: &str = column(row, "instance")?;
        match column(row, "dedup_key")? {
            Some(key) => drop(sent_before.insert((instance, key))),
            None => drop(told.insert(instance)),
        }
    }
    for row in answers.rows(Step::EndedTurns) {
        if let CommitItem::Turn(turn) = &batch[item_of(&plan.settle.ended_items, row)?] {
            told.remove(turn.instance.as_str());
            sent_before.retain(|(instance, _)| *instance != turn.instance);
        }
    }
    for (item, outcome) in batch.iter().zip(outcomes) {
        if let CommitItem::Send(send) = item {
            let instance = send.instance.as_str();
            let before = send.dedup_key.as_deref().is_some_and(|key| sent_before.contains(&(instance, key)));
            *outcome = if before || told.contains(instance) {
                CommitOutcome::Done { more_work: true }
            } else {
                CommitOutcome::AlreadyEnded
            };
        }
    }
    Ok(())
}

/// The batch index of the row's `ix`, which counts the rows of its statement from 1.
pub(super) fn item_of(items: &[usize], row: &Row) -> Result<usize> {
    let ix: i64 = column(row, "ix")?;
    usize::try_from(ix - 1)
        .ok()
        .and_then(|position| items.get(position))
        .copied()
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("commit: row {ix} belongs to no item")))
}
