//! The circuit breaker: whether a caller may try to reach the database at all. Told the time, no I/O.
//!
//! Closed until `threshold` connection failures in a row; then open: everybody is refused until `open_for` is over.
//! After that exactly one caller is the trial and all others are still refused; its success closes the breaker, its
//! failure opens it anew, and a trial that ends with neither gives its place to the next caller. What ends while it is
//! open began before and is no news, so only the trial counts then. It never judges errors.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Breaker {
    threshold: u32,
    open_for: Duration,
    failures: u32,
    last_failure: Option<Instant>,
    last_cause: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant },
    Trial,
}

/// How a caller may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// As always.
    Free,
    /// As the one trial; how it ended must be told.
    Trial,
}

/// Why a caller is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Connection failures in a row.
    pub(super) failures: u32,
    /// The last of them.
    pub(super) cause: String,
    /// When the next trial is due, or can be at the latest known.
    pub(super) retry_after: Duration,
}

impl Breaker {
    pub(super) fn new(threshold: u32, open_for: Duration) -> Self {
        Self {
            threshold: threshold.max(1),
            open_for,
            failures: 0,
            last_failure: None,
            last_cause: String::new(),
            state: State::Closed,
        }
    }

    /// Whether a caller that asked now would be let through; it takes nothing.
    pub(super) fn look(&self, now: Instant) -> Result<(), Refusal> {
        match self.state {
            State::Closed => Ok(()),
            State::Open { until } if now >= until => Ok(()),
            State::Open { until } => Err(self.refusal(until - now)),
            State::Trial => Err(self.refusal(self.open_for)),
        }
    }

    /// A caller is about to connect, or to use a session.
    pub(super) fn enter(&mut self, now: Instant) -> Result<Pass, Refusal> {
        self.look(now)?;
        if self.state == State::Closed {
            return Ok(Pass::Free);
        }
        self.state = State::Trial;
        Ok(Pass::Trial)
    }

    /// The database answered somebody who is not the trial.
    pub(super) fn answered(&mut self) {
        if self.state == State::Closed {
            self.failures = 0;
        }
    }

    /// A connection could not be made, by somebody who is not the trial.
    pub(super) fn not_connected(&mut self, cause: &str, now: Instant) {
        if self.state == State::Closed {
            self.count(cause, now);
        }
    }

    /// A session that began at `began` was lost. Sessions that are older than the last failure died of the same event,
    /// so a restart of the server is one failure however many sessions it ended.
    pub(super) fn session_lost(&mut self, cause: &str, began: Instant, now: Instant) {
        if self.last_failure.is_none_or(|last| began > last) {
            self.not_connected(cause, now);
        }
    }

    /// The trial reached the database.
    pub(super) fn trial_succeeded(&mut self) {
        self.failures = 0;
        self.state = State::Closed;
    }

    /// The trial did not reach the database.
    pub(super) fn trial_failed(&mut self, cause: &str, now: Instant) {
        self.count(cause, now);
        self.state = State::Open { until: now + self.open_for };
    }

    /// The trial ended without telling whether the database can be reached; the next caller is the trial.
    pub(super) fn trial_given_back(&mut self, now: Instant) {
        if self.state == State::Trial {
            self.state = State::Open { until: now };
        }
    }

    /// Whether callers are refused, or would be but for the trial.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// The last failure, empty before the first.
    pub(super) fn last_cause(&self) -> &str {
        &self.last_cause
    }

    fn count(&mut self, cause: &str, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(now);
        cause.clone_into(&mut self.last_cause);
        if self.failures >= self.threshold {
            self.state = State::Open { until: now + self.open_for };
        }
    }

