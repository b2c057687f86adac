//! The head of a commit: it locks the turn rows and ends activity tasks, and so makes sure that the items stand.
//!
//! What it makes sure of stays so until the commit: the rows are locked. Nearly always every item stands, so the head goes in
//! one flight with the rest; when one does not, nothing was written, and a head goes alone, in a transaction of its own, to
//! find out. What it finds out of an item that does not stand is final; of the others the next flight makes sure again.

use std::collections::{HashMap, HashSet};

use super::{
    asked::{
        Begun, BegunRow, Completing, CompletingRow, EndedTaskRow, EndedTasks, Handed, HandedRow, Retaken,
        RetakenRow, SettledTaskRow, SettledTasks, Used, UsedRow, leases, taken,
    },
    flight::{Answers, Columns, Flight, Step},
    item::{
        ActivityCommit, ActivityOutcome, CommitItem, CommitOutcome, Start, StartLease, TurnCommit, TurnEnd,
    },
    lock::{Expected, Locks},
    outcome::item_of,
};
use crate::{
    error::Result,
    store::{ActivityKey, Statements, row::column},
};

/// The columns of the first flight, and which item each row belongs to.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    locks: Locks<'a>,
    /// Items were run before and their outcome is unknown.
    again: bool,
    completing: Completing<'a>,
    completing_items: Vec<usize>,
    ended: EndedTasks<'a>,
    ended_items: Vec<usize>,
    /// Those that ended without a row.
    rowless_items: Vec<usize>,
    settled: SettledTasks<'a>,
    settled_items: Vec<usize>,
    handed: Handed<'a>,
    retaken: Retaken<'a>,
    begun: Begun<'a>,
    used: Used<'a>,
    used_items: Vec<usize>,
}

/// What stands of a batch.
#[derive(Debug, Default)]
pub(super) struct Standing<'a> {
    /// What became of items of which nothing more is to be written; `None` goes on.
    pub(super) decided: Vec<Option<CommitOutcome>>,
    /// Activities whose result a turn of the batch uses: nobody has to be told.
    pub(super) used_up: HashSet<usize>,
    /// Messages that turns use by their source.
    pub(super) used_messages: Vec<(&'a str, i64, i32)>,
}

impl<'a> Head<'a> {
    /// The head of a batch; `again` when an item of it was run before.
    pub(super) fn of(batch: &'a [CommitItem], again: bool) -> Self {
        Self::of_some(batch, again, |_| true)
    }

    /// The head of what stands of a batch.
    pub(super) fn of_standing(batch: &'a [CommitItem], standing: &Standing<'a>) -> Self {
        Self::of_some(batch, false, |index| standing.decided[index].is_none())
    }

    fn of_some(batch: &'a [CommitItem], again: bool, which: impl Fn(usize) -> bool) -> Self {
        let mut head = Self { again, ..Self::default() };
        let here: HashSet<&ActivityKey> = batch.iter().filter_map(ending).map(|ended| &ended.key).collect();
        for (index, item) in batch.iter().enumerate().filter(|(index, _)| which(*index)) {
            match item {
                CommitItem::Turn(turn) => head.turn(index, turn, &here),
                CommitItem::Activity(activity) => head.activity(index, activity),
                CommitItem::Send(send) => head.locks.made_by_client(&send.instance),
                CommitItem::Start(start) => head.start(start, batch),
                CommitItem::Enqueue(_) => {}
            }
        }
        head.locks.seal();
        head
    }

    /// Its row is made together with its instance, after every row that is there was locked.
    /// A lease that a turn of the batch settles, or under which one of its results came, is known.
    fn start(&mut self, start: &'a Start, batch: &[CommitItem]) {
        self.locks.existing(&start.instance);
        let instance = start.instance.as_str();
        let knows = |item: &CommitItem| match item {
            CommitItem::Turn(turn) => turn.instance == instance,
            _ => rowless(item).is_some_and(|activity| activity.key.instance == instance),
        };
        if let Some(StartLease { node, .. }) = start.lease.as_ref().filter(|_| self.again)
            && !batch.iter().any(knows)
        {
            self.begun.push(BegunRow { instance, owner: &node.id, owner_epoch: node.epoch });
        }
    }

    fn turn(&mut self, index: usize, turn: &'a TurnCommit, here: &HashSet<&ActivityKey>) {
        self.locks.turn(index, turn);
        let instance = turn.instance.as_str();
        if matches!(turn.end, Some(TurnEnd::Completed { .. })) {
            self.completing.push(CompletingRow { instance, fence: turn.fence.0 });
            self.completing_items.push(index);
        }
        for (task, deliveries) in taken(turn).filter(|_| self.again) {
            self.handed.push(HandedRow {
                instance,
                execution: turn.execution,
                event: task.event,
                owner: &turn.node.id,
                owner_epoch: turn.node.epoch,
                turn_fence: turn.fence.0,
                deliveries,
            });
        }
        if self.again && turn.retake_ms.is_some() {
            self.retaken.push(RetakenRow {
                instance,
                fence: turn.fence.0,
                owner: &turn.node.id,
                owner_epoch: turn.node.epoch,
            });
        }
        for source in &turn.results {
            if self.again || !here.contains(&key_of(turn, *source)) {
                self.used.push(UsedRow { instance, execution: turn.execution, source: *source });
                self.used_items.push(index);
            }
        }
    }

