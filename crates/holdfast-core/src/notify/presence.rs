//! Keeps known who else listens: a process that would only tell itself sends no hint, and a hint wakes no more claimers than
//! there is work.
//!
//! It asks when something changed here or somebody else began to listen, and then seldom. An answer that is out of date
//! costs a hint too many, or a poll interval.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::JoinSet};

use crate::{
    clock, limits,
    notify::Hints,
    pool::{CallerClass, Loan, Pool},
    store::{NodeKey, Statements, notify},
    telemetry::unit,
};

/// The task that asks; it ends with this.
pub(super) struct Presence {
    changes: Arc<Changes>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Changes {
    here: Notify,
    elsewhere: Notify,
}

/// What is to be said and asked.
pub(super) struct Question {
    pub(super) own: Vec<NodeKey>,
    pub(super) listens: bool,
}

impl Presence {
    /// Starts the task on the current runtime; nothing is asked before the first change.
    pub(super) fn start(pool: &Arc<Pool>, statements: &Arc<Statements>, hints: Weak<Hints>) -> Self {
        let changes = Arc::new(Changes::default());
        let asking = Asking {
            changes: Arc::clone(&changes),
            pool: Arc::clone(pool),
            statements: Arc::clone(statements),
            hints,
        };
        let mut task = JoinSet::new();
        task.spawn(asking.run());
        Self { changes, _task: task }
    }

    /// Something changed here: asks at once.
    pub(super) fn changed(&self) {
        self.changes.here.notify_one();
    }

    /// Somebody began to listen: asks soon, and not all in the same moment.
    pub(super) fn changed_elsewhere(&self) {
        self.changes.elsewhere.notify_one();
    }
}

struct Asking {
    changes: Arc<Changes>,
    pool: Arc<Pool>,
    statements: Arc<Statements>,
    hints: Weak<Hints>,
}

impl Asking {
    async fn run(self) {
        let mut next: Option<Instant> = None;
        loop {
            let time = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => pending().await,
                }
            };
            let changed = tokio::select! {
                biased;
                () = self.changes.here.notified() => true,
                () = self.changes.elsewhere.notified() => {
                    let soon = clock::now() + limits::PRESENCE_SOON.mul_f64(unit());
                    next = Some(next.map_or(soon, |next| next.min(soon)));
                    continue;
                }
                () = time => false,
            };
            let Some(hints) = self.hints.upgrade() else { return };
            let question = hints.question();
            drop(hints);
            next = match question {
                Some(question) => Some(clock::now() + self.ask(question, changed).await),
                None => None,
            };
        }
    }

    /// Asks; returns how long until the next time.
    async fn ask(&self, question: Question, changed: bool) -> Duration {
        let ask = |session: Loan| {
            let (statements, own) = (&self.statements, &question.own);
            async move { notify::stand(&session, statements, own, question.listens).await }
        };
        match self.pool.run(CallerClass::Ordinary, ask).await {
            Ok(places) => {
                if let Some(hints) = self.hints.upgrade() {
                    hints.placed(&question, &places);
                }
                if changed { limits::PRESENCE_AGAIN } else { limits::PRESENCE_EVERY }
            }
            Err(error) => {
                tracing::debug!(error = %error.full_text(), "who else listens is not known");
                limits::PRESENCE_AGAIN
            }
        }
    }
}
