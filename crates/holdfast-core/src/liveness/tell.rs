//! What liveness tells: events for people. It decides nothing.

use serde_json::json;

use crate::{
    error::Error,
    telemetry::{Events, Level},
};

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
