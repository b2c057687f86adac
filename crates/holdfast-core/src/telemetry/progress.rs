//! Signs of life of one part of the engine, for the watch over it. Giving one costs two atomic stores.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The progress of one part.
#[derive(Debug)]
pub struct Progress {
    /// Its name, in events.
    pub part: &'static str,
    /// How long it may wait for others, as for the database, before the time counts.
    pub patience: Duration,
    count: AtomicU64,
    busy: AtomicBool,
}

impl Progress {
    /// A part that has nothing to do yet.
    pub fn new(part: &'static str, patience: Duration) -> Self {
        Self { part, patience, count: AtomicU64::new(0), busy: AtomicBool::new(false) }
    }

    /// It has something to do, and made a step.
    pub fn step(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.busy.store(true, Ordering::Relaxed);
    }

    /// It waits for something to do.
    pub fn idle(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Steps so far; `None` while it has nothing to do.
    pub fn steps(&self) -> Option<u64> {
        self.busy.load(Ordering::Relaxed).then(|| self.count.load(Ordering::Relaxed))
    }
}
