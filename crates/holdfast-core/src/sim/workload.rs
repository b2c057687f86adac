//! What clients of one seed do and hear, how its nodes are set up, and what must hold of both at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    model::Model,
    oracle::Oracle,
    process::{Process, Told},
    program::Dice,
};
use crate::{
    client::Sent,
    config::{EngineConfig, ListenerMode},
    store::commit::Start,
};

/// See the module.
pub(super) struct Scene {
    pub(super) nodes: usize,
    pub(super) starts_left: usize,
    pub(super) starts: Vec<Start>,
    pub(super) raised: u64,
    /// Calls of clients without an answer.
    pub(super) calls_open: u64,
    lease_ms: u64,
    beat_ms: u64,
    stale_ms: u64,
    slots: usize,
    frames: usize,
    max_attempts: u32,
    /// Loops are watched, block now and then, and nodes are asked to stop. Not of every seed: those that failed before there
    /// was this stay what they are.
    pub(super) watched: bool,
    stall_ms: u64,
    hang_ms: u64,
    /// Bodies started, by item, of processes that have ended.
    started: BTreeMap<(String, i64, i64, i64), u32>,
    cancelled: BTreeSet<String>,
}

impl Scene {
    pub(super) fn random(dice: &mut Dice, watched: bool) -> Self {
        let (stall_ms, hang_ms) =
            if watched { (dice.between(300, 2_000), dice.between(2_500, 9_000)) } else { (0, 0) };
        let beat_ms = [250, 500, 1_000][usize::try_from(dice.below(3)).unwrap_or(0)];
        Self {
            nodes: usize::try_from(dice.between(1, 3)).unwrap_or(1),
            starts_left: usize::try_from(dice.between(2, 6)).unwrap_or(1),
            starts: Vec::new(),
            raised: 0,
            calls_open: 0,
            lease_ms: dice.between(500, 6_000),
            beat_ms,
            stale_ms: beat_ms * dice.between(5, 8),
            slots: usize::try_from(dice.between(1, 4)).unwrap_or(1),
            frames: [0, 2, 1_000][usize::try_from(dice.below(3)).unwrap_or(0)],
            max_attempts: u32::try_from(dice.between(3, 6)).unwrap_or(3),
            watched,
            stall_ms,
            hang_ms,
            started: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        }
    }

    /// Options of a node.
    pub(super) fn config(&self, number: usize) -> EngineConfig {
        let ms = Duration::from_millis;
        let mut config = EngineConfig::default();
        config.dispatch.orchestration_concurrency = self.slots;
        config.dispatch.worker_concurrency = self.slots + 1;
        config.lease.orchestrator_lock_timeout = ms(self.lease_ms);
        config.lease.worker_lock_timeout = ms(self.lease_ms * 2);
        config.lease.max_attempts = self.max_attempts;
        config.lease.retry_backoff_base = ms(200);
        config.lease.retry_backoff_max = ms(5_000);
        config.liveness.heartbeat_interval = ms(self.beat_ms);
        config.liveness.stale_after = ms(self.stale_ms);
        config.liveness.worker_node_id = Some(format!("node-{number}"));
        config.liveness.listener = ListenerMode::Off;
        if self.watched {
            config.watchdog.stall_timeout = ms(self.stall_ms);
            config.watchdog.hang_timeout = ms(self.hang_ms);
        }
        config.cache.sticky_cache_size = self.frames;
        config
    }

    /// What a client was told; what is wrong with it.
    pub(super) fn hear(&mut self, told: Told, oracle: &Oracle) -> Result<(), (&'static str, String)> {
        match told {
            Told::Start(start, Ok(outcome)) => {
                let same = oracle.first_input(&start.instance) == Some(&start.input);
                if outcome.same != same {
                    return Err(("I7", format!("a start of {} is told as {outcome:?}", start.instance)));
                }
            }
            Told::Cancel(instance, Ok(Sent::Accepted)) => {
                self.cancelled.insert(instance);
            }
            Told::Raise(instance, number, Ok(Sent::Accepted)) if !oracle.was_raised(number) => {
                return Err((
                    "I6",
                    format!("event {number} of {instance} is told as accepted and was never stored"),
                ));
            }
            Told::Start(_, Err(_)) | Told::Raise(..) | Told::Cancel(..) => {}
        }
        Ok(())
    }

    pub(super) fn take_ledger(&mut self, process: &Process) {
        for (item, times) in std::mem::take(&mut process.ground.lock().started) {
            *self.started.entry(item).or_default() += times;
        }
    }

    /// What does not hold at the end.
    pub(super) fn last_look(&self, model: &Model) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for ((instance, execution, event, attempt), times) in &self.started {
            if *times > self.max_attempts + 1 {
                let text = format!(
                    "activity {event} of {instance}, execution {execution}, try {attempt}, began {times} times with {} attempts",
                    self.max_attempts
                );
                wrong.push(("I9", text));
            }
        }
        for instance in &self.cancelled {
            if model.instances.get(instance).is_some_and(|row| row.status == "Completed") {
                wrong.push(("I13", format!("{instance} completed after a cancel that was accepted")));
            }
        }
        wrong
    }
}
