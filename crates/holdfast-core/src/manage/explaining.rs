//! Why is this instance not running? One answer, put together from the tables and from the instance's own history.
//!
//! It only reads, takes no locks and needs no runtime; what it says was true at one moment.

use holdfast_replay::{CarriedKind, Event, Execution, Payload, event::StoredEvent};
use serde::Serialize;

use crate::{
    error::Result,
    limits,
    manage::Manager,
    store::{
        instance,
        manage::{self as rows, Found, FoundActivity, FoundInstance},
        replay_version,
        standalone::{self, StandaloneRow},
    },
};

/// What is due for longer than this and not taken is worth a word, in ms.
const OVERDUE_MS: i64 = 10_000;

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    instance: String,
    /// `NotFound`, a status as stored, or `Parked`.
    status: String,
    name: Option<String>,
    version: Option<String>,
    /// Activity of a background job.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    execution: i64,
    /// Of a failed or parked instance.
    error: Option<Payload>,
    parked_at: Option<i64>,
    waiting: Vec<Waiting>,
    turn: Option<Turn>,
    problems: Vec<String>,
    /// Database time, ms since 1970.
    now: i64,
}

/// One thing that is waited for.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields say what they are; times are ms since 1970")]
pub enum Waiting {
    /// A timer.
    Timer { until: i64 },
    /// A one-shot event.
    Event { name: String },
    /// A message of a queue.
    Queue { name: String },
    /// An activity: `next_at` while it waits, lease while it runs.
    Activity {
        name: String,
        event: i32,
        attempt: i32,
        delivery: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_at: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        leased_by: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        lost_by: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        heartbeat_details: Option<Payload>,
        #[serde(skip_serializing_if = "Option::is_none")]
        heartbeat_at: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// A child.
    Child { instance_id: String, name: String, status: String },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    due: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leased_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<i64>,
    deliveries: i32,
    messages: i64,
}

impl Manager {
    /// Explains how an instance stands; also one that nobody knows.
    pub async fn explain(&self, id: &str) -> Result<Explanation> {
        let session = self.session().await?;
        let statements = self.provider.statements();
        let found = rows::explain(&session, statements, id).await?;
        let state = &found.instance;
        if state.name.is_none() && found.activities.is_empty() {
            let jobs = standalone::get(&session, statements, &[id.to_owned()]).await?;
            if let Some(job) = jobs.into_iter().next() {
                return Ok(ended_job(job, state.now_ms));
            }
        }
        let mut problems = problems(&found);
        let mut messages = Vec::new();
        if state.queued && state.history_len > limits::EXPLAIN_EVENTS {
            problems.push(format!(
                "its history has {} events; the events that it waits for are not told",
                state.history_len
            ));
        } else if state.queued && state.history_len > 0 {
            let history = instance::read_history(&session, statements, id, state.execution).await?;
            match open_waits(id, state.execution, history) {
                Ok(waits) => messages = waits,
                Err(text) => problems.push(format!("its history cannot be read: {text}")),
            }
        }
        Ok(answer(id, found, messages, problems))
    }
}

fn open_waits(
    id: &str,
    execution: i64,
    history: Vec<StoredEvent>,
) -> Result<Vec<(CarriedKind, String)>, String> {
    let events: Vec<Event> = history
        .into_iter()
        .map(StoredEvent::decode)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let execution = Execution::replay(id.to_owned(), execution, events).map_err(|error| error.to_string())?;
    Ok(execution.open_waits())
}

fn answer(
    id: &str,
    found: Found,
    messages: Vec<(CarriedKind, String)>,
    problems: Vec<String>,
) -> Explanation {
    let Found { instance: state, activities, timers, children } = found;
    let is_job = |task: &&FoundActivity| state.name.is_none() && task.execution == 0;
    let job = activities.iter().find(is_job).map(|task| task.name.clone());
    let mut waiting: Vec<Waiting> = messages
        .into_iter()
        .map(|(kind, name)| match kind {
            CarriedKind::Event => Waiting::Event { name },
            CarriedKind::Queue => Waiting::Queue { name },
        })
        .collect();
    waiting.extend(timers.into_iter().map(|until| Waiting::Timer { until }));
    waiting.extend(activities.into_iter().map(activity));
    waiting.extend(children.into_iter().map(|child| Waiting::Child {
        instance_id: child.instance,
        name: child.name,
        status: child.parked.map_or(child.status, |code| format!("Parked ({code})")),
    }));
    let turn = state.queued.then(|| turn(&state));
    let status = match (&state.name, state.parked_at_ms) {
        (None, _) => "NotFound".to_owned(),
        (_, Some(_)) => "Parked".to_owned(),
        _ => state.status,
    };
    Explanation {
        instance: id.to_owned(),
        status,
        name: state.name,
        version: state.version,
        job,
        execution: state.execution,
        error: state.error.and_then(Payload::from_text),
        parked_at: state.parked_at_ms,
        waiting,
        turn,
        problems,
        now: state.now_ms,
    }
}

/// A background job that has ended: nothing is waited for.
fn ended_job(job: StandaloneRow, now: i64) -> Explanation {
    let failed = matches!(job.status.as_str(), "Failed" | "Poisoned");
    Explanation {
        instance: job.id,
        // Its error says that it was poisoned.
        status: if failed { "Failed".to_owned() } else { job.status },
        name: None,
        version: None,
        job: Some(job.name),
        execution: 0,
        error: job.result.filter(|_| failed).and_then(Payload::from_text),
        parked_at: None,
        waiting: Vec::new(),
        turn: None,
        problems: Vec::new(),
        now,
    }
}

fn turn(state: &FoundInstance) -> Turn {
    let leased = state.owner.is_some();
    Turn {
        due: !leased && state.due_at_ms.is_some_and(|at| at <= state.now_ms),
        due_at: state.due_at_ms.filter(|_| !leased),
        leased_by: state.owner.clone(),
        lease_until: state.due_at_ms.filter(|_| leased),
        deliveries: state.deliveries,
        messages: state.messages,
    }
}

fn activity(task: FoundActivity) -> Waiting {
    let leased = task.owner.is_some();
    Waiting::Activity {
        name: task.name,
        event: task.event,
        attempt: task.attempt,
        delivery: task.deliveries,
        next_at: task.due_at_ms.filter(|_| !leased),
        leased_by: task.owner,
        lease_until: task.due_at_ms.filter(|_| leased),
        lost_by: task.lost_by.filter(|_| !leased),
        heartbeat_details: task.heartbeat.and_then(Payload::from_text),
        heartbeat_at: task.heartbeat_at_ms,
        tag: task.tag,
        session: task.session,
    }
}

/// What keeps it from going on, apart from what it waits for.
fn problems(found: &Found) -> Vec<String> {
    let state = &found.instance;
    let mut problems = Vec::new();
    let running = matches!(state.status.as_str(), "Pending" | "Running");
    if running && !state.queued {
        problems.push("its turn row is missing: it can never be claimed".to_owned());
    }
    if state.queued && !state.started && state.messages > 0 {
        problems.push(format!("{} messages wait for its start", count(state.messages)));
    }
    if (running || !found.activities.is_empty()) && state.nodes == 0 {
        problems.push("no live node at all".to_owned());
    }
    if running && !state.served && state.nodes > 0 {
        let version = state.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let name = state.name.as_deref().unwrap_or_default();
        problems.push(format!("no live node has orchestration {name}{version}"));
    }
    if let Some(number) = state.replay_version
        && running
        && state.served
        && !state.replayed
    {
        let written = replay_version::text(number);
        problems.push(format!(
            "its history was written by version {written} of holdfast, which no live node replays (supportedReplayVersions)"
        ));
    }
    if let Some(owner) = &state.owner
        && !state.owner_lives
    {
        problems.push(format!("node {owner}, which holds its turn, is silent; recovery frees the turn"));
    }
    let overdue = state.due_at_ms.map_or(0, |at| state.now_ms - at);
    if running && state.owner.is_none() && state.served && state.replayed && overdue > OVERDUE_MS {
        problems.push(format!("its turn has been due for {} s: the nodes are busy", overdue / 1000));
    }
    if state.deliveries > 1 {
        problems.push(format!("its turn was delivered {} times without an end", state.deliveries));
    }
    for task in &found.activities {
        match (&task.owner, &task.lost_by) {
            (Some(owner), _) if !task.owner_lives => problems.push(format!(
                "node {owner}, which holds activity {}, is silent; recovery frees it",
                task.name
            )),
            (None, Some(node)) => problems.push(format!(
                "node {node} died while it held activity {}; such work is taken one at a time",
                task.name
            )),
            _ => {}
        }
        if state.nodes > 0 && !task.known {
            problems.push(format!("no live node has activity {}", task.name));
        } else if state.nodes > 0 && !task.served {
            let what = task.tag.as_deref().map_or("untagged work".to_owned(), |tag| format!("tag {tag}"));
            problems.push(format!("no live node that has activity {} takes {what}", task.name));
        }
    }
    for child in &found.children {
        if let Some(code) = &child.parked {
            problems.push(format!("child {} is parked: {code}", child.instance));
        }
    }
    problems.dedup();
    problems
}

fn count(messages: i64) -> String {
    if messages > 1000 { "more than 1000".to_owned() } else { messages.to_string() }
}
