//! What callers and sessions tell the pool about the database: the breaker and the numbers.
//!
//! Invariants: a session counts as lost once, however many calls it took with it; a trial always ends, also when its
//! caller gives up. Judging errors is the class table's business.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde_json::json;

use super::{
    breaker::{Breaker, Pass, Refusal},
    config::PoolConfig,
    tally::Tally,
};
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::{Audience, Level},
};

/// See the module.
pub(super) struct Health {
    pub(super) tally: Tally,
    pub(super) audience: Audience,
    breaker: Mutex<Breaker>,
}

/// The one caller that tries the database while the breaker is open; dropped, it has proved nothing.
pub(super) struct Trial {
    /// Present until it has proved something.
    health: Option<Arc<Health>>,
}

/// A session's place in the numbers, held as long as the session lives.
pub(super) struct Member {
    health: Arc<Health>,
    began: Instant,
    lost: AtomicBool,
}

impl Health {
    pub(super) fn new(config: &PoolConfig) -> Arc<Self> {
        let breaker = Mutex::new(Breaker::new(config.breaker_threshold, config.breaker_open));
        Arc::new(Self { tally: Tally::default(), audience: Audience::default(), breaker })
    }

    /// Refuses while the breaker is open; takes nothing.
    pub(super) fn look(&self, now: Instant) -> Result<()> {
        let looked = self.breaker().look(now);
        looked.map_err(|refusal| self.refuse(refusal))
    }

    /// Refuses while the breaker is open, but for the one trial.
    pub(super) fn enter(self: &Arc<Self>, now: Instant) -> Result<Option<Trial>> {
        let entered = self.breaker().enter(now);
        match entered.map_err(|refusal| self.refuse(refusal))? {
            Pass::Free => Ok(None),
            Pass::Trial => Ok(Some(Trial { health: Some(Arc::clone(self)) })),
        }
    }

    /// A session could not be opened.
    pub(super) fn not_opened(&self, error: &Error) {
        self.tally.connection_errors.add(1);
        match error.kind() {
            ErrorKind::Unavailable => {
                self.change(|breaker| breaker.not_connected(&error.full_text(), Instant::now()));
            }
            ErrorKind::Capacity => self.no_capacity(&error.full_text()),
            _ => {}
        }
    }

    /// The server, or a pooler, has no session left.
    fn no_capacity(&self, cause: &str) {
        self.tally.capacity_rejections.add(1);
        let text = format!("the database has no connection left: {cause}");
        self.audience.emit("pool-capacity-refused", Level::Warn, text, json!({ "cause": cause }));
    }

    /// A session was lost `when`: idle, or checked-out.
    pub(super) fn lost(&self, when: &str, cause: &str) {
        let text = format!("a connection was lost while it was {when}: {cause}");
        self.audience.emit(
            "pool-connection-lost",
            Level::Warn,
            text,
            json!({ "when": when, "cause": cause }),
        );
    }

    /// A caller was refused because too many wait, or it waited too long.
    pub(super) fn saturated(&self, error: &Error, waiting: usize) {
        self.tally.saturation_rejections.add(1);
        self.audience.emit("pool-saturated", Level::Warn, error.full_text(), json!({ "waiting": waiting }));
    }

    /// Changes the breaker and tells when it opened or closed.
    fn change(&self, change: impl FnOnce(&mut Breaker)) {
        let (before, after, cause) = {
            let mut breaker = self.breaker();
            let before = breaker.is_open();
            change(&mut breaker);
            (before, breaker.is_open(), breaker.last_cause().to_owned())
        };
        match (before, after) {
            (false, true) => {
                let text = format!("the database cannot be reached, calls are refused at once: {cause}");
                self.audience.emit("pool-breaker-opened", Level::Error, text, json!({ "cause": cause }));
            }
            (true, false) => {
                let text = "the database can be reached again";
                self.audience.emit("pool-breaker-closed", Level::Info, text, json!({}));
            }
            _ => {}
        }
    }

    pub(super) fn breaker_is_open(&self) -> bool {
        self.breaker().is_open()
    }

    fn refuse(&self, refusal: Refusal) -> Error {
        self.tally.breaker_rejections.add(1);
        let Refusal { failures, cause, retry_after } = refusal;
        let text =
            format!("the database could not be reached {failures} times in a row, the last time: {cause}");
        Error::new(ErrorKind::CircuitOpen, text).retry_after(retry_after)
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trial {
    /// How the trial ended. Only a connection error is a failure; any other error says nothing about the way to the
    /// database, and gives the trial to the next caller.
    pub(super) fn ended<T>(mut self, outcome: &Result<T>) {
        match outcome {
            Ok(_) => {
                if let Some(health) = self.health.take() {
                    health.change(Breaker::trial_succeeded);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout) => {
                if let Some(health) = self.health.take() {
                    health.change(|breaker| breaker.trial_failed(&error.full_text(), Instant::now()));
                }
            }
            Err(_) => {}
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(health) = &self.health {
            health.breaker().trial_given_back(Instant::now());
        }
    }
}

impl Member {
    /// A session is about to be opened.
    pub(super) fn new(health: &Arc<Health>) -> Self {
        health.tally.session_opens();
        Self { health: Arc::clone(health), began: Instant::now(), lost: AtomicBool::new(false) }
    }

    /// A call was answered.
    pub(super) fn answered(&self) {
        self.health.breaker().answered();
    }

    /// A call failed with an error of this kind; `describe` gives its text.
    pub(super) fn failed(&self, kind: ErrorKind, describe: impl FnOnce() -> String) {
        match kind {
            ErrorKind::Unavailable if self.lost.swap(true, Ordering::AcqRel) => {}
            ErrorKind::Unavailable => {
                self.health.tally.connection_errors.add(1);
                let cause = describe();
                self.health.lost("checked-out", &cause);
                self.health.change(|breaker| breaker.session_lost(&cause, self.began, Instant::now()));
            }
            ErrorKind::Capacity => self.health.no_capacity(&describe()),
            ErrorKind::Query => {
                self.health.tally.query_errors.add(1);
                self.answered();
            }
            ErrorKind::Conflict => self.answered(),
            _ => {}
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.health.tally.session_closed();
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("lost", &self.lost).finish()
    }
}
