//! What this node may do at this moment, as its own heartbeats tell. The liveness thread writes it; the claimer reads it.
//!
//! Invariant: it is asked with `now`, so it is right also when the thread that should have noticed did not run. It never
//! waits.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{clock::Moment, config::EngineConfig, limits};

/// What may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claiming {
    /// Every due row.
    All,
    /// Rows without an owner: after an outage the others first get the time to renew what they hold.
    Unowned,
}

/// The standing of one node.
#[derive(Debug)]
pub(crate) struct Standing {
    /// How long rows of others are left alone after a failure.
    caution: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cautious_until: Option<Moment>,
}

impl Standing {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let caution = config.lease.orchestrator_lock_timeout.max(limits::CAUTION_AFTER_OUTAGE);
        Self { caution, state: Mutex::default() }
    }

    /// A heartbeat or a renewal failed, or the way to the database did.
    pub(crate) fn failed(&self, now: Moment) {
        self.lock().cautious_until = Some(now.plus(self.caution));
    }

    /// What may be claimed now.
    pub(crate) fn claiming(&self, now: Moment) -> Claiming {
        match self.lock().cautious_until {
            Some(until) if now < until => Claiming::Unowned,
            _ => Claiming::All,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn standing(turn_timeout: Duration) -> Standing {
        let mut config = EngineConfig::default();
        config.lease.orchestrator_lock_timeout = turn_timeout;
        Standing::new(&config)
    }

    #[test]
    fn after_a_failure_rows_of_others_are_left_alone_for_five_seconds() {
        let standing = standing(SECOND);
        let start = Moment::now();
        assert_eq!(standing.claiming(start), Claiming::All);
        standing.failed(start);
        assert_eq!(standing.claiming(start.plus(4 * SECOND)), Claiming::Unowned);
        standing.failed(start.plus(4 * SECOND));
        assert_eq!(standing.claiming(start.plus(8 * SECOND)), Claiming::Unowned);
        assert_eq!(standing.claiming(start.plus(9 * SECOND)), Claiming::All);
    }

    #[test]
    fn a_turn_lease_longer_than_that_counts_instead() {
        let standing = standing(20 * SECOND);
        let start = Moment::now();
        standing.failed(start);
        assert_eq!(standing.claiming(start.plus(19 * SECOND)), Claiming::Unowned);
        assert_eq!(standing.claiming(start.plus(20 * SECOND)), Claiming::All);
    }
}
