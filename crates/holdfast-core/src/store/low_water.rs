//! Low-water marks: how far back in due time a claim looks.
//!
//! Rows that were claimed leave dead entries in the due-time index; behind an old snapshot (a long report, a backup)
//! nobody may remove them, and a claim that starts at the beginning reads them all, every time. So a claim starts
//! where the last one of the same node stopped, less a margin, and every few seconds at the beginning, because a mark
//! is a guess: a row may have been locked, stamped before the mark and committed after it, or not wanted then. A look
//! from the beginning also reads what nobody here wants, however much that is; the longer it takes, the rarer it is.
//! It is told the time and holds no clock of the database: a window's length crosses, never a time.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::store::NodeKey;

/// How much further back than the mark: longer than a commit takes from stamping a row to being seen.
const MARGIN: Duration = Duration::from_secs(2);

/// Time between two looks from the beginning; nothing claimable waits longer than that for its node, unless such a look
/// is slow.
const WHOLE_LOOK_EVERY: Duration = Duration::from_secs(3);

/// A look from the beginning that took long comes again after this many times as long: a foreign backlog of millions costs
/// a twentieth of the time, not all of it.
const WHOLE_LOOK_SHARE: u32 = 20;

/// Longest time between two looks from the beginning.
const WHOLE_LOOK_LONGEST: Duration = Duration::from_secs(60);

/// A window without end, in ms: a hundred years.
const MAX_MS: i64 = 100 * 365 * 24 * 3_600_000;

/// Nodes remembered at most; a process has few, and forgetting one costs a look from the beginning.
const MAX_NODES: usize = 64;

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Queue {
    Turns,
    Activities,
    /// Activities with a tag.
    Tagged,
    /// Activities of sessions.
    InSession,
}

/// The marks of every node that claims in this process.
#[derive(Debug, Default)]
pub(super) struct LowWater {
    marks: Mutex<HashMap<(Queue, NodeKey), Mark>>,
}

/// One claim's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    started: Instant,
    /// How far back; `None` is from the beginning.
    pub(super) back: Option<Duration>,
}

/// Where one node stands in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// Rows due before this were taken, or were not to be had.
    reached: Instant,
    /// When to look from the beginning again.
    whole_look: Instant,
    /// The last look from the beginning took long enough to be a rare one.
    slow: bool,
}

impl Look {
    /// The window's length in whole ms, rounded up.
    pub(super) fn back_ms(self) -> i64 {
        self.back.map_or(MAX_MS, |back| {
            i64::try_from(back.as_millis()).unwrap_or(MAX_MS).saturating_add(1).min(MAX_MS)
        })
    }
}

impl LowWater {
    /// How the claim that starts at `now` is to look.
    pub(super) fn look(&self, queue: Queue, node: &NodeKey, now: Instant) -> Look {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = marks.get(&(queue, node.clone()));
        Look { started: now, back: mark.and_then(|mark| mark.back(now)) }
    }

    /// Whether the last look from the beginning took long.
    pub(super) fn is_slow(&self, queue: Queue, node: &NodeKey) -> bool {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.get(&(queue, node.clone())).is_some_and(|mark| mark.slow)
    }

    /// Notes what a look brought: the shortest time that a row of a full claim had been due, or `None` when the claim
    /// was not full, so that nothing more was to be had.
    pub(super) fn looked(
        &self,
        queue: Queue,
        node: &NodeKey,
        look: Look,
        full: Option<Duration>,
        now: Instant,
    ) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (queue, node.clone());
        match Mark::after(marks.get(&key).copied(), look, full, now) {
            Some(mark) => {
                if marks.len() >= MAX_NODES && !marks.contains_key(&key) {
                    marks.clear();
                }
                marks.insert(key, mark);
            }
            None => {
                marks.remove(&key);
            }
        }
    }
}

impl LowWater {
    /// Forgets every mark.
    #[cfg(any(test, feature = "sim"))]
    pub(super) fn forget(&self) {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A look that is no claim found something: the claim that follows must look as far back.
    pub(super) fn found(&self, queue: Queue, node: &NodeKey, look: Look) {
        if look.back.is_none() {
            self.marks.lock().unwrap_or_else(PoisonError::into_inner).remove(&(queue, node.clone()));
        }
    }
}

impl Mark {
    fn back(self, now: Instant) -> Option<Duration> {
        if now >= self.whole_look {
            return None;
        }
        Some(now.saturating_duration_since(self.reached) + MARGIN)
    }

