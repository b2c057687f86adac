//! Who may hold a session, and who waits: counting and queueing only, told the time, no I/O.
//!
//! Invariants: nobody is admitted beyond `capacity`; nobody waits while a place is free; at most `max_waiting` wait.
//! Two queues, each first in first out. A waiting critical caller goes first, but after one critical admission in a
//! row a waiting ordinary caller is next. It never connects and never measures time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How urgent a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerClass {
    /// Commit, settle, complete, cancel look-up of running work.
    Critical,
    /// Claims, starts, events, status, management.
    Ordinary,
}

/// A caller in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The answer to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Go on; give the place back with `leave`.
    Admitted,
    /// Wait until this ticket is handed out by `leave`.
    Waiting(Ticket),
    /// The queues are full.
    Full {
        /// Callers waiting.
        waiting: usize,
        /// When a place in the queue is likely to be free.
        retry_after: Duration,
    },
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    since: Instant,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    capacity: usize,
    max_waiting: usize,
    admitted: usize,
    critical: VecDeque<Waiter>,
    ordinary: VecDeque<Waiter>,
    next_ticket: u64,
    /// A critical waiter was the last one handed a place while ordinary ones waited.
    owes_ordinary: bool,
    last_leave: Option<Instant>,
    /// Smoothed time between two places given back; the base of the retry hint.
    leave_interval: Duration,
}

/// Bounds of the retry hint: below 50 ms a client would only add load, above 5 s it would sleep through the calm.
const HINT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

impl Gate {
    pub(crate) fn new(capacity: usize, max_waiting: usize) -> Self {
        Self {
            capacity,
            max_waiting,
            admitted: 0,
            critical: VecDeque::new(),
            ordinary: VecDeque::new(),
            next_ticket: 0,
            owes_ordinary: false,
            last_leave: None,
            leave_interval: HINT.0,
        }
    }

