//! The commit batch: turns, activity results, messages and starts of many instances in one transaction.
//!
//! The whole batch is one pipelined flight. It locks every turn row that it settles or addresses, in key order, first;
//! every later part joins the rows that pass the fence check, so a fenced-out item drops out and the rest commits.
//! The settling of turns comes last, so that no message of the same batch is missed. See ARCHITECTURE.md for the order
//! of the statements. It never splits a batch and never tries again.

mod activities;
mod flight;
mod history;
mod inbox;
mod instances;
mod item;
mod lock;
mod outcome;
mod settle;
mod standalone;
mod values;

use std::collections::HashSet;

pub use item::{
    ActivityCommit, ActivityEnd, ActivityOutcome, CommitItem, CommitOutcome, Enqueue, NewActivity,
    NewStandalone, NewTimer, Park, Send, Start, TurnCommit, TurnEnd, ValueChanges, ValueRead,
};

use self::{
    activities::Activities,
    flight::{Flight, Step},
    history::History,
    inbox::Inbox,
    instances::Instances,
    lock::Locks,
    settle::Settle,
    standalone::Standalone,
    values::Values,
};
use crate::{
    error::Result,
    pool::Session,
    store::{Statements, queue::single, row::column},
};

/// Runs one batch; the outcome at index i belongs to item i. An error means that nothing is known to be written.
/// Dropped half way the outcome is unknown: run the items again. Turns and activity results are then told truthfully,
/// a start that was made says `Exists { same: true }`, a message is sent a second time.
pub async fn commit(
    session: &Session,
    statements: &Statements,
    batch: &[CommitItem],
) -> Result<Vec<CommitOutcome>> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let plan = Plan::of(batch);
    let answers = plan.flight(statements).run(session, &statements.settings).await?;
    outcome::read(batch, &plan, &answers)
}

/// Which of these instances have a turn row that somebody else has locked at this moment.
pub async fn locked(
    session: &Session,
    statements: &Statements,
    instances: &[&str],
) -> Result<HashSet<String>> {
    let rows = single(session, statements, &statements.commit_list_locked, &[&instances]).await?;
    rows.iter().map(|row| column(row, "instance")).collect()
}

/// The columns of every statement.
#[derive(Debug, Default)]
struct Plan<'a> {
    locks: Locks<'a>,
    history: History<'a>,
    inbox: Inbox<'a>,
    activities: Activities<'a>,
    instances: Instances<'a>,
    values: Values<'a>,
    settle: Settle<'a>,
    standalone: Standalone<'a>,
}

impl<'a> Plan<'a> {
    fn of(batch: &'a [CommitItem]) -> Self {
        let mut plan = Self::default();
        for (index, item) in batch.iter().enumerate() {
            match item {
                CommitItem::Turn(turn) => plan.turn(index, turn),
                CommitItem::Activity(activity) => {
                    plan.activities.settle(index, activity, &mut plan.locks, &mut plan.standalone);
                }
                CommitItem::Send(send) => plan.inbox.client_message(send, &mut plan.locks),
                CommitItem::Start(start) => plan.instances.client_start(index, start, &mut plan.locks),
                CommitItem::Enqueue(enqueue) => plan.standalone.queue(enqueue),
            }
        }
        plan.instances.child_starts(batch, &plan.locks);
        plan.locks.seal();
        plan.standalone.seal();
        plan
    }

    fn turn(&mut self, index: usize, turn: &'a TurnCommit) {
        let number = self.locks.turn(index, turn);
        self.history.turn(number, turn);
        self.inbox.turn(number, turn);
        self.activities.turn(number, turn);
        self.instances.turn(number, turn);
        self.values.turn(number, turn);
        self.settle.turn(index, turn);
    }

    /// The statements that have rows, in the one order that all commits keep.
    fn flight<'p>(&'p self, statements: &'p Statements) -> Flight<'p> {
        let mut flight = Flight::default();
        let turns = &self.locks.turns;
        let inbox = &self.inbox;
        let activities = &self.activities;
        let instances = &self.instances;
        flight.guarded(Step::Other, &statements.commit_insert_turn_rows, turns, self.locks.missing.params());
        flight.add(Step::Other, &statements.commit_lock_turn_rows, self.locks.params());
        let completing = self.settle.completing.params();
        flight.add(Step::YieldedTurns, &statements.commit_yield_to_cancels, completing);
        flight.add(Step::FoundTurns, &statements.commit_find_settled_turns, turns.key_params());
        flight.guarded(Step::Other, &statements.commit_insert_history, turns, self.history.events.params());
        flight.guarded(Step::Other, &statements.commit_delete_messages, turns, inbox.consumed.params());
        flight.guarded(Step::Other, &statements.commit_delete_timers, turns, inbox.cancelled.params());
        flight.guarded(
            Step::Other,
            &statements.commit_delete_activities,
            turns,
            activities.cancelled.params(),
        );
        flight.add(
            Step::FoundActivities,
            &statements.commit_find_settled_activities,
            activities.settled.params(),
        );
        flight.add(Step::EndedActivities, &statements.commit_end_activities, activities.ended.params());
        let standalone = &self.standalone;
        flight.add(Step::EndedStandalone, &statements.standalone_end, standalone.ended.params());
        flight.add(Step::RetriedActivities, &statements.commit_retry_activities, activities.retried.params());
        flight.add(Step::Enqueued, &statements.standalone_insert, standalone.queued.params());
        flight.add(Step::Undone, &statements.standalone_undo_ended, standalone.named.params());
        flight.guarded(
            Step::Other,
            &statements.commit_insert_activities,
            turns,
            activities.scheduled.params(),
        );
        flight.guarded(Step::Other, &statements.commit_insert_timers, turns, inbox.timers.params());
        let values = &self.values;
        flight.guarded(Step::Other, &statements.commit_delete_values, turns, values.dropped.params());
        flight.guarded(Step::Other, &statements.commit_set_values, turns, values.kept.params());
        flight.guarded(Step::Other, &statements.commit_answer_reads, turns, values.reads.params());
        flight.guarded(Step::Created, &statements.commit_insert_instances, turns, instances.starts.params());
        flight.add(Step::Compared, &statements.commit_compare_starts, instances.compared.params());
        flight.guarded(Step::Other, &statements.commit_refuse_children, turns, instances.children.params());
        flight.guarded(Step::Told, &statements.commit_insert_messages, turns, inbox.messages.params());
        flight.guarded(Step::Other, &statements.commit_update_instances, turns, instances.changes.params());
        flight.guarded(
            Step::Other,
            &statements.commit_continue_instances,
            turns,
            instances.continued.params(),
        );
        flight.add(Step::SettledTurns, &statements.commit_settle_turns, self.settle.settled.params());
        flight.add(Step::EndedTurns, &statements.commit_end_turns, self.settle.ended.params());
        flight
    }
}
