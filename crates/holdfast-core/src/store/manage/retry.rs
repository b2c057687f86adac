//! Running a poisoned instance again, in one transaction: its turn row, the recorded act, and what its end took back.

use holdfast_replay::{EventBody, EventId, Payload, Reopened};
use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    pool::{Session, Statement},
    store::{Fence, Statements, message::event_number, queue::single, replay_version, row::column},
};

/// A poisoned instance as it was read.
#[derive(Debug, Clone, Copy)]
pub struct Poisoned {
    /// Its execution.
    pub execution: i64,
    /// Events recorded, the end included.
    pub history_len: i32,
    /// A fresh fence, the mark of one retry.
    pub fence: Fence,
}

/// A poisoned instance; `None` when there is none under this id.
pub async fn poisoned(session: &Session, statements: &Statements, id: &str) -> Result<Option<Poisoned>> {
    let rows = single(session, statements, &statements.manage_find_poisoned, &[&id]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Poisoned {
        execution: column(row, "execution")?,
        history_len: column(row, "history_len")?,
        fence: Fence(column(row, "fence")?),
    }))
}

/// The columns of activities that are queued again.
#[derive(Debug, Default)]
struct Tasks {
    events: Vec<i32>,
    names: Vec<String>,
    inputs: Vec<String>,
    retries: Vec<Option<String>>,
    limits: Vec<Option<i64>>,
    tags: Vec<Option<String>>,
    sessions: Vec<Option<String>>,
}

/// Runs a poisoned instance again; false when it is not as it was read. Dropped half way it may have happened: it is not
/// poisoned any more then.
pub async fn retry(
    session: &Session,
    statements: &Statements,
    id: &str,
    found: Poisoned,
    reopened: Reopened,
) -> Result<bool> {
    let tasks = tasks(reopened.activities);
    let (child_events, children): (Vec<i32>, Vec<String>) =
        reopened.children.into_iter().map(|(event, instance)| (event_number(event), instance)).unzip();
    let Poisoned { execution, history_len, fence } = found;
    let state: [&(dyn ToSql + Sync); 4] = [&id, &execution, &history_len, &fence.0];
    let task_params: [&(dyn ToSql + Sync); 10] = [
        &id,
        &execution,
        &tasks.events,
        &fence.0,
        &tasks.names,
        &tasks.inputs,
        &tasks.retries,
        &tasks.limits,
        &tasks.tags,
        &tasks.sessions,
    ];
    let child_params: [&(dyn ToSql + Sync); 5] = [&id, &execution, &child_events, &fence.0, &children];
    let version = replay_version::current();
    let open: [&(dyn ToSql + Sync); 5] = [&id, &execution, &history_len, &fence.0, &version];
    let steps: [(&Statement, &[&(dyn ToSql + Sync)]); 5] = [
        (&statements.manage_retry_open, &open),
        (&statements.manage_retry_history, &state),
        (&statements.manage_retry_children, &child_params),
        (&statements.manage_retry_activities, &task_params),
        (&statements.manage_retry_instance, &state),
    ];
    let answers = session.transaction(&statements.settings, &steps).await?;
    Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
}

fn tasks(activities: Vec<(EventId, EventBody)>) -> Tasks {
    let mut tasks = Tasks::default();
    for (event, body) in activities {
        let EventBody::ActivityScheduled { name, input, tag, session, retry, timeout_ms, .. } = body else {
            continue;
        };
        tasks.events.push(event_number(event));
        tasks.names.push(name);
        tasks.inputs.push(input.as_str().to_owned());
        tasks.retries.push(retry.map(|policy| Payload::of(&policy).as_str().to_owned()));
        tasks.limits.push(timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)));
        tasks.tags.push(tag);
        tasks.sessions.push(session);
    }
    tasks
}
