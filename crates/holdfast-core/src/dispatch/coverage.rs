//! What nodes can run: says it for this one, and finds due work that no live node can run.
//!
//! A node says it once for each registration. The look is seldom and bounded; it changes nothing and tells people.

use std::time::Instant;

use serde_json::json;

use crate::{
    clock,
    dispatch::Claimer,
    error::Result,
    limits,
    store::{
        NodeKey, StoreSession,
        coverage::{Ability, Unserved},
        replay_version,
    },
    telemetry::Level,
};

/// What one claimer has said and seen.
#[derive(Debug)]
pub(super) struct Coverage {
    published: Option<NodeKey>,
    looked: Instant,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { published: None, looked: clock::now() }
    }
}

impl Coverage {
    /// Says what this node can run, when that is not said yet, and looks now and then.
    pub(super) async fn keep(&mut self, session: &dyn StoreSession, claimer: &Claimer) -> Result<()> {
        let node = claimer.node();
        if self.published.as_ref() != Some(&node) {
            let replay = claimer.config.dispatch.replay_versions.range();
            let (oldest, newest) = (replay.min.to_string(), replay.max.to_string());
            let mut abilities = abilities(claimer);
            abilities.push(Ability { kind: "replay", name: &oldest, version: &newest });
            session.publish(&node, &abilities).await?;
            self.published = Some(node);
        }
        if clock::since(self.looked) >= limits::UNSERVED_EVERY {
            self.looked = clock::now();
            for unserved in session.unserved().await? {
                tell(claimer, &unserved);
            }
        }
        Ok(())
    }
}

fn abilities(claimer: &Claimer) -> Vec<Ability<'_>> {
    let handlers = &claimer.handlers;
    let mut abilities: Vec<Ability<'_>> = handlers
        .orchestrations
        .iter()
        .map(|handler| Ability { kind: "orchestration", name: &handler.name, version: &handler.version })
        .collect();
    abilities.extend(handlers.activities.iter().map(|name| Ability { kind: "activity", name, version: "" }));
    let tags = &claimer.config.dispatch.worker_tag_filter;
    if tags.untagged {
        abilities.push(Ability { kind: "untagged", name: "", version: "" });
    }
    if tags.any {
        abilities.push(Ability { kind: "any_tag", name: "", version: "" });
    }
    abilities.extend(tags.tags.iter().map(|name| Ability { kind: "tag", name, version: "" }));
    abilities
}

fn tell(claimer: &Claimer, unserved: &Unserved) {
    claimer.provider.counters().unserved.add(1);
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
    claimer.provider.events().emit("work-unserved", Level::Warn, text, fields);
}
