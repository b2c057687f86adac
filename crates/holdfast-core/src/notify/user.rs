//! One who wants to hear hints: a runtime, or the waiters of a provider.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{
    notify::{Bell, Hints, ListenerMode, hubs::HubLease},
    store::{NodeKey, notify::Place},
};

/// Who it is.
pub(super) enum Use {
    Runtime { mode: ListenerMode, claims: Option<Claims> },
    Waiters,
}

impl Use {
    pub(super) fn claims(&self) -> Option<&Claims> {
        match self {
            Self::Runtime { claims, .. } => claims.as_ref(),
            Self::Waiters => None,
        }
    }

    pub(super) fn claims_mut(&mut self) -> Option<&mut Claims> {
        match self {
            Self::Runtime { claims, .. } => claims.as_mut(),
            Self::Waiters => None,
        }
    }
}

/// What hints wake of a runtime.
pub(super) struct Claims {
    pub(super) bell: Weak<Bell>,
    /// The node, under its present epoch.
    pub(super) node: Arc<Mutex<NodeKey>>,
    /// Where it stands among those that listen, and the epoch for which that is known.
    pub(super) place: Option<(i64, Place)>,
}

impl Claims {
    pub(super) fn key(&self) -> NodeKey {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where it stands, if that is known of its present epoch.
    pub(super) fn place(&self) -> Option<Place> {
        let epoch = self.key().epoch;
        self.place.filter(|(known, _)| *known == epoch).map(|(_, place)| place)
    }
}

/// Somebody who wants to hear hints, until it is dropped.
pub struct HintUser {
    hints: Arc<Hints>,
    ticket: u64,
}

impl HintUser {
    pub(super) fn new(hints: &Arc<Hints>, ticket: u64) -> Self {
        Self { hints: Arc::clone(hints), ticket }
    }

    /// From here on hints wake this claimer as often as it is its turn; its node is registered.
    pub fn claims(&self, node: &Arc<Mutex<NodeKey>>, bell: &Arc<Bell>) {
        let new = Claims { bell: Arc::downgrade(bell), node: Arc::clone(node), place: None };
        if let Some(Use::Runtime { claims, .. }) = self.hints.lock().users.get_mut(&self.ticket) {
            *claims = Some(new);
        }
        self.hints.presence.changed();
    }

    /// A heartbeat is about to be sent: the channel to which it sends a hint, when a hub is to be proved alive.
    pub fn begin_proof(&self) -> Option<String> {
        self.hints.adjust();
        if !self.hints.is_listening() {
            return None;
        }
        self.ask_after_a_new_registration();
        let channel = self.lease().as_ref()?.own_channel().to_owned();
        self.hints.lock().proof.sent(self.ticket);
        Some(channel)
    }

    /// It was sent, or not.
    pub fn end_proof(&self, sent: bool) {
        let deaf = {
            let mut state = self.hints.lock();
            if !sent {
                state.proof.not_sent(self.ticket);
            }
            sent && state.proof.is_deaf(self.ticket)
        };
        if deaf {
            self.hints.lock().proof.heard();
            if let Some(lease) = &*self.lease() {
                lease.is_deaf();
            }
        }
    }

    /// Looks for a hub, if there is none yet.
    pub(super) fn adjust(&self) {
        self.hints.adjust();
    }

    /// The row of a new epoch does not say yet that its process listens.
    fn ask_after_a_new_registration(&self) {
        let state = self.hints.lock();
        let claims = state.users.get(&self.ticket).and_then(Use::claims);
        if claims.is_some_and(|claims| claims.place.is_some() && claims.place().is_none()) {
            self.hints.presence.changed();
        }
    }

    fn lease(&self) -> MutexGuard<'_, Option<HubLease>> {
        self.hints.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HintUser {
    fn drop(&mut self) {
        self.hints.lock().users.remove(&self.ticket);
        self.hints.adjust();
    }
}
