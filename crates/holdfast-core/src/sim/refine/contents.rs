//! What the tables of both stores hold, line for line in the words of `sql/refine/read_contents.sql`.

use std::fmt::Display;

use super::{
    super::model::{ALWAYS, ActivityRow, LeaseRow, Model, NEVER},
    names::Line,
};
use crate::{
    error::Result,
    pool::{Row, Session, Statement},
    store::message::columns,
};

/// A value that may be missing.
pub(super) fn or_empty(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn flag(is: bool) -> &'static str {
    if is { "t" } else { "f" }
}

fn due(at: i64) -> String {
    match at {
        NEVER => "never".to_owned(),
        ALWAYS => "always".to_owned(),
        at => at.to_string(),
    }
}

fn lease(row: &LeaseRow) -> String {
    let (owner, epoch) = row
        .owner
        .as_ref()
        .map_or((String::new(), String::new()), |(id, epoch)| (id.clone(), epoch.to_string()));
    let leased = row.owner.as_ref().map(|_| row.leased_at);
    format!(
        "due={} owner={owner}#{epoch} leased={} deliveries={} isolated={}",
        due(row.due_at),
        or_empty(leased),
        row.deliveries,
        flag(row.isolated)
    )
}

/// The tables of the model.
pub(super) fn of_model(model: &Model) -> Vec<Line> {
    let mut lines = Vec::new();
    for ((id, epoch), row) in &model.nodes {
        let rest =
            format!("heartbeat={} interval={} stale={}", row.heartbeat_at, row.interval, row.stale_after);
        lines.push(Line::new(format!("node {id}#{epoch}"), rest));
    }
    for (instance, row) in &model.turns {
        let rest = format!(
            "{} parked={} cut={} starts={} name={} version={} execution={} len={} replay={}",
            lease(&row.lease),
            flag(row.parked),
            flag(row.cut_off),
            or_empty(row.starts_at),
            or_empty(row.name.as_ref()),
            or_empty(row.version.as_ref()),
            row.execution,
            row.history_len,
            or_empty(row.replay_version)
        );
        let fences = [row.lease.fence, row.lease.last_fence];
        lines.push(Line::new(format!("turn {instance}"), rest).with_fences(&fences));
    }
    messages(model, &mut lines);
    for (instance, key) in &model.keys {
        lines.push(Line::new(format!("key {instance} {key}"), String::new()));
    }
    for (key, row) in &model.activities {
        let rest = format!(
            "{} lost={} told={} session={} of={} {}",
            lease(&row.lease),
            or_empty(row.lost_by.as_ref()),
            or_empty(row.heartbeat_at),
            or_empty(row.session.as_ref()),
            row.orchestration.as_ref().map_or("@".to_owned(), |(name, version)| format!("{name}@{version}")),
            task(row)
        );
        let fences = [row.lease.fence, row.lease.last_fence];
        let key = format!("activity {}/{}/{}", key.instance, key.execution, key.event);
        lines.push(Line::new(key, rest).with_fences(&fences));
    }
    instances(model, &mut lines);
    rest(model, &mut lines);
    lines
}

/// What a task keeps when it ends.
fn task(row: &ActivityRow) -> String {
    format!(
        "name={} input={} attempt={} retry={} timeout={} retention={} heartbeat={} tag={} scheduled={}",
        row.name,
        row.input,
        row.attempt,
        or_empty(row.retry.as_ref()),
        or_empty(row.timeout_ms),
        row.retention_ms,
        or_empty(row.heartbeat.as_ref()),
        or_empty(row.tag.as_ref()),
        row.scheduled_at
    )
}

fn rest(model: &Model, lines: &mut Vec<Line>) {
    for (id, row) in &model.ended {
        let rest = format!(
            "status={} result={} deliveries={} ended={} keep={} {}",
            row.status,
            row.result,
            row.row.lease.deliveries,
            row.ended_at,
            due(row.keep_until),
            task(&row.row)
        );
        lines.push(Line::new(format!("ended {id}"), rest).with_fences(&[row.fence]));
    }
    for (session, row) in &model.sessions {
        let until = due(row.leased_until);
        let rest = format!("owner={} until={until} used={}", or_empty(row.owner.as_ref()), row.used_at);
        lines.push(Line::new(format!("session {session}"), rest));
    }
    for ((instance, key), (value, at)) in &model.values {
        lines.push(Line::new(format!("value {instance} {key}"), format!("{value} at={at}")));
    }
}

fn messages(model: &Model, lines: &mut Vec<Line>) {
    let (mut last, mut place) = ("", 0);
    for ((instance, id), row) in &model.inbox {
        place = if last == instance { place + 1 } else { 1 };
        last = instance;
        let body = columns(&row.body);
        let rest = format!(
            "due={} kind={} execution={} source={} name={} data={}",
            due(row.due_at),
            body.kind,
            or_empty(body.execution),
            or_empty(body.source),
            or_empty(body.name),
            or_empty(body.data)
        );
        lines.push(Line::new(format!("message {instance} {place:06}"), rest).with_message(*id));
    }
}

fn instances(model: &Model, lines: &mut Vec<Line>) {
    for (instance, row) in &model.instances {
        let parent = row.parent.as_ref();
        let rest = format!(
            "name={} version={} execution={} status={} input={} output={} error={} parked={} carried={} custom={} parent={}/{}/{} replay={}",
            row.name,
            or_empty(row.version.as_ref()),
            row.execution,
            row.status,
            row.input,
            or_empty(row.output.as_ref()),
            or_empty(row.error.as_ref()),
            flag(row.parked),
            or_empty(row.carried.as_ref()),
            or_empty(row.custom_status.as_ref()),
            or_empty(parent.map(|parent| &parent.instance)),
            or_empty(parent.map(|parent| parent.execution)),
            or_empty(parent.map(|parent| parent.event.0)),
            or_empty(row.replay_version)
        );
        lines.push(Line::new(format!("instance {instance}"), rest).with_fences(&[row.last_fence]));
    }
    for ((instance, execution), row) in &model.executions {
        let rest =
            format!("version={} input={} output={}", or_empty(row.version.as_ref()), row.input, row.output);
        lines.push(Line::new(format!("execution {instance}/{execution}"), rest));
    }
    for ((instance, execution), events) in &model.history {
        for event in events {
            let source = or_empty(event.source.map(|source| source.0));
            let rest = format!("kind={} source={source} at={} data={}", event.kind, event.at_ms, event.data);
            lines.push(Line::new(format!("event {instance}/{execution}/{:06}", event.id.0), rest));
        }
    }
}

/// The tables of the database.
pub(super) async fn of_database(session: &Session, statement: &Statement) -> Result<Vec<Line>> {
    let rows = session.query(statement, &[]).await?;
    let line = |row: &Row| Line {
        key: row.get("key"),
        fences: row.get("fences"),
        messages: row.get("messages"),
        rest: row.get("rest"),
    };
    Ok(rows.iter().map(line).collect())
}
