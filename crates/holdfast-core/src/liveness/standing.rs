//! What this node may do at this moment: as its own heartbeats, the JavaScript loop and the engine's parts tell.
//!
//! The liveness thread writes it; the claimer, the crossing and `health` read it. Invariant: it is asked with `now`, so it is
//! right also when the thread that should have noticed did not run, as after a suspend. It never waits.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{clock::Moment, config::EngineConfig, limits, liveness::LoopState};

/// What may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claiming {
    /// Every due row.
    All,
    /// Rows without an owner: after an outage the others first get the time to renew what they hold.
    Unowned,
    /// Nothing: the node fenced itself, or could not run what it claims.
    Nothing,
}

/// The standing of one node.
#[derive(Debug)]
pub(crate) struct Standing {
    /// How long rows of others are left alone after a failure.
    caution: Duration,
    /// From sending the last successful heartbeat until the node fences itself.
    fence_after: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cautious_until: Option<Moment>,
    /// When the last successful heartbeat was sent; none before the node is registered.
    heard: Option<Moment>,
    unreachable: bool,
    /// Somebody was told to start nothing since the node was heard last.
    held_back: bool,
    event_loop: LoopState,
    /// A part of the engine that makes no progress.
    stuck: Option<&'static str>,
}

impl Standing {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let caution = config.lease.orchestrator_lock_timeout.max(limits::CAUTION_AFTER_OUTAGE);
        Self { caution, fence_after: config.liveness.fence_after(), state: Mutex::default() }
    }

    /// A heartbeat, or a registration, sent at this moment succeeded. True: until then somebody was told that the node is
    /// fenced, for however short a time, and is to ask again.
    pub(crate) fn heard(&self, sent: Moment) -> bool {
        let mut state = self.lock();
        state.heard = Some(sent);
        state.unreachable = false;
        std::mem::take(&mut state.held_back)
    }

    /// A heartbeat or a renewal failed, or the way to the database did.
    pub(crate) fn failed(&self, now: Moment) {
        let mut state = self.lock();
        state.cautious_until = Some(now.plus(self.caution));
        state.unreachable = true;
    }

    /// How the JavaScript loop does.
    pub(crate) fn set_event_loop(&self, to: LoopState) {
        self.lock().event_loop = to;
    }

    /// Which part makes no progress.
    pub(crate) fn set_stuck(&self, part: Option<&'static str>) {
        self.lock().stuck = part;
    }

    /// What may be claimed now.
    pub(crate) fn claiming(&self, now: Moment) -> Claiming {
        let mut state = self.lock();
        if self.is_fenced(&mut state, now) || state.event_loop != LoopState::Healthy || state.stuck.is_some()
        {
            return Claiming::Nothing;
        }
        match state.cautious_until {
            Some(until) if now < until => Claiming::Unowned,
            _ => Claiming::All,
        }
    }

    /// Whether the others may take this node's work over soon: nothing new is started.
    pub(crate) fn fenced(&self, now: Moment) -> bool {
        self.is_fenced(&mut self.lock(), now)
    }

    /// Time since the last successful heartbeat was sent.
    pub(crate) fn heartbeat_age(&self, now: Moment) -> Option<Duration> {
        self.lock().heard.map(|heard| now.since(heard))
    }

    /// Whether the last call on the liveness session succeeded.
    pub(crate) fn reachable(&self) -> bool {
        let state = self.lock();
        state.heard.is_some() && !state.unreachable
    }

    /// How the JavaScript loop does.
    pub(crate) fn event_loop(&self) -> LoopState {
        self.lock().event_loop
    }

    /// The part that makes no progress.
    pub(crate) fn stuck(&self) -> Option<&'static str> {
        self.lock().stuck
    }

    fn is_fenced(&self, state: &mut State, now: Moment) -> bool {
        let fenced = state.heard.is_some_and(|heard| now.since(heard) >= self.fence_after);
        state.held_back |= fenced;
        fenced
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn standing(change: impl FnOnce(&mut EngineConfig)) -> Standing {
        let mut config = EngineConfig::default();
        change(&mut config);
        Standing::new(&config)
    }

    #[test]
    fn after_a_failure_rows_of_others_are_left_alone_for_five_seconds() {
        let standing = standing(|config| config.lease.orchestrator_lock_timeout = SECOND);
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
        let standing = standing(|config| config.lease.orchestrator_lock_timeout = 20 * SECOND);
        let start = Moment::now();
        standing.failed(start);
        assert_eq!(standing.claiming(start.plus(19 * SECOND)), Claiming::Unowned);
        assert_eq!(standing.claiming(start.plus(20 * SECOND)), Claiming::All);
    }

    #[test]
    fn a_node_fences_itself_two_intervals_before_it_is_stale() {
        let standing = standing(|_| {});
        let start = Moment::now();
        standing.heard(start);
        assert!(!standing.fenced(start.plus(19 * SECOND)));
        assert!(standing.fenced(start.plus(20 * SECOND)));
        assert_eq!(standing.claiming(start.plus(20 * SECOND)), Claiming::Nothing);
        standing.heard(start.plus(21 * SECOND));
        assert!(!standing.fenced(start.plus(22 * SECOND)), "heard again");
    }

    #[test]
    fn who_was_held_back_by_a_fence_asks_again_once_the_node_is_heard() {
        let standing = standing(|_| {});
        let start = Moment::now();
        assert!(!standing.heard(start), "nobody asked");
        assert!(!standing.fenced(start.plus(19 * SECOND)));
        assert!(!standing.heard(start.plus(SECOND)), "whoever asked was let through");
        assert!(standing.fenced(start.plus(21 * SECOND)));
        assert!(standing.heard(start.plus(20 * SECOND)), "a fence that nobody else may have noticed");
        assert_eq!(standing.claiming(start.plus(40 * SECOND)), Claiming::Nothing);
        assert!(standing.heard(start.plus(40 * SECOND)));
        assert!(!standing.heard(start.plus(41 * SECOND)), "it was told once");
    }

    #[test]
    fn the_margin_is_an_option_and_an_explicit_id_fences_itself_after_two_intervals() {
        let start = Moment::now();
        let wide = standing(|config| config.liveness.self_fence_margin = Some(15 * SECOND));
        wide.heard(start);
        assert!(!wide.fenced(start.plus(14 * SECOND)) && wide.fenced(start.plus(15 * SECOND)));
        let explicit = standing(|config| config.liveness.worker_node_id = Some("worker-1".to_owned()));
        explicit.heard(start);
        assert!(!explicit.fenced(start.plus(9 * SECOND)) && explicit.fenced(start.plus(10 * SECOND)));
    }

    #[test]
    fn a_loop_or_a_part_that_stands_still_claims_nothing() {
        let standing = standing(|_| {});
        let now = Moment::now();
        standing.heard(now);
        standing.set_event_loop(LoopState::Stalled);
        assert_eq!(standing.claiming(now), Claiming::Nothing);
        standing.set_event_loop(LoopState::Healthy);
        standing.set_stuck(Some("committer"));
        assert_eq!(standing.claiming(now), Claiming::Nothing);
        standing.set_stuck(None);
        assert_eq!(standing.claiming(now), Claiming::All);
    }
}
