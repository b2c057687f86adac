//! Named points at which a test can make this process die, as a power cut would.
//!
//! `HOLDFAST_CRASH_AT=name` or `name:n` (the n-th time) arms one point; without it a hit costs two atomic loads. The
//! process is killed by an abort, so that nothing is flushed, released or said goodbye to. `HOLDFAST_PANIC_AT` arms one in the
//! same way that panics instead: the part of the engine that hits it has to be started again. At the one of `HOLDFAST_STALL_AT`
//! the part stands still for ever, its thread with it; `HOLDFAST_TEST_PATIENCE_MS` says how long parts may wait for others
//! before that counts, because no test waits as long as they may.
//!
//! `HOLDFAST_TEST_EVICT_PERCENT=50` makes runtimes that start then forget about half of their live frames, so that warm
//! and cold turns mix at random.
//!
//! `HOLDFAST_TEST_DROP_TURNS_OF=prefix` is the other fault that tests need: what such instances decide never reaches its
//! commit, as if every try of it were lost.

use std::{
    process,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

struct Armed {
    name: String,
    left: AtomicU32,
}

static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
static PANICS: OnceLock<Option<Armed>> = OnceLock::new();
static STALLS: OnceLock<Option<Armed>> = OnceLock::new();

/// Every point there is, in the order of a step's life; the crash tests go through this list.
pub const POINTS: &[&str] = &[
    "node.register.before",
    "node.register.after",
    "heartbeat.before",
    "heartbeat.after",
    "renew.before",
    "renew.after",
    "claim.turns.before",
    "claim.turns.after",
    "claim.activities.before",
    "claim.activities.after",
    "turn.load.before",
    "turn.load.after",
    "turn.activate.before",
    "turn.activate.after",
    "crossing.next.before",
    "crossing.next.after",
    "crossing.complete.before",
    "crossing.complete.after",
    "turn.match.before",
    "turn.match.after",
    "turn.submit.before",
    "turn.submit.after",
    "turn.settled.before",
    "turn.settled.after",
    "activity.start.before",
    "activity.start.after",
    "activity.result.before",
    "activity.result.after",
    "activity.submit.before",
    "activity.submit.after",
    "activity.settled.before",
    "activity.settled.after",
    "commit.batch.before",
    "commit.batch.after",
    "commit.outcome.before",
    "commit.outcome.after",
    "release.before",
    "release.after",
    "goodbye.before",
    "goodbye.after",
];

/// Dies, panics or stands still here when this point is armed and its turn has come.
pub fn hit(point: &'static str) {
    debug_assert!(POINTS.contains(&point), "unknown point {point}");
    if comes(&ARMED, "HOLDFAST_CRASH_AT", point) {
        process::abort();
    }
    assert!(!comes(&PANICS, "HOLDFAST_PANIC_AT", point), "failpoint {point}");
    if comes(&STALLS, "HOLDFAST_STALL_AT", point) {
        loop {
            thread::park();
        }
    }
}

/// How long a part may wait for others before it counts as standing still: what a test wants, or the usual time.
pub fn patience(usual: Duration) -> Duration {
    let wanted = std::env::var("HOLDFAST_TEST_PATIENCE_MS").ok().and_then(|text| text.parse().ok());
    wanted.map_or(usual, Duration::from_millis)
}

fn comes(armed: &OnceLock<Option<Armed>>, variable: &str, point: &str) -> bool {
    let armed = armed.get_or_init(|| std::env::var(variable).ok().map(|text| parse(&text)));
    armed.as_ref().is_some_and(|armed| armed.name == point && armed.left.fetch_sub(1, Ordering::Relaxed) == 1)
}

/// How many of a hundred live frames a runtime that starts now forgets.
pub fn evict_percent() -> u64 {
    std::env::var("HOLDFAST_TEST_EVICT_PERCENT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether a test wants the turns of this instance to get lost before their commit.
pub fn drops_turn(instance: &str) -> bool {
    static PREFIX: OnceLock<Option<String>> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| std::env::var("HOLDFAST_TEST_DROP_TURNS_OF").ok());
    prefix.as_deref().is_some_and(|prefix| instance.starts_with(prefix))
}

fn parse(text: &str) -> Armed {
    let (name, times) = match text.rsplit_once(':') {
        Some((name, times)) => (name, times.parse().unwrap_or(1)),
        None => (text, 1),
    };
    Armed { name: name.to_owned(), left: AtomicU32::new(times) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_armed_for_its_nth_hit() {
        let armed = parse("commit.batch.before:3");
        assert_eq!(armed.name, "commit.batch.before");
        assert_eq!(armed.left.load(Ordering::Relaxed), 3);
        assert_eq!(parse("goodbye.after").left.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn every_point_has_its_own_name() {
        let mut names = POINTS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), POINTS.len());
    }
}
