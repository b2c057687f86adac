//! Activity tasks that a batch takes back, settles and queues.

use super::{
    flight::columns,
    item::{ActivityCommit, ActivityOutcome, BelatedActivity, NewActivity, TurnCommit},
    standalone::Standalone,
};
use crate::store::{message::columns as message_columns, queue::MAX_MS};

columns! {
    /// Tasks taken back.
    CancelledTasks<'a> of CancelledTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
    }
}

columns! {
    /// Results that instances are told.
    EndedTasks<'a> of EndedTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        kind: &'a str,
        data: Option<&'a str>,
        delay_ms: i64,
    }
}

columns! {
    /// Tasks to be tried again.
    RetriedTasks<'a> of RetriedTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        delay_ms: i64,
        attempt: i32,
        heartbeat: Option<&'a str>,
    }
}

columns! {
    /// Tasks queued.
    ScheduledTasks<'a> of ScheduledTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        name: &'a str,
        input: &'a str,
        retry: Option<&'a str>,
        timeout_ms: Option<i64>,
        tag: Option<&'a str>,
        session: Option<&'a str>,
        orchestration_name: &'a str,
        orchestration_version: &'a str,
        owner: Option<&'a str>,
        owner_epoch: Option<i64>,
        lease_ms: Option<i64>,
    }
}

columns! {
    /// Tasks queued that were scheduled without a row.
    BelatedTasks<'a> of BelatedTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        name: &'a str,
        input: &'a str,
        retry: Option<&'a str>,
        timeout_ms: Option<i64>,
        tag: Option<&'a str>,
        session: Option<&'a str>,
        orchestration_name: &'a str,
        orchestration_version: &'a str,
        owner: Option<&'a str>,
        owner_epoch: Option<i64>,
        lease_ms: Option<i64>,
        attempt: i32,
        deliveries: i32,
        delay_ms: i64,
        heartbeat: Option<&'a str>,
        isolated: bool,
    }
}

/// What the batch does to the activity queue.
#[derive(Debug, Default)]
pub(super) struct Activities<'a> {
    pub(super) cancelled: CancelledTasks<'a>,
    pub(super) ended: EndedTasks<'a>,
    pub(super) ended_items: Vec<usize>,
    /// Ended without a message.
    pub(super) quiet_items: Vec<usize>,
    pub(super) retried: RetriedTasks<'a>,
    pub(super) retried_items: Vec<usize>,
    pub(super) scheduled: ScheduledTasks<'a>,
    pub(super) belated: BelatedTasks<'a>,
}

/// A result that is in the hands of a turn of this process wakes its instance so much later: that turn is nearly always
/// settled before, and takes the wake back.
pub(crate) const RIDE_PATIENCE_MS: i64 = 500;

/// The lease that the node of the turn gets. One that keeps its own lease has no answer that could tell of others.
pub(super) fn lease_ms(turn: &TurnCommit, task: &NewActivity) -> Option<i64> {
    task.lease_ms.filter(|_| !turn.keeps).map(|ms| ms.clamp(0, MAX_MS))
}

impl<'a> Activities<'a> {
    /// Adds what a turn does.
    pub(super) fn turn(&mut self, turn: &'a TurnCommit) {
        let (instance, execution) = (turn.instance.as_str(), turn.execution);
        for event in &turn.cancelled_activities {
            self.cancelled.push(CancelledTaskRow { instance, execution, event: *event });
        }
        for task in &turn.activities {
            let lease_ms = lease_ms(turn, task);
            self.scheduled.push(ScheduledTaskRow {
                instance,
                execution,
                event: task.event,
                name: &task.name,
                input: &task.input,
                retry: task.retry.as_deref(),
                timeout_ms: task.timeout_ms,
                tag: task.tag.as_deref(),
                session: task.session.as_deref(),
                orchestration_name: &turn.name,
                orchestration_version: &turn.version,
                owner: lease_ms.map(|_| turn.node.id.as_str()),
                owner_epoch: lease_ms.map(|_| turn.node.epoch),
                lease_ms,
            });
        }
        for belated in &turn.belated {
            self.belated(turn, belated);
        }
    }

    fn belated(&mut self, turn: &'a TurnCommit, belated: &'a BelatedActivity) {
        let task = &belated.task;
        let lease_ms = lease_ms(turn, task);
        self.belated.push(BelatedTaskRow {
            instance: &turn.instance,
            execution: turn.execution,
            event: task.event,
            name: &task.name,
            input: &task.input,
            retry: task.retry.as_deref(),
            timeout_ms: task.timeout_ms,
            tag: task.tag.as_deref(),
            session: task.session.as_deref(),
            orchestration_name: &turn.name,
            orchestration_version: &turn.version,
            owner: lease_ms.map(|_| turn.node.id.as_str()),
            owner_epoch: lease_ms.map(|_| turn.node.epoch),
            lease_ms,
            attempt: belated.attempt,
            deliveries: belated.deliveries,
            delay_ms: belated.delay_ms.clamp(0, MAX_MS),
            heartbeat: belated.heartbeat.as_deref(),
            isolated: belated.isolated,
        });
    }

    /// Adds the settling of a claimed task. Its instance's turn row is locked first, as for everything else that
    /// touches the tasks of an instance; a standalone task has none.
    pub(super) fn settle(
        &mut self,
        index: usize,
        activity: &'a ActivityCommit,
        tells: bool,
        standalone: &mut Standalone<'a>,
    ) {
        let instance = activity.key.instance.as_str();
        let (execution, event) = (activity.key.execution, activity.key.event);
        let (owner, owner_epoch) = (activity.node.id.as_str(), activity.node.epoch);
        let fence = activity.fence.0;
        match &activity.outcome {
            ActivityOutcome::Ended(_) if !tells => self.quiet_items.push(index),
            ActivityOutcome::Ended(body) => {
                let message = message_columns(body);
                self.ended.push(EndedTaskRow {
                    instance,
                    execution,
                    event,
                    kind: message.kind,
                    data: message.data,
                    delay_ms: if activity.rides { RIDE_PATIENCE_MS } else { 0 },
                });
                self.ended_items.push(index);
            }
            ActivityOutcome::StandaloneEnded(end) => standalone.end(index, activity, end),
            ActivityOutcome::Retry { delay_ms, attempt } => {
                let delay_ms = (*delay_ms).max(0);
                self.retried.push(RetriedTaskRow {
                    instance,
                    execution,
                    event,
                    fence,
                    owner,
                    owner_epoch,
                    delay_ms,
                    attempt: *attempt,
                    heartbeat: activity.heartbeat.as_ref().map(|details| details.as_str()),
                });
                self.retried_items.push(index);
            }
        }
    }
}
