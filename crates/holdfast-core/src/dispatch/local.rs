//! What a runtime can take of the work that its own process makes ready: by its next claim, or at once. It claims nothing.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use holdfast_replay::MessageBody;

use tokio::sync::watch;

use crate::{
    activity::{ActivityRunner, ClaimedTasks},
    clock::{self, Moment},
    config::ms,
    dispatch::Handlers,
    lease::{TakesResults, TakesStarts, TakesTasks},
    liveness::{Claiming, Node, Standing},
    notify::LocalSlots,
    store::{
        ActivityKey, NodeKey, TagFilter,
        activity::ClaimedActivity,
        commit::{BelatedActivity, HandedTask, NewActivity, Start, StartLease},
        turn::ClaimedTurn,
    },
    turn::TurnRunner,
};

/// See the module.
pub(crate) struct FreeSlots {
    orchestrations: BTreeSet<String>,
    versions: BTreeSet<String>,
    handlers: BTreeSet<String>,
    tags: TagFilter,
    standing: Arc<Standing>,
    stopping: watch::Receiver<bool>,
    turns: Arc<TurnRunner>,
    activities: Arc<ActivityRunner>,
    lease_ms: i64,
    turn_lease_ms: i64,
    node: Arc<Mutex<NodeKey>>,
}

impl FreeSlots {
    /// Known to the provider until it is dropped.
    pub(crate) fn offer(
        node: &Node,
        handlers: &Handlers,
        turns: &Arc<TurnRunner>,
        activities: &Arc<ActivityRunner>,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let slots = Arc::new(Self {
            orchestrations: handlers.names().into_iter().collect(),
            versions: handlers.exact().into_iter().collect(),
            handlers: handlers.activities.iter().cloned().collect(),
            tags: node.config.dispatch.worker_tag_filter.clone(),
            standing: Arc::clone(&node.standing),
            stopping,
            turns: Arc::clone(turns),
            activities: Arc::clone(activities),
            lease_ms: ms(node.config.lease.worker_lock_timeout),
            turn_lease_ms: ms(node.config.lease.orchestrator_lock_timeout),
            node: Arc::clone(&node.key),
        });
        let offered: Arc<dyn LocalSlots> = Arc::<Self>::clone(&slots);
        node.provider.hints().offer(&offered);
        let (tasks, results) = (Arc::downgrade(&slots), Arc::downgrade(&slots));
        turns.tasks_to(tasks);
        activities.results_to(results);
        let starts: Weak<dyn TakesStarts> = Arc::<Self>::downgrade(&slots);
        node.provider.starters().offer(starts);
        slots
    }
}

impl TakesTasks for FreeSlots {
    fn claims(&self) -> bool {
        LocalSlots::claims(self)
    }

    fn is_slow(&self, name: &str) -> bool {
        self.activities.is_slow(name)
    }

    fn reserve(&self, task: &NewActivity) -> Option<i64> {
        let takes = task.session.is_none()
            && LocalSlots::claims(self)
            && self.runs_activity(&task.name, task.tag.as_deref())
            && self.activities.reserve();
        takes.then_some(self.lease_ms)
    }

    fn free(&self, slots: usize) {
        self.activities.unreserve(slots);
    }

    fn take(&self, tasks: Vec<ClaimedActivity>, node: NodeKey, asked_at: Instant) {
        self.activities.count_claimed(tasks.len());
        self.activities.take(ClaimedTasks { tasks, node, isolated: false, rowless: false, asked_at });
    }

    fn take_rowless(&self, tasks: Vec<ClaimedActivity>, node: NodeKey) {
        self.activities.count_claimed(tasks.len());
        let asked_at = clock::now();
        self.activities.take(ClaimedTasks { tasks, node, isolated: false, rowless: true, asked_at });
    }

    fn move_out(&self, keys: Vec<ActivityKey>) -> Vec<BelatedActivity> {
        self.activities.move_out(keys, self.lease_ms)
    }

    fn moved(&self, keys: Vec<ActivityKey>, handed: &[HandedTask], node: &NodeKey, asked_at: Instant) {
        self.activities.moved(keys, handed, node, asked_at);
    }

    fn lose(&self, keys: Vec<ActivityKey>) {
        self.activities.lose(keys);
    }
}

impl TakesStarts for FreeSlots {
    fn reserve(&self, start: &Start) -> Option<StartLease> {
        let runs = match &start.version {
            None => self.orchestrations.contains(&start.name),
            Some(version) => self.versions.contains(&format!("{}@{version}", start.name)),
        };
        (runs && LocalSlots::claims(self) && self.turns.reserve()).then(|| StartLease {
            node: self.node.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            lease_ms: self.turn_lease_ms,
        })
    }

    fn free(&self) {
        self.turns.unreserve();
    }

    fn take(&self, turn: ClaimedTurn, node: NodeKey, asked_at: Instant) {
        self.turns.begin_started(turn, &node, asked_at, LocalSlots::claims(self));
    }
}

impl TakesResults for FreeSlots {
    fn take(&self, instance: &str, execution: i64, results: Vec<(i32, MessageBody)>, ran: Duration) -> bool {
        LocalSlots::claims(self) && self.turns.begin(instance, execution, results, ran)
    }

    fn tells(&self, instance: &str, execution: i64, events: &[i32]) -> Vec<i32> {
        self.turns.tells(instance, execution, events)
    }

    fn goes_back(&self, key: &ActivityKey, row: BelatedActivity) -> bool {
        self.turns.goes_back(key, row)
    }

    fn settle_kept(&self, instance: &str) {
        self.turns.settle_kept(instance);
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

    fn is_under_way(&self, instance: &str) -> bool {
        self.turns.is_under_way(instance)
    }

    fn runs_activity(&self, name: &str, tag: Option<&str>) -> bool {
        let taken = match tag {
            None => self.tags.untagged,
            Some(tag) => self.tags.any || self.tags.tags.iter().any(|one| one == tag),
        };
        taken && self.handlers.contains(name)
    }
}