    fn activity(&mut self, index: usize, activity: &'a ActivityCommit) {
        let ActivityKey { instance, execution, event } = &activity.key;
        let rowless = is_rowless(activity);
        if rowless {
            self.locks.rowless(activity);
            self.rowless_items.push(index);
        } else if *execution > 0 {
            self.locks.existing(instance);
        }
        if self.again {
            let fence = (!rowless).then_some(activity.fence.0);
            self.settled.push(SettledTaskRow { instance, execution: *execution, event: *event, fence });
            self.settled_items.push(index);
        }
        if let ActivityOutcome::Ended(_) = &activity.outcome
            && !rowless
        {
            self.ended.push(EndedTaskRow {
                instance,
                execution: *execution,
                event: *event,
                fence: activity.fence.0,
                owner: &activity.node.id,
                owner_epoch: activity.node.epoch,
            });
            self.ended_items.push(index);
        }
    }

    /// What stands when everything is as it should be, for one flight; `None` when something has to be found out first.
    pub(super) fn expects(&self, batch: &'a [CommitItem]) -> Option<Standing<'a>> {
        (!self.again && self.used_items.is_empty() && !self.locks.contested).then(|| {
            let mut standing = Standing { decided: vec![None; batch.len()], ..Standing::default() };
            let ended = self.ended_items.iter().chain(&self.rowless_items);
            let ended = ended.filter_map(|index| ending(&batch[*index]).map(|task| (&task.key, *index)));
            standing.use_results(batch, &ended.collect());
            standing
        })
    }

    /// Adds its statements that have rows, for one flight that fails unless everything stands.
    pub(super) fn add_expecting_to<'p>(
        &'p self,
        flight: &mut Flight<'p>,
        expected: &'p Expected<'a>,
        statements: &'p Statements,
    ) {
        let missing = self.locks.missing.params();
        flight.guarded(Step::Other, &statements.commit_insert_turn_rows, &self.locks.turns, missing);
        flight.rows(Step::Other, &statements.commit_lock_expected, expected, &[]);
        flight.rows(Step::Other, &statements.commit_expect_no_cancels, &self.completing, &[]);
        flight.rows(Step::Other, &statements.commit_end_expected, &self.ended, &[]);
    }

