//! Activity tasks that a batch takes back, settles and queues.

use super::{
    flight::columns,
    item::{ActivityCommit, ActivityOutcome, TurnCommit},
    lock::Locks,
    standalone::Standalone,
};
use crate::store::message::columns as message_columns;

columns! {
    /// Tasks taken back.
    CancelledTasks<'a> of CancelledTaskRow {
        turn: i32,
        instance: &'a str,
        execution: i64,
        event: i32,
    }
}

columns! {
    /// Every task that is settled, for telling a lost reply from a lost lease.
    SettledTasks<'a> of SettledTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        fence: i64,
    }
}

columns! {
    /// Tasks that ended.
    EndedTasks<'a> of EndedTaskRow {
        instance: &'a str,
        execution: i64,
        event: i32,
        fence: i64,
        owner: &'a str,
        owner_epoch: i64,
        kind: &'a str,
        data: Option<&'a str>,
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
        turn: i32,
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
    }
}

/// What the batch does to the activity queue.
#[derive(Debug, Default)]
pub(super) struct Activities<'a> {
    pub(super) cancelled: CancelledTasks<'a>,
    pub(super) settled: SettledTasks<'a>,
    pub(super) settled_items: Vec<usize>,
    pub(super) ended: EndedTasks<'a>,
    pub(super) ended_items: Vec<usize>,
    pub(super) retried: RetriedTasks<'a>,
    pub(super) retried_items: Vec<usize>,
    pub(super) scheduled: ScheduledTasks<'a>,
}

impl<'a> Activities<'a> {
    /// Adds what a turn does.
    pub(super) fn turn(&mut self, number: i32, turn: &'a TurnCommit) {
        let (instance, execution) = (turn.instance.as_str(), turn.execution);
        for event in &turn.cancelled_activities {
            self.cancelled.push(CancelledTaskRow { turn: number, instance, execution, event: *event });
        }
        for task in &turn.activities {
            self.scheduled.push(ScheduledTaskRow {
                turn: number,
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
            });
        }
    }

    /// Adds the settling of a claimed task. Its instance's turn row is locked first, as for everything else that
    /// touches the tasks of an instance; a standalone task has none.
    pub(super) fn settle(
        &mut self,
        index: usize,
        activity: &'a ActivityCommit,
        locks: &mut Locks<'a>,
        standalone: &mut Standalone<'a>,
    ) {
        let instance = activity.key.instance.as_str();
        let (execution, event) = (activity.key.execution, activity.key.event);
        let (owner, owner_epoch) = (activity.node.id.as_str(), activity.node.epoch);
        let fence = activity.fence.0;
        if execution > 0 {
            locks.existing(instance);
        }
        self.settled.push(SettledTaskRow { instance, execution, event, fence });
        self.settled_items.push(index);
        match &activity.outcome {
            ActivityOutcome::Ended(body) => {
                let message = message_columns(body);
                self.ended.push(EndedTaskRow {
                    instance,
                    execution,
                    event,
                    fence,
                    owner,
                    owner_epoch,
                    kind: message.kind,
                    data: message.data,
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
