//! Says what this node can run, once for each registration.

use crate::{
    dispatch::Claimer,
    error::Result,
    store::{NodeKey, StoreSession, coverage::Ability},
};

/// What one claimer has said.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    published: Option<NodeKey>,
}

impl Coverage {
    /// Whether it is said what this node can run.
    pub(super) fn is_kept(&self, node: &NodeKey) -> bool {
        self.published.as_ref() == Some(node)
    }

    /// Says what this node can run, when that is not said yet.
    pub(super) async fn keep(&mut self, session: &dyn StoreSession, claimer: &Claimer) -> Result<()> {
        let node = claimer.node();
        if !self.is_kept(&node) {
            let replay = claimer.config.dispatch.replay_versions.range();
            let (oldest, newest) = (replay.min.to_string(), replay.max.to_string());
            let mut abilities = abilities(claimer);
            abilities.push(Ability { kind: "replay", name: &oldest, version: &newest });
            session.publish(&node, &abilities).await?;
            self.published = Some(node);
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
