//! One line for each operation of the pool: where its time went, and how it ended.
//!
//! Lines go to the target `holdfast::pool`, at the level `trace`. While nobody asks for them an operation costs one comparison
//! more. It decides nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tracing::Level;

use super::{gate::CallerClass, session::Session};
use crate::error::Error;

const TARGET: &str = "holdfast::pool";

/// Calls of a session, and the time that they took.
#[derive(Debug, Default)]
pub(super) struct Usage {
    calls: AtomicU64,
    micros: AtomicU64,
}

impl Usage {
    /// A call has ended, whatever came of it.
    pub(super) fn add(&self, took: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.micros.load(Ordering::Relaxed))
    }
}

/// How far an operation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waited for its place.
    Admission,
    /// It had a place and wanted a session.
    Connection,
    /// It had a session.
    Operation,
}

/// One operation.
pub(super) struct Trace(Option<Box<Started>>);

struct Started {
    class: CallerClass,
    asked: Instant,
    attempt: u32,
    admitted: Option<Instant>,
    lent: Option<Lent>,
}

struct Lent {
    at: Instant,
    usage: Arc<Usage>,
    before: (u64, u64),
}

impl Trace {
    /// A caller asks for a session.
    pub(super) fn begin(class: CallerClass) -> Self {
        let heard = tracing::enabled!(target: TARGET, Level::TRACE);
        let started =
            || Box::new(Started { class, asked: Instant::now(), attempt: 1, admitted: None, lent: None });
        Self(heard.then(started))
    }

    /// It has its place.
    pub(super) fn admitted(&mut self) {
        if let Some(started) = &mut self.0 {
            started.admitted = Some(Instant::now());
        }
    }

    /// It has a session.
    pub(super) fn lent(&mut self, session: &Session) {
        if let Some(started) = &mut self.0 {
            let usage = Arc::clone(session.usage());
            let before = usage.read();
            started.lent = Some(Lent { at: Instant::now(), usage, before });
        }
    }

    /// It is run again.
    pub(super) fn again(&mut self) {
        if let Some(started) = &mut self.0 {
            started.attempt += 1;
            started.lent = None;
        }
    }

    /// This run has ended.
    pub(super) fn ended(&self, outcome: Result<(), &Error>) {
        self.tell(outcome.map_or_else(|error| error.kind().code(), |()| "ok"));
    }

    /// The session is given back by a caller who keeps the outcome to itself.
    pub(super) fn given_back(&self, whole: bool) {
        self.tell(if whole { "ok" } else { "lost" });
    }

    fn tell(&self, outcome: &str) {
        let Some(started) = &self.0 else { return };
        let now = Instant::now();
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let (phase, admitted) = match (&started.lent, started.admitted) {
            (Some(_), Some(admitted)) => (Phase::Operation, admitted),
            (_, Some(admitted)) => (Phase::Connection, admitted),
            (_, None) => (Phase::Admission, now),
        };
        let lent_at = started.lent.as_ref().map_or(now, |lent| lent.at);
        let (calls, micros) = started.lent.as_ref().map_or((0, 0), |lent| {
            let (calls, micros) = lent.usage.read();
            (calls - lent.before.0, micros - lent.before.1)
        });
        tracing::trace!(
            target: TARGET,
            phase = ?phase,
            outcome,
            attempt = started.attempt,
            priority = ?started.class,
            admission_ms = ms(admitted - started.asked),
            acquire_ms = ms(lent_at - admitted),
            queries = calls,
            query_ms = ms(Duration::from_micros(micros)),
            total_ms = ms(now - started.asked),
            "pool operation"
        );
    }
}
