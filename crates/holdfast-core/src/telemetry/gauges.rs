//! Depths of the queues as they were seen last. Written by one part, read by anybody, never waited for.

use std::sync::{Mutex, PoisonError};

/// One look at both queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depths {
    /// Turns that somebody could claim.
    pub turns: i64,
    /// Activities that somebody could claim.
    pub activities: i64,
}

/// The last look.
#[derive(Debug, Default)]
pub struct Gauges(Mutex<Option<Depths>>);

impl Gauges {
    /// A look came back.
    pub fn seen(&self, depths: Depths) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(depths);
    }

    /// The last look; `None` before the first.
    pub fn last(&self) -> Option<Depths> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