    fn after(before: Option<Self>, look: Look, full: Option<Duration>, now: Instant) -> Option<Self> {
        let reached = match full {
            None => look.started,
            Some(waited) => look.started.checked_sub(waited)?,
        };
        let (whole_look, slow) = match look.back {
            None => {
                let pause = whole_look_after(now.saturating_duration_since(look.started));
                (look.started + pause, pause > WHOLE_LOOK_EVERY)
            }
            Some(_) => before.map(|mark| (mark.whole_look, mark.slow))?,
        };
        Some(Self { reached, whole_look, slow })
    }
}

/// From one look from the beginning, that took so long, to the next.
fn whole_look_after(took: Duration) -> Duration {
    (took * WHOLE_LOOK_SHARE).clamp(WHOLE_LOOK_EVERY, WHOLE_LOOK_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(epoch: i64) -> NodeKey {
        NodeKey { id: "a".to_owned(), epoch }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn the_first_look_is_from_the_beginning_and_the_next_from_the_mark() {
        let marks = LowWater::default();
        let start = Instant::now();
        let look = marks.look(Queue::Turns, &node(1), start);
        assert_eq!(look.back, None);
        marks.looked(Queue::Turns, &node(1), look, None, look.started);
        assert_eq!(marks.look(Queue::Turns, &node(1), start + seconds(1)).back, Some(seconds(1) + MARGIN));
        assert_eq!(marks.look(Queue::Activities, &node(1), start).back, None, "each queue has its own");
        assert_eq!(marks.look(Queue::Turns, &node(2), start).back, None, "each node has its own");
    }

    #[test]
    fn a_full_claim_leaves_the_mark_at_its_youngest_row() {
        let marks = LowWater::default();
        let start = Instant::now() + seconds(1_000);
        let look = marks.look(Queue::Turns, &node(1), start);
        marks.looked(Queue::Turns, &node(1), look, Some(seconds(100)), look.started);
        let next = marks.look(Queue::Turns, &node(1), start + seconds(1));
        assert_eq!(next.back, Some(seconds(101) + MARGIN));
        marks.looked(Queue::Turns, &node(1), next, Some(seconds(50)), next.started);
        assert_eq!(marks.look(Queue::Turns, &node(1), start + seconds(2)).back, Some(seconds(51) + MARGIN));
    }

    #[test]
    fn every_few_seconds_a_look_is_from_the_beginning() {
        let marks = LowWater::default();
        let start = Instant::now();
        let look = marks.look(Queue::Turns, &node(1), start);
        marks.looked(Queue::Turns, &node(1), look, None, look.started);
        let almost = start + WHOLE_LOOK_EVERY - Duration::from_millis(1);
        let look = marks.look(Queue::Turns, &node(1), almost);
        assert!(look.back.is_some());
        marks.looked(Queue::Turns, &node(1), look, None, look.started);
        let look = marks.look(Queue::Turns, &node(1), start + WHOLE_LOOK_EVERY);
        assert_eq!(look.back, None, "looks from a mark do not put it off");
        marks.looked(Queue::Turns, &node(1), look, None, look.started);
        assert!(marks.look(Queue::Turns, &node(1), start + WHOLE_LOOK_EVERY + seconds(1)).back.is_some());
    }

    #[test]
    fn a_slow_look_from_the_beginning_is_a_rare_one() {
        let marks = LowWater::default();
        let start = Instant::now();
        let look = marks.look(Queue::Turns, &node(1), start);
        marks.looked(Queue::Turns, &node(1), look, None, start + seconds(1));
        assert!(marks.look(Queue::Turns, &node(1), start + seconds(19)).back.is_some());
        assert!(marks.is_slow(Queue::Turns, &node(1)) && !marks.is_slow(Queue::Tagged, &node(1)));
        let near = marks.look(Queue::Turns, &node(1), start + seconds(19));
        marks.looked(Queue::Turns, &node(1), near, None, start + seconds(19));
        assert!(marks.is_slow(Queue::Turns, &node(1)), "a look from the mark says nothing about it");
        let whole = marks.look(Queue::Turns, &node(1), start + seconds(20));
        assert_eq!(whole.back, None);
        marks.looked(Queue::Turns, &node(1), whole, None, whole.started);
        assert!(!marks.is_slow(Queue::Turns, &node(1)));
        assert_eq!(whole_look_after(seconds(30)), WHOLE_LOOK_LONGEST);
    }

    #[test]
    fn a_claim_looks_as_far_back_as_the_look_that_found_something() {
        let marks = LowWater::default();
        let start = Instant::now();
        let whole = marks.look(Queue::Turns, &node(1), start);
        marks.found(Queue::Turns, &node(1), whole);
        let claim = marks.look(Queue::Turns, &node(1), start);
        assert_eq!(claim.back, None);
        marks.looked(Queue::Turns, &node(1), claim, None, start);
        let near = marks.look(Queue::Turns, &node(1), start + seconds(1));
        marks.found(Queue::Turns, &node(1), near);
        assert!(marks.look(Queue::Turns, &node(1), start + seconds(1)).back.is_some());
    }

    #[test]
    fn the_nodes_that_are_remembered_are_bounded() {
        let marks = LowWater::default();
        let now = Instant::now();
        for epoch in 0..1_000 {
            let look = marks.look(Queue::Turns, &node(epoch), now);
            marks.looked(Queue::Turns, &node(epoch), look, None, look.started);
        }
        assert!(marks.marks.lock().expect("not poisoned").len() <= MAX_NODES);
    }
}
