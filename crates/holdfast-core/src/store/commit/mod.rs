//! The commit batch: turns, activity results, messages and starts of many instances in one transaction.
//!
//! One pipelined flight: it locks every turn row that the batch settles or addresses, in key order, makes sure that every item
//! stands, writes, and commits; the settling of turns comes last, so that no message of the same batch is missed. When an item
//! does not stand, that flight has written nothing, and two take its place: the first, a transaction of its own, says which
//! items stand, a fenced-out item drops out there, and the second makes sure again and writes what stands. No transaction is
//! open while an answer is on its way, however long that takes. See ARCHITECTURE.md for the order of the statements. It never
//! splits a batch.

mod activities;
mod asked;
mod flight;
mod head;
mod history;
mod inbox;
mod instances;
mod item;
mod lock;
mod outcome;
mod settle;
mod standalone;
mod values;

use std::collections::{HashMap, HashSet};

use tokio_postgres::types::ToSql;

pub use item::{
    ActivityCommit, ActivityEnd, ActivityOutcome, BelatedActivity, CommitItem, CommitOutcome, Enqueue,
    HandedTask, NewActivity, NewStandalone, NewTimer, Park, Send, SettledTurn, Start, StartLease, TurnCommit,
    TurnEnd, ValueChanges, ValueRead,
};
#[cfg(any(test, feature = "sim"))]
pub(crate) use {activities::RIDE_PATIENCE_MS, instances::taken_error};

use self::{
    activities::Activities,
    flight::{Columns, Flight, Params, Step},
    head::{Head, Standing},
    history::History,
    inbox::Inbox,
    instances::Instances,
    settle::Settle,
    standalone::Standalone,
    values::Values,
};
use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    pool::Session,
    store::{Statements, queue::single, row::column},
};

/// Runs one batch; the outcome at index i belongs to item i. An error means that nothing is known to be written.
/// Dropped half way the outcome is unknown: run the items `again`, which looks first for what an earlier run settled.
/// Turns and activity results are then told truthfully, a start that was made says `Exists { same: true }`, a message is
/// sent a second time.
pub async fn commit(
    session: &Session,
    statements: &Statements,
    batch: &[CommitItem],
    again: bool,
) -> Result<Vec<CommitOutcome>> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let head = Head::of(batch, again);
    if let Some(standing) = head.expects(batch) {
        match write(session, statements, batch, &head, standing).await {
            Err(error) if not_as_expected(&error) => {}
            outcomes => return outcomes,
        }
    }
    let mut yielded = Vec::new();
    for _ in 0..limits::COMMIT_FINDINGS {
        let mut flight = Flight::default();
        head.add_to(&mut flight, statements);
        let answers = flight.run(session, &statements.settings).await?;
        let mut standing = head.read(batch, &answers)?;
        standing.keep_yielded(&yielded);
        yielded = standing.yielded();
        let rest = Head::of_standing(batch, &standing);
        match write(session, statements, batch, &rest, standing).await {
            Err(error) if not_as_expected(&error) => {}
            outcomes => return outcomes,
        }
    }
    Err(Error::new(ErrorKind::Conflict, "commit: leases ended while it was found out which stand"))
}

/// Writes what stands, in one flight that fails unless it does.
async fn write<'a>(
    session: &Session,
    statements: &Statements,
    batch: &'a [CommitItem],
    head: &Head<'a>,
    standing: Standing<'a>,
) -> Result<Vec<CommitOutcome>> {
    let expected = head.expected();
    let plan = Plan::of(batch, &standing);
    let mut flight = Flight::default();
    head.add_expecting_to(&mut flight, &expected, statements);
    plan.add_to(&mut flight, statements);
    let answers = flight.run(session, &statements.settings).await?;
    outcome::read(batch, &plan, standing, &answers)
}

