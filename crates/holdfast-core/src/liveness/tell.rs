//! What liveness tells: events for people. It decides nothing.

use std::time::Duration;

use serde_json::json;

use crate::{
    error::Error,
    liveness::watchdog::{Change, LoopState},
    telemetry::{Events, Level},
};

/// Names in an event about a loop that stands still: the youngest ones, one of which it most likely is.
const NAMED: usize = 8;

/// A heartbeat got no answer, or an error.
pub(super) fn heartbeat_failed(events: &Events, node: &str, error: &Error) {
    let text = format!("a heartbeat failed: {}", error.full_text());
    let fields = json!({ "node": node, "code": error.kind().code() });
    events.emit("heartbeat-failed", Level::Warn, text, fields);
}

/// Another node died.
pub(super) fn recovered(events: &Events, node: &str) {
    let text = format!("node {node:?} is dead: its work goes on elsewhere");
    events.emit("node-recovered", Level::Warn, text, json!({ "node": node }));
}

/// The others took this node for dead.
pub(super) fn declared_dead(events: &Events, node: &str) {
    let text = format!("this node, {node:?}, was declared dead and registers again");
    events.emit("node-declared-dead", Level::Error, text, json!({ "node": node }));
}

/// This node was not heard for too long, or is heard again.
pub(super) fn fence(events: &Events, node: &str, fenced: bool) {
    let fields = json!({ "node": node });
    if fenced {
        let text = "no heartbeat for too long: nothing is started here until one is answered";
        events.emit("node-fenced", Level::Warn, text.to_owned(), fields);
    } else {
        events.emit("node-heard-again", Level::Info, "heartbeats are answered again".to_owned(), fields);
    }
}

/// The JavaScript loop stands still, hangs, or turns again; `running` is what it has in hand.
pub(super) fn event_loop(events: &Events, change: Change, running: Vec<(String, Duration)>) {
    let ms = change.still.as_millis() as u64;
    let all = running.len();
    let names: Vec<String> = running
        .into_iter()
        .take(NAMED)
        .map(|(name, time)| format!("{name} for {} ms", time.as_millis()))
        .collect();
    let fields = json!({ "stillMs": ms, "running": names, "runningCount": all });
    let hand = names.join(", ");
    match change.to {
        LoopState::Stalled => {
            let text = format!(
                "the JavaScript loop has stood still for {ms} ms, nothing is claimed; in hand: {hand}"
            );
            events.emit("event-loop-stalled", Level::Warn, text, fields);
        }
        LoopState::Hung => {
            let text = format!(
                "the JavaScript loop has stood still for {ms} ms, its work is given up; in hand: {hand}"
            );
            events.emit("event-loop-hung", Level::Error, text, fields);
        }
        LoopState::Healthy => {
            let text = format!("the JavaScript loop turns again after {ms} ms");
            events.emit("event-loop-recovered", Level::Info, text, json!({ "stillMs": ms }));
        }
    }
}

/// A part of the engine makes no progress, or does again.
pub(super) fn stuck(events: &Events, part: Option<&'static str>) {
    match part {
        Some(part) => {
            let text = format!("the {part} makes no progress: no heartbeats, so that others take over");
            events.emit("part-stuck", Level::Error, text, json!({ "part": part }));
        }
        None => {
            let text = "every part makes progress again".to_owned();
            events.emit("part-moves-again", Level::Info, text, json!({}));
        }
    }
}
