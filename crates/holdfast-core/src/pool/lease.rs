//! A session on loan. Giving it back is dropping it.

use std::{fmt, ops::Deref, sync::Arc, time::Instant};

use super::{session::Session, shared::Shared, trace::Trace};

/// A session of the pool, held until dropped. A session that is broken, has a call in flight or ran a free-form batch
/// is closed then instead of reused.
pub struct Lease {
    // Dropped in this order: the session is back before the place is, so the next caller finds it.
    loan: Loan,
    _place: Place,
    trace: Trace,
}

/// A session on loan to one run of an operation, see [`super::Pool::run`]; like a lease but for the place in the pool,
/// which the operation keeps through all its runs.
pub struct Loan {
    /// Present until `drop`.
    session: Option<Session>,
    pool: Arc<Shared>,
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
    pub(super) fn new(loan: Loan, place: Place, trace: Trace) -> Self {
        Self { loan, _place: place, trace }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.trace.given_back(!self.loan.is_broken());
    }
}

impl Loan {
    pub(super) fn new(session: Session, pool: &Arc<Shared>) -> Self {
        Self { session: Some(session), pool: Arc::clone(pool) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.pool.take_back(session);
        }
    }
}

impl Deref for Loan {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("present until the loan is dropped")
    }
}

impl Deref for Lease {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.loan
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("session", &self.loan.session).finish()
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("session", &self.session).finish()
    }
}
