//! Results that wait a moment for the turn that uses them. It is told the time.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use crate::{commit::queue::Pending, limits, store::commit::CommitItem};

/// The results of one instance.
struct Waiting {
    deadline: Instant,
    results: Vec<Pending>,
}

/// Results in the order they came, by instance.
#[derive(Default)]
pub(super) struct Riders {
    waiting: BTreeMap<String, Waiting>,
    /// When each instance's results go alone. One that is not the deadline of what waits is passed over.
    deadlines: VecDeque<(Instant, String)>,
}

impl Riders {
    /// Adds a result of an instance.
    pub(super) fn put(&mut self, pending: Pending, now: Instant) {
        let Some(instance) = pending.item.instances().first().map(|instance| (*instance).to_owned()) else {
            return;
        };
        let deadline = now + limits::RIDE;
        let waiting = self.waiting.entry(instance.clone()).or_insert_with(|| {
            self.deadlines.push_back((deadline, instance));
            Waiting { deadline, results: Vec::new() }
        });
        waiting.results.push(pending);
    }

    /// The results that this item uses, or that wait for a turn which does not come any more.
    pub(super) fn of(&mut self, item: &CommitItem) -> Vec<Pending> {
        match item {
            CommitItem::Turn(turn) => {
                self.waiting.remove(&turn.instance).map(|waiting| waiting.results).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The results whose turn is late.
    pub(super) fn late(&mut self, now: Instant) -> Vec<Pending> {
        let mut late = Vec::new();
        while self.deadlines.front().is_some_and(|(deadline, _)| *deadline <= now) {
            let Some((deadline, instance)) = self.deadlines.pop_front() else { break };
            if self.waiting.get(&instance).is_some_and(|waiting| waiting.deadline == deadline)
                && let Some(waiting) = self.waiting.remove(&instance)
            {
                late.extend(waiting.results);
            }
        }
        late
    }

    /// How long until the next one is late.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Duration> {
        while let Some((deadline, instance)) = self.deadlines.front() {
            if self.waiting.get(instance).is_some_and(|waiting| waiting.deadline == *deadline) {
                return Some(deadline.saturating_duration_since(now));
            }
            self.deadlines.pop_front();
        }
        None
    }

    /// Takes everything out.
    pub(super) fn drain(&mut self) -> Vec<Pending> {
        self.deadlines.clear();
        std::mem::take(&mut self.waiting).into_values().flat_map(|waiting| waiting.results).collect()
    }
}
