//! The look that heartbeats take along for a claimer that sleeps.
//!
//! Invariants: a claimer that is awake wants none; it hears the answer to what it wants and to nothing that it wanted before.
//! A heartbeat that fails, or takes nothing along, brings nothing: the claimer's own sleep ends all the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::store::look::{Due, LookOrder};

/// Between the claimer and the heartbeats of one runtime.
#[derive(Debug, Default)]
pub(crate) struct LookAlong {
    state: Mutex<State>,
    told: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Of the wishes so far, so that an answer finds its own.
    number: u64,
    wish: Option<Arc<LookOrder>>,
    due: Option<Due>,
}

/// What a heartbeat looks for, and for which wish.
pub(super) struct Wished {
    number: u64,
    pub(super) order: Arc<LookOrder>,
}

/// A claimer sleeps; dropped when it wakes up.
pub(crate) struct Wish<'a>(&'a LookAlong);

impl LookAlong {
    /// The next heartbeats look for this as well.
    pub(crate) fn wish(&self, order: LookOrder) -> Wish<'_> {
        let mut state = self.lock();
        *state = State { number: state.number + 1, wish: Some(Arc::new(order)), due: None };
        Wish(self)
    }

    /// What is wanted now.
    pub(super) fn wished(&self) -> Option<Wished> {
        let state = self.lock();
        state.wish.as_ref().map(|order| Wished { number: state.number, order: Arc::clone(order) })
    }

    /// What the look found.
    pub(super) fn bring(&self, wished: &Wished, due: Due) {
        let mut state = self.lock();
        if state.wish.is_some() && state.number == wished.number {
            state.due = Some(due);
            self.told.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wish<'_> {
    /// Waits for what a heartbeat's look finds. Dropping the future loses nothing.
    pub(crate) async fn answer(&self) -> Due {
        loop {
            let found = self.0.lock().due.take();
            match found {
                Some(due) => return due,
                None => self.0.told.notified().await,
            }
        }
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        self.0.lock().wish = None;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::store::{TagFilter, replay_version::ReplayRange};

    fn order(name: &str) -> LookOrder {
        LookOrder {
            names: vec![name.to_owned()],
            handlers: Vec::new(),
            activities: Vec::new(),
            tags: TagFilter::default_only(),
            new_sessions: false,
            replay: ReplayRange::ALL,
        }
    }

    fn due(turns: bool) -> Due {
        Due {
            turns,
            turn_suspects: false,
            activities: false,
            activity_suspects: false,
            tagged: false,
            in_session: false,
            next: None,
        }
    }

    #[test]
    fn heartbeats_look_while_the_claimer_sleeps_and_it_hears_each_answer() {
        let along = LookAlong::default();
        assert!(along.wished().is_none());
        let wish = along.wish(order("a"));
        assert_eq!(wish.answer().now_or_never(), None);
        for found in [true, false] {
            let wished = along.wished().expect("it sleeps");
            assert_eq!(wished.order.names, ["a"]);
            along.bring(&wished, due(found));
            assert_eq!(wish.answer().now_or_never(), Some(due(found)));
        }
        drop(wish);
        assert!(along.wished().is_none(), "it is awake");
    }

    #[test]
    fn an_answer_to_what_was_wanted_before_is_not_heard() {
        let along = LookAlong::default();
        let wish = along.wish(order("a"));
        let before = along.wished().expect("it sleeps");
        drop(wish);
        along.bring(&before, due(true));
        let wish = along.wish(order("b"));
        along.bring(&before, due(true));
        assert_eq!(wish.answer().now_or_never(), None);
        along.bring(&along.wished().expect("it sleeps"), due(false));
        assert_eq!(wish.answer().now_or_never(), Some(due(false)));
    }
}
