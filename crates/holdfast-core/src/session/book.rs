//! Which sessions have activities in progress here, and when their leases are to be renewed. Told `now`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::lease::LeaseTimes;

/// Limits of the sessions of one runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    /// Lease of a session.
    pub(crate) lease: LeaseTimes,
    /// Sessions with activities in progress at once.
    pub(crate) most: usize,
    /// Time between two sweeps of ended sessions.
    pub(crate) sweep_every: Duration,
}

/// The sessions of one runtime.
#[derive(Debug)]
pub(crate) struct SessionBook {
    limits: SessionLimits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Activities in progress for each session.
    in_use: BTreeMap<String, usize>,
    /// The next renewal, while this node may own a session.
    renew_at: Option<Instant>,
    sweep_at: Instant,
}

impl SessionBook {
    pub(crate) fn new(limits: SessionLimits, now: Instant) -> Self {
        let state = State { in_use: BTreeMap::new(), renew_at: None, sweep_at: now + limits.sweep_every };
        Self { limits, state: Mutex::new(state) }
    }

    /// An activity of a session was claimed; `asked_at` is the time before the claim was sent.
    pub(crate) fn begin(&self, session: &str, asked_at: Instant) {
        let renew_at = asked_at + self.limits.lease.first_try();
        let mut state = self.lock();
        *state.in_use.entry(session.to_owned()).or_default() += 1;
        state.renew_at = Some(state.renew_at.map_or(renew_at, |set| set.min(renew_at)));
    }

    /// An activity of a session is not in progress any more.
    pub(crate) fn end(&self, session: &str) {
        let mut state = self.lock();
        if let Some(count) = state.in_use.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                state.in_use.remove(session);
            }
        }
    }

    /// Sessions that may be taken beside the ones owned.
    pub(crate) fn room(&self) -> usize {
        self.limits.most.saturating_sub(self.lock().in_use.len())
    }

    /// Sessions in use, if it is time to renew; the next try is set, so that a lost answer is tried again.
    pub(crate) fn due(&self, now: Instant) -> Option<Vec<String>> {
        let mut state = self.lock();
        if state.renew_at.is_none_or(|at| at > now) {
            return None;
        }
        state.renew_at = Some(now + self.limits.lease.later_tries());
        Some(state.in_use.keys().cloned().collect())
    }

    /// A renewal sent at `asked_at` found so many sessions of this node. With none there is nothing more to renew until one
    /// is claimed.
    pub(crate) fn renewed(&self, found: usize, asked_at: Instant) {
        let mut state = self.lock();
        let goes_on = found > 0 || !state.in_use.is_empty();
        state.renew_at = goes_on.then(|| asked_at + self.limits.lease.first_try());
    }

    /// Whether ended sessions are to be swept.
    pub(crate) fn sweep_due(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let due = state.sweep_at <= now;
        if due {
            state.sweep_at = now + self.limits.sweep_every;
        }
        due
    }

    /// When ended sessions are to be swept next.
    pub(crate) fn next_sweep(&self) -> Instant {
        self.lock().sweep_at
    }

    /// When something is to be renewed next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.lock().renew_at
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn book(now: Instant) -> SessionBook {
        let lease = LeaseTimes { timeout: 30 * SECOND, buffer: 10 * SECOND };
        SessionBook::new(SessionLimits { lease, most: 2, sweep_every: 60 * SECOND }, now)
    }

    #[test]
    fn only_sessions_in_use_count_against_the_limit() {
        let now = Instant::now();
        let book = book(now);
        book.begin("a", now);
        book.begin("a", now);
        assert_eq!(book.room(), 1);
        book.begin("b", now);
        book.end("a");
        assert_eq!(book.room(), 0);
        book.end("a");
        book.end("b");
        assert_eq!(book.room(), 2);
    }

    #[test]
    fn renewals_go_on_while_a_session_is_owned_and_name_those_in_use() {
        let now = Instant::now();
        let book = book(now);
        assert_eq!(book.due(now + 100 * SECOND), None, "nothing was ever claimed");
        book.begin("a", now);
        assert_eq!(book.next_due(), Some(now + 20 * SECOND));
        assert_eq!(book.due(now + 20 * SECOND), Some(vec!["a".to_owned()]));
        book.renewed(1, now + 20 * SECOND);
        book.end("a");
        assert_eq!(book.due(now + 40 * SECOND), Some(Vec::new()), "owned, not in use");
        book.renewed(0, now + 40 * SECOND);
        assert_eq!(book.next_due(), None, "its idle time is over");
    }

    #[test]
    fn sweeps_come_at_their_interval() {
        let now = Instant::now();
        let book = book(now);
        assert_eq!(book.next_sweep(), now + 60 * SECOND);
        assert!(!book.sweep_due(now + 59 * SECOND));
        assert!(book.sweep_due(now + 60 * SECOND));
        assert!(!book.sweep_due(now + 61 * SECOND));
        assert_eq!(book.next_sweep(), now + 120 * SECOND);
    }
}
