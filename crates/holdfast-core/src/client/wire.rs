//! The JSON texts that a client's calls take and give.

use std::time::Duration;

use holdfast_replay::{MessageBody, Payload};
use serde::{Deserialize, Serialize};

use crate::{
    client::{Client, Sent},
    error::{Error, ErrorKind, Result},
    store::{commit::Start, instance::InstanceRow},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartItem {
    id: String,
    name: String,
    #[serde(default)]
    version: Option<String>,
    input: Payload,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    delay_ms: Option<i64>,
    #[serde(default)]
    start_at: Option<i64>,
}

#[derive(Serialize)]
struct Started {
    created: bool,
    same: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SendKind {
    Event,
    Queue,
    Cancel,
}

#[derive(Deserialize)]
struct SendItem {
    kind: SendKind,
    instance: String,
    #[serde(default)]
    name: String,
    #[serde(default = "Payload::null")]
    data: Payload,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    key: Option<String>,
}

#[derive(Serialize)]
struct Accepted {
    accepted: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    instance: String,
    name: String,
    version: Option<String>,
    execution: i64,
    status: String,
    output: Option<Payload>,
    error: Option<Payload>,
    parked_at: Option<i64>,
    tag: Option<String>,
    custom_status: Option<String>,
    custom_status_version: i64,
    created_at: i64,
    updated_at: i64,
    parent: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryEvent {
    event_id: u32,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_event_id: Option<u32>,
    timestamp_ms: i64,
    data: Payload,
}

/// Starts instances: `[{ id, name, version, input, tag, delayMs, startAt }]` to `[{ created, same }]`. The first failure is the call's.
pub async fn start(client: &Client, items: &str) -> Result<String> {
    let items: Vec<StartItem> = read(items, "a list of starts")?;
    let starts: Vec<Start> = items
        .into_iter()
        .map(|item| Start {
            instance: item.id,
            name: item.name,
            version: item.version,
            input: item.input.as_str().to_owned(),
            parent: None,
            tag: item.tag,
            delay_ms: item.delay_ms,
            start_at_ms: item.start_at,
            lease: None,
        })
        .collect();
    let ids: Vec<String> = starts.iter().map(|start| start.instance.clone()).collect();
    let outcomes = client.start(starts).await.into_iter().zip(&ids);
    let outcomes: Result<Vec<_>> = outcomes
        .map(|(outcome, id)| outcome.map_err(|error| error.about(&format!("start {id:?}"))))
        .collect();
    let started: Vec<Started> = outcomes?
        .into_iter()
        .map(|outcome| Started { created: outcome.created, same: outcome.same })
        .collect();
    write(&started)
}

/// Sends one message: `{ kind, instance, name, data, reason, key }` to `{ accepted }`.
pub async fn send(client: &Client, item: &str) -> Result<String> {
    let item: SendItem = read(item, "a message")?;
    let key = item.key.as_deref();
    let sent = match item.kind {
        SendKind::Event => {
            let body = MessageBody::EventRaised { name: item.name, data: item.data };
            client.send_once(item.instance, body, key).await?
        }
        SendKind::Queue => {
            let body = MessageBody::QueueMessage { name: item.name, data: item.data };
            client.send_once(item.instance, body, key).await?
        }
        SendKind::Cancel => client.cancel(item.instance, item.reason, key).await?,
    };
    write(&Accepted { accepted: sent == Sent::Accepted })
}

/// An instance, or `null`.
pub async fn get(client: &Client, instance: &str) -> Result<String> {
    instance_text(client.get(instance).await?)
}

/// The ended instance, or `null` when the limit runs out first.
pub async fn wait(client: &Client, instance: &str, limit: Duration) -> Result<String> {
    instance_text(client.wait(instance, limit).await?)
}

/// History of one execution: `[{ eventId, kind, sourceEventId, timestampMs, data }]`.
pub async fn history(client: &Client, instance: &str, execution: i64) -> Result<String> {
    let mut events = Vec::new();
    for event in client.history(instance, execution).await? {
        events.push(HistoryEvent {
            event_id: event.id.0,
            kind: event.kind,
            source_event_id: event.source.map(|source| source.0),
            timestamp_ms: event.at_ms,
            data: stored(event.data, instance)?,
        });
    }
    write(&events)
}

fn instance_text(row: Option<InstanceRow>) -> Result<String> {
    let Some(row) = row else { return Ok("null".to_owned()) };
    let output = row.output.map(|text| stored(text, &row.instance)).transpose()?;
    let error = row.error.map(|text| stored(text, &row.instance)).transpose()?;
    write(&Instance {
        instance: row.instance,
        name: row.name,
        version: row.version,
        execution: row.execution,
        status: row.status,
        output,
        error,
        parked_at: row.parked_at_ms,
        tag: row.tag,
        custom_status: row.custom_status,
        custom_status_version: row.custom_status_version,
        created_at: row.created_at_ms,
        updated_at: row.updated_at_ms,
        parent: row.parent,
    })
}

fn stored(text: String, instance: &str) -> Result<Payload> {
    Payload::from_text(text)
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("a stored value of {instance:?} is not JSON")))
}

fn read<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::Invalid, format!("read {what}")).caused_by(error))
}

fn write<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Internal, "write an answer").caused_by(error))
}