    /// The rows to lock with the leases they should have.
    pub(super) fn expected(&self) -> Expected<'a> {
        self.locks.expected()
    }

    /// Adds its statements that have rows, for a flight that finds out what stands. What these write is true by itself.
    pub(super) fn add_to<'p>(&'p self, flight: &mut Flight<'p>, statements: &'p Statements) {
        let turns = &self.locks.turns;
        flight.add(Step::Locked, &statements.commit_lock_turn_rows, self.locks.params());
        let completing = self.completing.params();
        flight.add(Step::YieldedTurns, &statements.commit_yield_to_cancels, completing);
        if self.again {
            flight.add(Step::FoundTurns, &statements.commit_find_settled_turns, turns.found_params());
            let settled = self.settled.params();
            flight.add(Step::FoundActivities, &statements.commit_find_settled_activities, settled);
            flight.add(Step::Other, &statements.commit_release_handed, self.handed.params());
            flight.add(Step::Other, &statements.commit_release_retaken, self.retaken.params());
            flight.add(Step::Other, &statements.commit_release_begun, self.begun.params());
        }
        flight.add(Step::FoundResults, &statements.commit_find_results, self.used.params());
        flight.add(Step::HeldActivities, &statements.commit_find_held_activities, self.ended.params());
    }

    /// What its answers say of each item.
    pub(super) fn read(&self, batch: &'a [CommitItem], answers: &Answers) -> Result<Standing<'a>> {
        let items = |step: Step, items: &[usize]| -> Result<HashSet<usize>> {
            answers.rows(step).iter().map(|row| item_of(items, row)).collect()
        };
        let found_turns = self.found_turns(answers)?;
        let found_tasks = items(Step::FoundActivities, &self.settled_items)?;
        let yielded = items(Step::YieldedTurns, &self.completing_items)?;
        let leases = leases(answers)?;
        let mut ended = items(Step::HeldActivities, &self.ended_items)?;
        let of_yielded = |activity: &ActivityCommit| {
            let is_its =
                |index: &usize| batch[*index].instances().first() == Some(&activity.key.instance.as_str());
            yielded.iter().any(is_its)
        };
        ended.extend(self.rowless_items.iter().filter(|index| {
            // The lease of a turn that gave way has ended, and what ran under it has with it.
            let stands = |activity: &ActivityCommit| {
                let lease = leases.get(activity.key.instance.as_str());
                !of_yielded(activity)
                    && lease.is_some_and(|lease| lease.admits(activity.fence, &activity.node))
            };
            !found_tasks.contains(index) && rowless(&batch[**index]).is_some_and(stands)
        }));
        let ended_keys: HashMap<&ActivityKey, usize> =
            ended.iter().filter_map(|index| ending(&batch[*index]).map(|task| (&task.key, *index))).collect();
        let stored = self.stored(answers)?;
        let mut standing = Standing { decided: vec![None; batch.len()], ..Standing::default() };
        for (index, item) in batch.iter().enumerate() {
            let done = CommitOutcome::Done { more_work: false };
            standing.decided[index] = match item {
                CommitItem::Turn(_) if yielded.contains(&index) => Some(CommitOutcome::Yielded),
                CommitItem::Turn(_) if found_turns.get(&index) == Some(&true) => Some(CommitOutcome::Kept),
                CommitItem::Turn(turn) if found_turns.contains_key(&index) => {
                    // What it took was given back.
                    let more_work = turn.retake_ms.is_some() || taken(turn).next().is_some();
                    Some(CommitOutcome::Done { more_work })
                }
                CommitItem::Turn(turn) => {
                    let stands = leases
                        .get(turn.instance.as_str())
                        .is_some_and(|lease| lease.admits(turn.fence, &turn.node));
                    let results = turn.results.iter().map(|source| key_of(turn, *source));
                    let mut results = results.map(|key| (ended_keys.get(&key).copied(), key));
                    let known = |(ended, key): (Option<usize>, ActivityKey)| {
                        ended.is_some()
                            || stored.contains(&(turn.instance.as_str(), key.execution, key.event))
                    };
                    (!(stands && results.all(known))).then_some(CommitOutcome::Fenced)
                }
                CommitItem::Activity(_) if found_tasks.contains(&index) => Some(done),
                CommitItem::Activity(_) if ending(item).is_some() && !ended.contains(&index) => {
                    Some(CommitOutcome::Fenced)
                }
                _ => None,
            };
        }
        standing.use_results(batch, &ended_keys);
        Ok(standing)
    }

    /// The turns that an earlier run wrote, and whether their lease goes on.
    fn found_turns(&self, answers: &Answers) -> Result<HashMap<usize, bool>> {
        let items = &self.locks.turns.items;
        answers
            .rows(Step::FoundTurns)
            .iter()
            .map(|row| Ok((item_of(items, row)?, column(row, "kept")?)))
            .collect()
    }

    /// The used results that lie in an inbox.
    fn stored(&self, answers: &Answers) -> Result<HashSet<(&'a str, i64, i32)>> {
        let mut stored = HashSet::new();
        for row in answers.rows(Step::FoundResults) {
            let ix: i64 = column(row, "ix")?;
            let Some(at) = usize::try_from(ix - 1).ok().filter(|at| *at < self.used_items.len()) else {
                continue;
            };
            stored.insert((self.used.instance[at], self.used.execution[at], self.used.source[at]));
        }
        Ok(stored)
    }
}

impl<'a> Standing<'a> {
    /// Turns that gave way when it was found out before.
    pub(super) fn keep_yielded(&mut self, before: &[usize]) {
        for index in before {
            self.decided[*index] = Some(CommitOutcome::Yielded);
        }
    }

    /// Turns that gave way.
    pub(super) fn yielded(&self) -> Vec<usize> {
        let yielded = |index: &usize| self.decided[*index] == Some(CommitOutcome::Yielded);
        (0..self.decided.len()).filter(yielded).collect()
    }

    /// What the turns that stand do with the results of these tasks.
    fn use_results(&mut self, batch: &'a [CommitItem], ended: &HashMap<&ActivityKey, usize>) {
        for (index, item) in batch.iter().enumerate() {
            let CommitItem::Turn(turn) = item else { continue };
            if self.decided[index].is_some() {
                continue;
            }
            for source in &turn.results {
                match ended.get(&key_of(turn, *source)) {
                    Some(index) => _ = self.used_up.insert(*index),
                    None => self.used_messages.push((&turn.instance, turn.execution, *source)),
                }
            }
            // What the turn does not want any more has no result.
            for event in &turn.cancelled_activities {
                if let Some(index) = ended.get(&key_of(turn, *event)) {
                    self.decided[*index] = Some(CommitOutcome::Fenced);
                }
            }
        }
    }
}

fn key_of(turn: &TurnCommit, event: i32) -> ActivityKey {
    ActivityKey { instance: turn.instance.clone(), execution: turn.execution, event }
}

/// An activity that ends for its instance.
fn ending(item: &CommitItem) -> Option<&ActivityCommit> {
    match item {
        CommitItem::Activity(activity) if matches!(activity.outcome, ActivityOutcome::Ended(_)) => {
            Some(activity)
        }
        _ => None,
    }
}

/// It ended for its instance, under the lease of its instance's turn.
fn is_rowless(activity: &ActivityCommit) -> bool {
    activity.rowless && matches!(activity.outcome, ActivityOutcome::Ended(_))
}

fn rowless(item: &CommitItem) -> Option<&ActivityCommit> {
    ending(item).filter(|activity| is_rowless(activity))
}
