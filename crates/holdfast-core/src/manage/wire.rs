//! The JSON texts that a manager's calls take and give: one request with an `op`, one answer.

use holdfast_replay::Payload;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    error::{Error, ErrorKind, Result},
    manage::{Manager, Retention, removal::Roots},
    store::manage::{Deleted, Filter, ListedRow, Position, RootFilter},
};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Request {
    Execution {
        instance: String,
        execution: i64,
    },
    Executions {
        instance: String,
    },
    List {
        #[serde(flatten)]
        filter: ListFilter,
        limit: i64,
        from: Option<Place>,
    },
    Ids {
        #[serde(flatten)]
        filter: ListFilter,
    },
    Tree {
        instance: String,
    },
    Delete {
        instance: String,
        force: bool,
    },
    DeleteBulk {
        roots: RootChoice,
    },
    Prune {
        instance: String,
        retention: RetentionChoice,
    },
    PruneBulk {
        roots: RootChoice,
        retention: RetentionChoice,
    },
    Retry {
        instance: String,
    },
    Explain {
        instance: String,
    },
    Resume {
        instance: String,
    },
    ResumeBulk {
        #[serde(flatten)]
        filter: ListFilter,
        limit: i64,
    },
    Stats {
        instance: String,
    },
    Audit {},
    Metrics {},
    Depths {},
    Value {
        instance: String,
        key: String,
    },
    Values {
        instance: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListFilter {
    status: Option<String>,
    parked: Option<bool>,
    code: Option<String>,
    tag: Option<String>,
    name: Option<String>,
    version: Option<String>,
    parent: Option<String>,
    id_prefix: Option<String>,
    created_after: Option<i64>,
    created_before: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    created_at: i64,
    instance: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RootChoice {
    instance_ids: Option<Vec<String>>,
    completed_before: Option<i64>,
    limit: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetentionChoice {
    keep_last: Option<i64>,
    completed_before: Option<i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    instance: String,
    name: String,
    version: Option<String>,
    execution: i64,
    status: String,
    error_code: Option<String>,
    parked_at: Option<i64>,
    tag: Option<String>,
    created_at: i64,
    updated_at: i64,
    parent: Option<String>,
}

#[derive(Serialize)]
struct ListedPage {
    instances: Vec<Listed>,
    next: Option<Place>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    status: String,
    output: Option<Payload>,
    started_at: i64,
    completed_at: Option<i64>,
    event_count: i32,
}

/// Carries out one request.
pub async fn manage(manager: &Manager, request: &str) -> Result<String> {
    let request = serde_json::from_str(request)
        .map_err(|error| Error::new(ErrorKind::Invalid, "read a management request").caused_by(error))?;
    match request {
        Request::Execution { instance, execution } => one_execution(manager, &instance, execution).await,
        Request::Executions { instance } => write(&manager.executions(&instance).await?),
        Request::List { filter, limit, from } => list(manager, filter, limit, from).await,
        Request::Ids { filter } => write(&manager.ids(&filter.into()).await?),
        Request::Tree { instance } => write(&manager.tree(&instance).await?),
        Request::Delete { instance, force } => deleted(manager.delete(&instance, force).await?),
        Request::DeleteBulk { roots } => deleted(manager.delete_bulk(roots.chosen(true)).await?),
        Request::Prune { instance, retention } => {
            let pruned = manager.prune(&instance, retention.into()).await?;
            write(
                &json!({ "instancesProcessed": 1, "executionsDeleted": pruned.executions, "eventsDeleted": pruned.events }),
            )
        }
        Request::PruneBulk { roots, retention } => {
            let (processed, pruned) = manager.prune_bulk(roots.chosen(false), retention.into()).await?;
            write(
                &json!({ "instancesProcessed": processed, "executionsDeleted": pruned.executions, "eventsDeleted": pruned.events }),
            )
        }
        Request::Retry { instance } => write(&json!({ "retried": manager.retry(&instance).await? })),
        Request::Explain { instance } => write(&manager.explain(&instance).await?),
        Request::Resume { instance } => write(&json!({ "resumed": manager.resume(&instance).await? })),
        Request::ResumeBulk { filter, limit } => {
            write(&json!({ "resumed": manager.resume_bulk(&filter.into(), limit).await? }))
        }
        Request::Stats { instance } => stats(manager, &instance).await,
        Request::Audit {} => {
            let findings =
                manager.audit().await?.into_iter().map(
                    |found| json!({ "what": found.what, "instance": found.instance, "event": found.event }),
                );
            write(&findings.collect::<Vec<_>>())
        }
        Request::Metrics {} => metrics(manager).await,
        Request::Depths {} => {
            let depths = manager.depths().await?;
            write(&json!({ "turns": depths.turns, "activities": depths.activities }))
        }
        Request::Value { instance, key } => {
            let found = manager.values(&instance, Some(&key)).await?.pop();
            write(&found.map(|(_, value)| value))
        }
        Request::Values { instance } => {
            // Pairs, not an object: a key may be any text, `__proto__` too.
            write(&manager.values(&instance, None).await?)
        }
    }
}

async fn one_execution(manager: &Manager, instance: &str, execution: i64) -> Result<String> {
    let Some(row) = manager.execution(instance, execution).await? else { return Ok("null".to_owned()) };
    let output = row
        .output
        .map(|text| {
            let corrupt = || format!("the output of execution {execution} of {instance:?} is not JSON");
            Payload::from_text(text).ok_or_else(|| Error::new(ErrorKind::Corrupt, corrupt()))
        })
        .transpose()?;
    write(&Execution {
        status: row.status,
        output,
        started_at: row.started_at_ms,
        completed_at: row.finished_at_ms,
        event_count: row.events,
    })
}

async fn list(manager: &Manager, filter: ListFilter, limit: i64, from: Option<Place>) -> Result<String> {
    let from = from.map(|place| Position { created_at_ms: place.created_at, instance: place.instance });
    let page = manager.list(&filter.into(), from, limit).await?;
    write(&ListedPage {
        instances: page.instances.into_iter().map(Listed::from).collect(),
        next: page.next.map(|place| Place { created_at: place.created_at_ms, instance: place.instance }),
    })
}

async fn stats(manager: &Manager, instance: &str) -> Result<String> {
    let stats = manager.stats(instance).await?;
    write(&stats.map(|stats| {
        json!({
            "events": stats.events,
            "bytes": stats.bytes,
            "carriedMessages": stats.carried_messages,
            "keys": stats.keys,
            "valueBytes": stats.value_bytes,
        })
    }))
}

async fn metrics(manager: &Manager) -> Result<String> {
    let counts = manager.metrics().await?;
    write(&json!({
        "totalInstances": counts.instances,
        "totalExecutions": counts.executions,
        "runningInstances": counts.running,
        "completedInstances": counts.completed,
        "failedInstances": counts.failed,
        "totalEvents": counts.events,
    }))
}

fn deleted(deleted: Deleted) -> Result<String> {
    write(&json!({
        "instancesDeleted": deleted.instances,
        "executionsDeleted": deleted.executions,
        "eventsDeleted": deleted.events,
        "queueMessagesDeleted": deleted.messages,
    }))
}

impl From<ListFilter> for Filter {
    /// A cancelled instance is shown as failed, so who asks for failed ones wants both.
    fn from(filter: ListFilter) -> Self {
        let statuses = filter.status.map(|status| match status.as_str() {
            "Failed" => vec![status, "Cancelled".to_owned()],
            _ => vec![status],
        });
        Self {
            statuses,
            parked: filter.parked,
            error_code: filter.code,
            tag: filter.tag,
            name: filter.name,
            version: filter.version,
            parent: filter.parent,
            id_prefix: filter.id_prefix,
            created_after_ms: filter.created_after,
            created_before_ms: filter.created_before,
        }
    }
}

impl RootChoice {
    fn chosen(self, ended: bool) -> Roots {
        Roots {
            ids: self.instance_ids,
            filter: RootFilter { ended, finished_before_ms: self.completed_before },
            limit: self.limit,
        }
    }
}

impl From<RetentionChoice> for Retention {
    fn from(choice: RetentionChoice) -> Self {
        Self { keep_last: choice.keep_last.unwrap_or(1), completed_before_ms: choice.completed_before }
    }
}

impl From<ListedRow> for Listed {
    fn from(row: ListedRow) -> Self {
        Self {
            instance: row.instance,
            name: row.name,
            version: row.version,
            execution: row.execution,
            status: row.status,
            error_code: row.error_code,
            parked_at: row.parked_at_ms,
            tag: row.tag,
            created_at: row.created_at_ms,
            updated_at: row.updated_at_ms,
            parent: row.parent,
        }
    }
}

fn write<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Internal, "write an answer").caused_by(error))
}
