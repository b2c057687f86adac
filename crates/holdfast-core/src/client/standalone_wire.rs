//! The JSON texts about standalone activities: one request with an `op`, one answer.

use std::time::Duration;

use holdfast_replay::Payload;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    client::{StandaloneClient, StandaloneEnd},
    error::{Error, ErrorKind, Result},
    store::{
        commit::NewStandalone,
        standalone::{StandaloneFilter, StandaloneRow},
    },
};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Request {
    Get {
        id: String,
    },
    Wait {
        id: String,
        timeout_ms: f64,
    },
    Cancel {
        id: String,
        reason: String,
    },
    Retry {
        id: String,
    },
    Delete {
        id: String,
    },
    List {
        status: Option<String>,
        name: Option<String>,
        tag: Option<String>,
        id_prefix: Option<String>,
        after: Option<String>,
        limit: i64,
    },
}

/// Tasks to queue. A text of its own: a request with an `op` is read twice, and there may be thousands of inputs.
#[derive(Deserialize)]
struct Tasks {
    tasks: Vec<Task>,
    /// Whether some ids are the caller's own.
    named: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: String,
    name: String,
    input: Payload,
    #[serde(default)]
    retry: Option<Payload>,
    #[serde(default)]
    timeout_ms: Option<i64>,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    delay_ms: i64,
    retention_ms: i64,
}

#[derive(Serialize)]
struct Made {
    created: bool,
    same: bool,
}

#[derive(Default, Serialize)]
struct Waited {
    ended: Option<Shown>,
    unknown: bool,
}

#[derive(Serialize)]
struct Listed {
    activities: Vec<Shown>,
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    name: String,
    status: String,
    attempt: i32,
    delivery: i32,
    tag: Option<String>,
    node: Option<String>,
    heartbeat: Option<Payload>,
    heartbeat_at: Option<i64>,
    scheduled_at: i64,
    due_at: Option<i64>,
    ended_at: Option<i64>,
    result: Option<Payload>,
}

/// Queues tasks: `{ tasks: [{ id, name, input, … }], named }` to `[{ created, same }]`.
pub async fn enqueue(client: &StandaloneClient, text: &str) -> Result<String> {
    let Tasks { tasks, named } = read(text)?;
    let made = client.enqueue(tasks.into_iter().map(NewStandalone::from).collect(), named).await?;
    write(&made.into_iter().map(|made| Made { created: made.created, same: made.same }).collect::<Vec<_>>())
}

/// Carries out one request.
pub async fn ask(client: &StandaloneClient, request: &str) -> Result<String> {
    match read(request)? {
        Request::Get { id } => write(&client.get(&id).await?.map(shown).transpose()?),
        Request::Wait { id, timeout_ms } => {
            let limit = Duration::try_from_secs_f64(timeout_ms / 1000.0).unwrap_or(Duration::MAX);
            write(&match client.wait(&id, limit).await? {
                StandaloneEnd::Ended(row) => Waited { ended: Some(shown(*row)?), unknown: false },
                StandaloneEnd::Unknown => Waited { ended: None, unknown: true },
                StandaloneEnd::StillOpen => Waited::default(),
            })
        }
        Request::Cancel { id, reason } => write(&json!({ "cancelled": client.cancel(&id, &reason).await? })),
        Request::Retry { id } => write(&json!({ "retried": client.retry(&id).await? })),
        Request::Delete { id } => write(&json!({ "deleted": client.delete(&id).await? })),
        Request::List { status, name, tag, id_prefix, after, limit } => {
            let filter = StandaloneFilter { status, name, tag, id_prefix };
            let page = client.list(&filter, after, limit).await?;
            let activities: Result<Vec<Shown>> = page.tasks.into_iter().map(shown).collect();
            write(&Listed { activities: activities?, next: page.next })
        }
    }
}

impl From<Task> for NewStandalone {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            name: task.name,
            input: task.input.as_str().to_owned(),
            retry: task.retry.map(|policy| policy.as_str().to_owned()),
            timeout_ms: task.timeout_ms,
            tag: task.tag,
            delay_ms: task.delay_ms,
            retention_ms: task.retention_ms,
        }
    }
}

fn shown(row: StandaloneRow) -> Result<Shown> {
    let corrupt =
        |id: &str| Error::new(ErrorKind::Corrupt, format!("the result of activity {id:?} is not JSON"));
    let payload = |text: Option<String>| {
        text.map(|text| Payload::from_text(text).ok_or_else(|| corrupt(&row.id))).transpose()
    };
    let (result, heartbeat) = (payload(row.result)?, payload(row.heartbeat)?);
    Ok(Shown {
        id: row.id,
        name: row.name,
        status: row.status,
        attempt: row.attempt,
        delivery: row.deliveries,
        tag: row.tag,
        node: row.node,
        heartbeat,
        heartbeat_at: row.heartbeat_at_ms,
        scheduled_at: row.scheduled_at_ms,
        due_at: row.due_at_ms,
        ended_at: row.ended_at_ms,
        result,
    })
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::Invalid, "read a request about standalone activities").caused_by(error)
    })
}

fn write<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Internal, "write an answer").caused_by(error))
}
