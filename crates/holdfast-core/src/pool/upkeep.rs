//! Looking after idle sessions: closing those unused for too long, proving the others alive.
//!
//! Invariants: a session being proved holds a place of the gate like one in use, and nobody waits for it to be proved
//! who could have a place; being proved is not being used, so it does not keep a session from being closed.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use super::{
    lease::Place,
    shared::{Idle, Shared},
};
use crate::telemetry::Level;

/// Shortest pause between two rounds: shorter limits are for tests, and need no more precision.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Starts the rounds on the current runtime; they end with the pool. Twice as many rounds as intervals: an act comes
/// between one and one and a half times its interval after the last use.
pub(super) fn start(pool: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let pause = |interval: Duration| (interval / 2).max(SHORTEST_PAUSE);
    let close = close_rounds(Arc::downgrade(pool), pause(pool.config.idle_timeout));
    let prove = prove_rounds(Arc::downgrade(pool), pause(pool.config.keep_alive_interval));
    vec![tokio::spawn(close), tokio::spawn(prove)]
}

async fn close_rounds(pool: Weak<Shared>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.close_idle(Instant::now());
    }
}

async fn prove_rounds(pool: Weak<Shared>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.prove_idle(Instant::now()).await;
    }
}

impl Shared {
    fn close_idle(&self, now: Instant) {
        let mut state = self.state();
        let (dead, kept) =
            state.idle.drain(..).partition(|idle: &Idle| idle.is_over(now, self.config.idle_timeout));
        state.idle = kept;
        drop(state);
        // Sessions close outside the lock.
        self.let_go(dead);
    }

    /// Proves every session that was silent for the interval, all at once; one that does not answer is closed.
    async fn prove_idle(self: &Arc<Self>, now: Instant) {
        let silent = self.take_silent(now);
        futures_util::future::join_all(silent.into_iter().map(|(idle, place)| self.prove(idle, place))).await;
    }

    fn take_silent(self: &Arc<Self>, now: Instant) -> Vec<(Idle, Place)> {
        let mut state = self.state();
        let mut silent = Vec::new();
        let mut kept = Vec::new();
        for idle in std::mem::take(&mut state.idle) {
            let due = now.saturating_duration_since(idle.proved) >= self.config.keep_alive_interval;
            if due && state.gate.enter_if_free() {
                silent.push((idle, Place { pool: Arc::clone(self) }));
            } else {
                kept.push(idle);
            }
        }
        state.idle = kept;
        silent
    }

    async fn prove(&self, mut idle: Idle, place: Place) {
        match idle.session.prove(self.config.connect_timeout).await {
            Ok(()) => idle.proved = Instant::now(),
            Err(error) => {
                let text = format!("an idle connection did not answer and is closed: {}", error.full_text());
                let fields = serde_json::json!({ "code": error.kind().code() });
                self.health.audience.emit("pool-keepalive-failed", Level::Warn, text, fields);
            }
        }
        let mut state = self.state();
        if idle.session.is_reusable() && !state.closed {
            // Before those that were used since: the last used is handed out first.
            state.idle.insert(0, idle);
            drop(state);
        } else {
            drop(state);
            drop(idle);
        }
        // The session is back before the place is, so the next caller finds it.
        drop(place);
    }
}
