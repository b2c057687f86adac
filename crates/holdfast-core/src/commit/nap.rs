//! A worker's rest after a batch.
//!
//! In it a result that is to wait for its turn need not wake the worker, which looks again before the result is late. It lasts
//! over the batches that come meanwhile, because a timer for each would cost more than the wake.

use std::{future::pending, pin::Pin};

use tokio::time::Sleep;

use crate::limits;

/// See the module.
#[derive(Default)]
pub(super) struct Nap(Option<Pin<Box<Sleep>>>);

impl Nap {
    /// Begins unless it lasts.
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep(limits::RIDE)));
    }

    /// Whether results have to wake the worker.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_none()
    }

    /// Waits for its end; for ever when it is over.
    pub(super) async fn end(&mut self) {
        match &mut self.0 {
            Some(sleep) => sleep.await,
            None => pending().await,
        }
        self.0 = None;
    }
}
