//! Calls that JavaScript may give up: a ticket is taken before the call, and fired when its signal is aborted.
//!
//! Invariants: a ticket that fires before its call begins ends it all the same; a call that ends takes its ticket along. A
//! call that is given up is dropped, which leaves queues and breaks the session it was on.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdfast_core::error::{Error, ErrorKind, Result};
use tokio::sync::Notify;

/// The tickets of one client.
#[derive(Default)]
pub(crate) struct Tickets {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u32,
    by_number: HashMap<u32, Arc<Notify>>,
}

impl Tickets {
    /// A ticket for one call, which must follow.
    pub(crate) fn take(&self) -> u32 {
        let mut open = self.lock();
        open.last = open.last.wrapping_add(1);
        let number = open.last;
        open.by_number.insert(number, Arc::default());
        number
    }

    /// Gives up the call with this ticket; nothing when it has ended.
    pub(crate) fn fire(&self, number: u32) {
        if let Some(told) = self.lock().by_number.get(&number) {
            told.notify_one();
        }
    }

    /// Runs a call until it ends or its ticket is fired; without a ticket to its end.
    pub(crate) fn run<T>(
        &self,
        number: Option<u32>,
        call: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        // Boxed, because what an async function is given and awaits it holds twice.
        self.run_boxed(number, Box::pin(call))
    }

    async fn run_boxed<T, F>(&self, number: Option<u32>, call: Pin<Box<F>>) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let Some(number) = number else { return call.await };
        let Some(told) = self.lock().by_number.get(&number).map(Arc::clone) else {
            return Err(Error::new(ErrorKind::Internal, format!("no ticket {number}")));
        };
        let _ended = Ended { tickets: self, number };
        tokio::select! {
            biased;
            () = told.notified() => Err(Error::new(ErrorKind::Closed, "the call was given up")),
            outcome = call => outcome,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ended<'a> {
    tickets: &'a Tickets,
    number: u32,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.tickets.lock().by_number.remove(&self.number);
    }
}
