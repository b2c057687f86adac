//! Finds due work that no live node can run, and tells people. It changes nothing.

use serde_json::json;

use crate::{
    error::Result,
    pool::CallerClass,
    provider::Provider,
    store::{
        coverage::{self, Unserved},
        replay_version,
    },
    telemetry::Level,
};

/// One look, seldom and bounded; how many names it found.
pub(super) async fn look(provider: &Provider) -> Result<usize> {
    let session = provider.pool().acquire(CallerClass::Ordinary).await?;
    let found = coverage::unserved(&session, provider.statements()).await?;
    for unserved in &found {
        tell(provider, unserved);
    }
    Ok(found.len())
}

fn tell(provider: &Provider, unserved: &Unserved) {
    provider.counters().unserved.add(1);
    let Unserved { kind, name, version, tag, replay_version, waiting } = unserved;
    let written = replay_version.map(replay_version::text);
    let version_text = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let tag_text = tag.as_deref().map(|tag| format!(" with tag {tag}")).unwrap_or_default();
    let written_text =
        written.as_deref().map(|by| format!(" with a history of holdfast {by}")).unwrap_or_default();
    let text =
        format!("{waiting} due, and no live node takes {kind} {name}{version_text}{tag_text}{written_text}");
    let fields = json!({
        "kind": kind, "handler": name, "version": version, "tag": tag, "replayVersion": written, "waiting": waiting,
    });
    provider.events().emit("work-unserved", Level::Warn, text, fields);
}