/// Whether a flight failed because an item of it does not stand. The server says so in the words of the statement.
fn not_as_expected(error: &Error) -> bool {
    error.kind() == ErrorKind::Query && error.full_text().contains("holdfast: not as expected")
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

/// The columns of every statement that writes what stands.
#[derive(Debug, Default)]
struct Plan<'a> {
    history: History<'a>,
    inbox: Inbox<'a>,
    activities: Activities<'a>,
    instances: Instances<'a>,
    values: Values<'a>,
    settle: Settle<'a>,
    standalone: Standalone<'a>,
    awaited: Vec<&'a str>,
    /// Node, epoch and length of the leases that starts get.
    leased_to: (Option<&'a str>, Option<i64>, Option<i64>),
}

/// Nobody: starts without a lease.
const NOBODY: (Option<&str>, Option<i64>, Option<i64>) = (None, None, None);

impl<'a> Plan<'a> {
    fn of(batch: &'a [CommitItem], standing: &Standing<'a>) -> Self {
        let mut plan = Self::default();
        let mut ids: HashMap<&str, usize> = HashMap::new();
        for item in batch {
            if let CommitItem::Start(start) = item {
                *ids.entry(start.instance.as_str()).or_default() += 1;
            }
        }
        let standing_items =
            || batch.iter().enumerate().filter(|(index, _)| standing.decided[*index].is_none());
        for (index, item) in standing_items() {
            match item {
                CommitItem::Turn(turn) => plan.turn(index, turn),
                CommitItem::Activity(activity) => {
                    let tells = !standing.used_up.contains(&index);
                    plan.activities.settle(index, activity, tells, &mut plan.standalone);
                }
                CommitItem::Send(send) => plan.inbox.client_message(send),
                CommitItem::Start(start) => {
                    let once = ids.get(start.instance.as_str()) == Some(&1);
                    plan.instances.client_start(index, start, once);
                }
                CommitItem::Enqueue(enqueue) => plan.standalone.queue(enqueue),
            }
        }
        for (_, item) in standing_items() {
            if let CommitItem::Turn(turn) = item {
                plan.instances.started_by(turn);
            }
        }
        for (instance, execution, source) in &standing.used_messages {
            plan.inbox.used(instance, *execution, *source);
        }
        plan.standalone.seal();
        plan.leased_to = plan.instances.leased_to();
        plan
    }

    fn turn(&mut self, index: usize, turn: &'a TurnCommit) {
        self.history.turn(turn);
        self.inbox.turn(turn);
        self.activities.turn(turn);
        self.instances.turn(turn);
        self.values.turn(turn);
        self.settle.turn(index, turn);
        let ends = !matches!(turn.end, None | Some(TurnEnd::ContinuedAsNew { .. }));
        if turn.awaited && ends {
            self.awaited.push(&turn.instance);
        }
    }

    /// Adds the statements that have rows, in the one order that all commits keep.
    fn add_to<'p>(&'p self, flight: &mut Flight<'p>, statements: &'p Statements) {
        let Self { history, inbox, activities, instances, values, settle, standalone, awaited, leased_to } =
            self;
        let (owner, epoch, ms) = leased_to;
        let leased_to: [&(dyn ToSql + Sync); 3] = [owner, epoch, ms];
        let (owner, epoch, ms) = &NOBODY;
        let nobody: [&(dyn ToSql + Sync); 3] = [owner, epoch, ms];
        let other = Step::Other;
        flight.rows(other, &statements.commit_insert_history, &history.events, &[]);
        flight.rows(other, &statements.commit_delete_messages, &inbox.consumed, &[]);
        flight.add(other, &statements.commit_delete_timers, inbox.cancelled.params());
        flight.add(other, &statements.commit_delete_activities, activities.cancelled.params());
        flight.rows(Step::ToldResults, &statements.commit_tell_results, &activities.ended, &[]);
        flight.add(Step::EndedStandalone, &statements.standalone_end, standalone.ended.params());
        flight.add(Step::RetriedActivities, &statements.commit_retry_activities, activities.retried.params());
        flight.add(Step::Enqueued, &statements.standalone_insert, standalone.queued.params());
        flight.add(Step::Undone, &statements.standalone_undo_ended, standalone.named.params());
        flight.rows(Step::Scheduled, &statements.commit_insert_activities, &activities.scheduled, &[]);
        flight.rows(Step::Belated, &statements.commit_insert_belated, &activities.belated, &[]);
        flight.rows(other, &statements.commit_insert_timers, &inbox.timers, &[]);
        flight.add(other, &statements.commit_delete_values, values.dropped.params());
        flight.add(other, &statements.commit_set_values, values.kept.params());
        flight.add(other, &statements.commit_answer_reads, values.reads.params());
        let start = &statements.commit_insert_instances;
        flight.rows(Step::Begun, start, &instances.begun, &leased_to);
        flight.rows(Step::Created, start, &instances.starts, &nobody);
        flight.rows(Step::Compared, &statements.commit_compare_starts, &instances.compared, &[]);
        flight.add(other, &statements.commit_refuse_children, instances.children.params());
        flight.add(Step::Told, &statements.commit_insert_messages, inbox.messages.params());
        flight.rows(other, &statements.commit_update_instances, &instances.changes, &[]);
        flight.add(other, &statements.commit_continue_instances, instances.continued.params());
        flight.rows(Step::SettledTurns, &statements.commit_settle_turns, &settle.settled, &[]);
        flight.add(Step::Retaken, &statements.commit_retake_turns, settle.retaken.params());
        flight.rows(Step::EndedTurns, &statements.commit_end_turns, &settle.ended, &[]);
        let awaited: Option<Params<'p>> = (!awaited.is_empty()).then(|| vec![awaited as _]);
        flight.add(Step::Awaited, &statements.instance_get, awaited);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_replay::{EventId, MessageBody, Payload, event::StoredEvent};

    use super::*;
    use crate::store::{ActivityKey, Fence, NodeKey};

    fn turn() -> TurnCommit {
        TurnCommit {
            instance: "i".to_owned(),
            fence: Fence(7),
            node: NodeKey { id: "n".to_owned(), epoch: 1 },
            execution: 1,
            history_len: 3,
            version: "1".to_owned(),
            name: "p".to_owned(),
            consumed: Vec::new(),
            results: Vec::new(),
            events: vec![StoredEvent {
                id: EventId(3),
                kind: "ActivityCompleted".to_owned(),
                source: Some(EventId(2)),
                at_ms: 1,
                data: "{}".to_owned(),
            }],
            activities: Vec::new(),
            keeps: false,
            retake_ms: None,
            belated: Vec::new(),
            timers: Vec::new(),
            cancelled_activities: Vec::new(),
            cancelled_timers: Vec::new(),
            sends: Vec::new(),
            starts: Vec::new(),
            custom_status: None,
            values: ValueChanges::default(),
            reads: Vec::new(),
            end: None,
            park: None,
            unparks: false,
            poisoned: false,
            awaited: false,
        }
    }

    fn rowless() -> CommitItem {
        let TurnCommit { instance, fence, node, execution, .. } = turn();
        let result = Payload::from_text("1".to_owned()).expect("JSON");
        let body = MessageBody::ActivityCompleted { execution, source: EventId(2), result };
        CommitItem::Activity(ActivityCommit {
            key: ActivityKey { instance, execution, event: 2 },
            fence,
            node,
            rowless: true,
            outcome: ActivityOutcome::Ended(body),
            rides: true,
            heartbeat: None,
        })
    }

    /// The statements of a batch of which everything stands; `None` when that is to be found out first.
    fn statements_of(batch: &[CommitItem]) -> Option<Vec<&'static str>> {
        let statements = Statements::new("s");
        let head = Head::of(batch, false);
        let standing = head.expects(batch)?;
        let (expected, plan) = (head.expected(), Plan::of(batch, &standing));
        let mut flight = Flight::default();
        head.add_expecting_to(&mut flight, &expected, &statements);
        plan.add_to(&mut flight, &statements);
        Some(flight.names())
    }

    fn item(turn: TurnCommit) -> CommitItem {
        CommitItem::Turn(Box::new(turn))
    }

    #[test]
    fn a_turn_that_keeps_its_lease_and_the_result_it_uses_cost_its_events() {
        let events = ["commit/lock_expected_one", "commit/insert_history_one"];
        let kept = TurnCommit { keeps: true, ..turn() };
        assert_eq!(statements_of(&[item(kept.clone())]).expect("one flight"), events);
        let uses = TurnCommit { results: vec![2], ..kept };
        assert_eq!(statements_of(&[rowless(), item(uses.clone())]).expect("one flight"), events);
        assert_eq!(
            statements_of(&[item(turn())]).expect("one flight"),
            [&events[..], &["commit/settle_turns_one"]].concat()
        );
        assert_eq!(
            statements_of(&[rowless()]).expect("one flight"),
            ["commit/lock_expected_one", "commit/tell_results_one"]
        );
        let other = TurnCommit { fence: Fence(8), ..uses };
        assert_eq!(statements_of(&[rowless(), item(other)]), None, "not both can stand");
    }
}
