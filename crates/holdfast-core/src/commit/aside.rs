//! Items set aside because somebody else has locked a row that they write: they must not hold up the others.
//!
//! It is told the time. An item that touches an instance of which something is aside goes there too, so that messages
//! keep their order.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use crate::{commit::queue::Pending, limits};

/// An item and since when it is aside.
pub(super) struct Held {
    pub(super) since: Instant,
    pub(super) pending: Pending,
}

/// The items that are aside, in order.
#[derive(Default)]
pub(super) struct Aside {
    held: Vec<Held>,
    next_look: Option<Instant>,
}

impl Aside {
    /// Sets items aside; the next look at their rows is a pause from now.
    pub(super) fn put(&mut self, held: impl IntoIterator<Item = Held>, now: Instant) {
        self.held.extend(held);
        self.next_look = (!self.held.is_empty()).then(|| now + limits::LOCKED_LOOK_EVERY);
    }

    /// Sets one more aside, to be looked at with the others.
    pub(super) fn join(&mut self, held: Held) {
        self.held.push(held);
    }

    /// How long until the next look; `None` when nothing is aside.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        self.next_look.map(|look| look.saturating_duration_since(now))
    }

    /// Takes everything out if it is time to look.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Held> {
        if self.pause(now).is_none_or(|pause| !pause.is_zero()) {
            return Vec::new();
        }
        self.next_look = None;
        std::mem::take(&mut self.held)
    }

    /// Takes everything out.
    pub(super) fn drain(&mut self) -> Vec<Pending> {
        self.next_look = None;
        self.held.drain(..).map(|held| held.pending).collect()
    }

    /// The instances that what is aside touches.
    pub(super) fn instances(&self) -> HashSet<String> {
        let all = self.held.iter().flat_map(|held| held.pending.item.instances());
        all.map(str::to_owned).collect()
    }

    /// Whether nothing is aside.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::commit::queue::{
        Queue,
        tests::{names, send},
    };

    #[test]
    fn what_is_aside_comes_back_after_a_pause_in_its_order_and_holds_up_no_other() {
        let queue = Arc::new(Queue::new(16, 16));
        let now = Instant::now();
        queue.put_aside(vec![Held { since: now, pending: send("a") }], now);
        for instance in ["b", "a", "c"] {
            assert!(queue.push(send(instance)).is_ok());
        }
        assert_eq!(names(&queue.take(now).take_items()), ["b", "c"]);
        assert!(queue.take_aside(now).is_empty());
        let later = now + limits::LOCKED_LOOK_EVERY;
        let back: Vec<Pending> = queue.take_aside(later).into_iter().map(|held| held.pending).collect();
        assert_eq!(names(&back), ["a", "a"]);
        queue.push_front(back);
        assert_eq!(names(&queue.take(later).take_items()), ["a", "a"]);
    }
}
