//! What a runtime can take of the work that its own process makes ready. It claims nothing.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

use crate::{
    activity::ActivityRunner,
    clock::Moment,
    dispatch::Handlers,
    liveness::{Claiming, Node, Standing},
    notify::LocalSlots,
    store::TagFilter,
    turn::TurnRunner,
};

/// See the module.
pub(crate) struct FreeSlots {
    orchestrations: BTreeSet<String>,
    handlers: BTreeSet<String>,
    tags: TagFilter,
    standing: Arc<Standing>,
    stopping: watch::Receiver<bool>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
}

impl FreeSlots {
    /// Known to the provider until it is dropped.
    pub(crate) fn offer(
        node: &Node,
        handlers: &Handlers,
        turns: &Arc<TurnRunner>,
        activities: &Arc<ActivityRunner>,
        stopping: watch::Receiver<bool>,
    ) -> Arc<dyn LocalSlots> {
        let slots: Arc<dyn LocalSlots> = Arc::new(Self {
            orchestrations: handlers.names().into_iter().collect(),
            handlers: handlers.activities.iter().cloned().collect(),
            tags: node.config.dispatch.worker_tag_filter.clone(),
            standing: Arc::clone(&node.standing),
            stopping,
            turns: Arc::clone(turns),
            activities: Arc::clone(activities),
        });
        node.provider.hints().offer(&slots);
        slots
    }
}

impl LocalSlots for FreeSlots {
    fn claims(&self) -> bool {
        !*self.stopping.borrow() && self.standing.claiming(Moment::now()) != Claiming::Nothing
    }

    fn free(&self) -> (usize, usize) {
        (self.turns.free(), self.activities.free())
    }

    fn runs_turn(&self, instance: &str, name: Option<&str>) -> bool {
        match name {
            Some(name) => self.orchestrations.contains(name),
            None => self.turns.knows(instance),
        }
    }

    fn runs_activity(&self, name: &str, tag: Option<&str>) -> bool {
        let taken = match tag {
            None => self.tags.untagged,
            Some(tag) => self.tags.any || self.tags.tags.iter().any(|one| one == tag),
        };
        taken && self.handlers.contains(name)
    }
}