    fn refusal(&self, retry_after: Duration) -> Refusal {
        Refusal { failures: self.failures, cause: self.last_cause.clone(), retry_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_FOR: Duration = Duration::from_secs(2);
    const MS: Duration = Duration::from_millis(1);

    /// A breaker that has just been opened, and when.
    fn open() -> (Breaker, Instant) {
        let now = Instant::now();
        let mut breaker = Breaker::new(3, OPEN_FOR);
        for at in 0..3 {
            assert_eq!(breaker.enter(now), Ok(Pass::Free), "failure {at}");
            breaker.not_connected(&format!("cause {at}"), now);
        }
        (breaker, now)
    }

    #[test]
    fn it_opens_after_the_threshold_and_names_the_last_cause_and_when_to_come_back() {
        let (mut breaker, now) = open();
        assert!(breaker.is_open());
        let refusal = breaker.enter(now + 500 * MS).expect_err("open");
        let expected = Refusal { failures: 3, cause: "cause 2".to_owned(), retry_after: 1_500 * MS };
        assert_eq!(refusal, expected);
    }

    #[test]
    fn only_failures_in_a_row_open_it() {
        let now = Instant::now();
        let mut breaker = Breaker::new(3, OPEN_FOR);
        for _ in 0..10 {
            breaker.not_connected("refused", now);
            breaker.not_connected("refused", now);
            breaker.answered();
        }
        assert_eq!(breaker.enter(now), Ok(Pass::Free));
    }

    #[test]
    fn sessions_that_die_together_are_one_failure() {
        let began = Instant::now();
        let mut breaker = Breaker::new(3, OPEN_FOR);
        for at in 1..20 {
            breaker.session_lost("terminated", began, began + at * MS);
        }
        assert!(!breaker.is_open());
        breaker.session_lost("terminated", began + 30 * MS, began + 40 * MS);
        assert!(!breaker.is_open());
        breaker.session_lost("terminated", began + 50 * MS, began + 60 * MS);
        assert!(breaker.is_open());
    }

    #[test]
    fn exactly_one_caller_is_the_trial_and_its_success_closes() {
        let (mut breaker, now) = open();
        assert!(breaker.enter(now + OPEN_FOR - MS).is_err());
        let later = now + OPEN_FOR;
        assert_eq!(breaker.look(later), Ok(()));
        assert_eq!(breaker.enter(later), Ok(Pass::Trial));
        for _ in 0..5 {
            assert!(breaker.look(later + OPEN_FOR).is_err());
            assert!(breaker.enter(later + OPEN_FOR).is_err(), "a trial is under way");
        }
        breaker.trial_succeeded();
        assert!(!breaker.is_open());
        for _ in 0..2 {
            assert_eq!(breaker.enter(later), Ok(Pass::Free));
            breaker.not_connected("refused", later);
        }
        assert!(!breaker.is_open(), "the count starts anew");
    }

    #[test]
    fn a_failed_trial_opens_it_for_the_whole_time_again() {
        let (mut breaker, now) = open();
        let later = now + OPEN_FOR;
        assert_eq!(breaker.enter(later), Ok(Pass::Trial));
        breaker.trial_failed("still away", later);
        let refusal = breaker.enter(later + MS).expect_err("open again");
        assert_eq!((refusal.cause.as_str(), refusal.retry_after), ("still away", OPEN_FOR - MS));
        assert_eq!(breaker.enter(later + OPEN_FOR), Ok(Pass::Trial));
    }

    #[test]
    fn a_trial_that_proves_nothing_gives_its_place_back() {
        let (mut breaker, now) = open();
        let later = now + OPEN_FOR;
        for _ in 0..3 {
            assert_eq!(breaker.enter(later), Ok(Pass::Trial));
            breaker.trial_given_back(later);
        }
        assert_eq!(breaker.enter(later), Ok(Pass::Trial));
        breaker.trial_succeeded();
        breaker.trial_given_back(later);
        assert!(!breaker.is_open(), "what has ended cannot be given back");
    }

    #[test]
    fn what_began_before_it_opened_neither_closes_it_nor_keeps_it_open() {
        let (mut breaker, now) = open();
        breaker.answered();
        assert!(breaker.is_open());
        breaker.not_connected("late", now + OPEN_FOR - MS);
        breaker.session_lost("late", now, now + OPEN_FOR - MS);
        assert_eq!(breaker.enter(now + OPEN_FOR), Ok(Pass::Trial));
        breaker.answered();
        breaker.not_connected("late", now + OPEN_FOR);
        assert!(breaker.enter(now + OPEN_FOR).is_err(), "the trial is still under way");
    }
}
