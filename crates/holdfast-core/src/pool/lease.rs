//! A session on loan. Giving it back is dropping it.

use std::{fmt, ops::Deref, sync::Arc, time::Instant};

use super::{session::Session, shared::Shared};

/// A session of the pool, held until dropped. A session that is broken, has a call in flight or ran a free-form batch
/// is closed then instead of reused.
pub struct Lease {
    /// Present until `drop`.
    session: Option<Session>,
    place: Place,
}

/// A place in the pool, given back exactly once.
pub(super) struct Place {
    pub(super) pool: Arc<Shared>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pool.leave(Instant::now());
    }
}

impl Lease {
    pub(super) fn new(session: Session, place: Place) -> Self {
        Self { session: Some(session), place }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The session is back before the place is, so the next caller finds it.
        if let Some(session) = self.session.take() {
            self.place.pool.take_back(session);
        }
    }
}

impl Deref for Lease {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("present until the lease is dropped")
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("session", &self.session).finish()
    }
}