    /// A caller asks for a place.
    pub(crate) fn enter(&mut self, class: CallerClass, now: Instant) -> Entry {
        if self.enter_if_free() {
            return Entry::Admitted;
        }
        if self.waiting() >= self.max_waiting {
            return Entry::Full { waiting: self.waiting(), retry_after: self.retry_hint() };
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let waiter = Waiter { ticket, since: now };
        match class {
            CallerClass::Critical => self.critical.push_back(waiter),
            CallerClass::Ordinary => self.ordinary.push_back(waiter),
        }
        Entry::Waiting(ticket)
    }

    /// Takes a place if one is free; true when it did.
    pub(crate) fn enter_if_free(&mut self) -> bool {
        let free = self.admitted < self.capacity;
        if free {
            self.admitted += 1;
        }
        free
    }

    /// From here on so many places: fewer are reached as those that are taken come back, of more the first in the queues get
    /// one, whose tickets these are.
    pub(crate) fn resize(&mut self, capacity: usize) -> Vec<Ticket> {
        self.capacity = capacity;
        let mut admitted = Vec::new();
        while self.admitted < self.capacity
            && let Some(waiter) = self.next_waiter()
        {
            self.admitted += 1;
            admitted.push(waiter.ticket);
        }
        admitted
    }

    /// Places that there are.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// A place is given back. It goes to the waiter returned, with the time it waited, or is free.
    pub(crate) fn leave(&mut self, now: Instant) -> Option<(Ticket, Duration)> {
        if let Some(last) = self.last_leave.replace(now) {
            let interval = now.saturating_duration_since(last);
            self.leave_interval = (self.leave_interval * 7 + interval) / 8;
        }
        let kept = self.admitted <= self.capacity;
        match if kept { self.next_waiter() } else { None } {
            Some(waiter) => Some((waiter.ticket, now.saturating_duration_since(waiter.since))),
            None => {
                debug_assert!(self.admitted > 0, "more places given back than taken");
                self.admitted = self.admitted.saturating_sub(1);
                None
            }
        }
    }

    /// A waiter gives up. False when it holds a place already (and must give that back) or is unknown.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> bool {
        for queue in [&mut self.critical, &mut self.ordinary] {
            if let Ok(at) = queue.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
                queue.remove(at);
                return true;
            }
        }
        false
    }

    /// Places taken.
    #[cfg(test)]
    pub(crate) fn admitted(&self) -> usize {
        self.admitted
    }

    /// Callers waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.critical.len() + self.ordinary.len()
    }

    /// When a caller refused now is likely to find a place: the queue ahead of it at the pace seen lately.
    pub(crate) fn retry_hint(&self) -> Duration {
        let ahead = u32::try_from(self.waiting() + 1).unwrap_or(u32::MAX);
        self.leave_interval.saturating_mul(ahead).clamp(HINT.0, HINT.1)
    }

    fn next_waiter(&mut self) -> Option<Waiter> {
        let ordinary_first = self.owes_ordinary || self.critical.is_empty();
        if ordinary_first && let Some(waiter) = self.ordinary.pop_front() {
            self.owes_ordinary = false;
            return Some(waiter);
        }
        let waiter = self.critical.pop_front()?;
        self.owes_ordinary = true;
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(gate: &mut Gate, class: CallerClass, now: Instant) -> Ticket {
        match gate.enter(class, now) {
            Entry::Waiting(ticket) => ticket,
            other => panic!("must wait, got {other:?}"),
        }
    }

    fn next(gate: &mut Gate, now: Instant) -> Option<Ticket> {
        gate.leave(now).map(|(ticket, _)| ticket)
    }

    #[test]
    fn no_more_than_capacity_are_admitted() {
        let now = Instant::now();
        let mut gate = Gate::new(2, 10);
        assert_eq!(gate.enter(CallerClass::Ordinary, now), Entry::Admitted);
        assert_eq!(gate.enter(CallerClass::Critical, now), Entry::Admitted);
        let third = wait(&mut gate, CallerClass::Critical, now);
        assert_eq!((gate.admitted(), gate.waiting()), (2, 1));
        assert_eq!(next(&mut gate, now), Some(third));
        assert_eq!(next(&mut gate, now), None);
        assert_eq!(next(&mut gate, now), None);
        assert_eq!((gate.admitted(), gate.waiting()), (0, 0));
    }

    #[test]
    fn places_that_are_added_go_to_who_waits_and_those_taken_away_come_back_first() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 10);
        assert_eq!(gate.enter(CallerClass::Ordinary, now), Entry::Admitted);
        let (first, second) =
            (wait(&mut gate, CallerClass::Ordinary, now), wait(&mut gate, CallerClass::Ordinary, now));
        assert_eq!(gate.resize(2), [first]);
        assert_eq!((gate.admitted(), gate.capacity()), (2, 2));
        assert!(gate.resize(1).is_empty());
        assert_eq!(next(&mut gate, now), None, "one place too many is taken");
        assert_eq!(next(&mut gate, now), Some(second));
        assert_eq!(gate.admitted(), 1);
    }

    #[test]
    fn each_class_is_first_in_first_out_and_neither_starves() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 100);
        gate.enter(CallerClass::Ordinary, now);
        let ordinary: Vec<_> = (0..3).map(|_| wait(&mut gate, CallerClass::Ordinary, now)).collect();
        let critical: Vec<_> = (0..3).map(|_| wait(&mut gate, CallerClass::Critical, now)).collect();
        let order: Vec<_> = std::iter::from_fn(|| next(&mut gate, now)).collect();
        let expected = [critical[0], ordinary[0], critical[1], ordinary[1], critical[2], ordinary[2]];
        assert_eq!(order, expected);
    }

    #[test]
    fn in_a_burst_of_starts_a_settle_waits_behind_at_most_one_of_them() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 2_000);
        gate.enter(CallerClass::Ordinary, now);
        for _ in 0..1_000 {
            wait(&mut gate, CallerClass::Ordinary, now);
        }
        for _ in 0..50 {
            let settle = wait(&mut gate, CallerClass::Critical, now);
            let ahead = (0..).find(|_| next(&mut gate, now) == Some(settle)).expect("comes");
            assert!(ahead <= 1, "{ahead} ordinary callers went first");
        }
    }

    #[test]
    fn the_queue_is_bounded_and_the_refusal_says_depth_and_when_to_come_back() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 2);
        gate.enter(CallerClass::Ordinary, now);
        wait(&mut gate, CallerClass::Ordinary, now);
        wait(&mut gate, CallerClass::Critical, now);
        let Entry::Full { waiting, retry_after } = gate.enter(CallerClass::Critical, now) else {
            panic!("must be refused")
        };
        assert_eq!(waiting, 2);
        assert!(retry_after >= HINT.0 && retry_after <= HINT.1);
    }

    #[test]
    fn the_hint_follows_the_pace_of_the_places_given_back() {
        let mut now = Instant::now();
        let mut gate = Gate::new(1, 1_000);
        gate.enter(CallerClass::Ordinary, now);
        for _ in 0..200 {
            wait(&mut gate, CallerClass::Ordinary, now);
        }
        for _ in 0..100 {
            now += Duration::from_millis(10);
            gate.leave(now);
        }
        let hint = gate.retry_hint();
        assert!(hint > Duration::from_millis(900) && hint < Duration::from_millis(1_200), "{hint:?}");
    }

    #[test]
    fn a_waiter_that_gives_up_leaves_no_trace() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 10);
        gate.enter(CallerClass::Ordinary, now);
        let first = wait(&mut gate, CallerClass::Ordinary, now);
        let second = wait(&mut gate, CallerClass::Ordinary, now);
        assert!(gate.withdraw(first));
        assert!(!gate.withdraw(first), "twice counts once");
        assert_eq!(next(&mut gate, now), Some(second));
        assert!(!gate.withdraw(second), "it holds a place");
        assert_eq!(next(&mut gate, now), None);
        assert_eq!((gate.admitted(), gate.waiting()), (0, 0));
    }

    #[test]
    fn the_time_waited_is_reported() {
        let now = Instant::now();
        let mut gate = Gate::new(1, 10);
        gate.enter(CallerClass::Ordinary, now);
        wait(&mut gate, CallerClass::Ordinary, now);
        let waited = gate.leave(now + Duration::from_millis(7)).expect("a waiter").1;
        assert_eq!(waited, Duration::from_millis(7));
    }
}
