//! What wakes one claimer: a ring at once, after which it claims, or one for later, after which it looks first.
//!
//! Invariant: rings are never lost and never add up; of those for later the earliest counts.

use std::{
    future::pending,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::sync::Notify;

/// How a claimer was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// There is work for it: claim.
    Claim,
    /// Others were told before it, there may be nothing left: look.
    Look,
}

/// The bell of one claimer.
#[derive(Debug, Default)]
pub struct Bell {
    now: Notify,
    later: Mutex<Option<Instant>>,
    sooner: Notify,
    /// More work is known than there were slots for.
    wants_slots: AtomicBool,
}

impl Bell {
    /// A bell that nobody has rung.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Wakes it at once.
    pub fn ring(&self) {
        self.now.notify_one();
    }

    /// A slot may be free: wakes it when it waits for one.
    pub fn slot_is_free(&self) {
        if self.wants_slots.load(Ordering::Acquire) {
            self.ring();
        }
    }

    /// Whether the last round left work for want of slots.
    pub fn set_wants_slots(&self, wants: bool) {
        self.wants_slots.store(wants, Ordering::Release);
    }

    /// Wakes it then, unless it looks before.
    pub fn ring_at(&self, time: Instant) {
        let mut later = self.lock();
        if later.is_none_or(|before| time < before) {
            *later = Some(time);
            self.sooner.notify_one();
        }
    }

    /// A look begins: it sees what the rings for later are about.
    pub fn looks(&self) {
        *self.lock() = None;
    }

    /// Waits for the next ring. Dropping the future loses none.
    pub async fn rung(&self) -> Ring {
        loop {
            let later = *self.lock();
            let time = async {
                match later {
                    Some(time) => tokio::time::sleep_until(time.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.now.notified() => return Ring::Claim,
                () = self.sooner.notified() => {}
                () = time => {
                    self.looks();
                    return Ring::Look;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    #[tokio::test(start_paused = true)]
    async fn a_ring_at_once_comes_before_one_for_later_and_neither_is_lost() {
        let bell = Bell::new();
        let begun = clock::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        bell.ring_at(at(50));
        bell.ring_at(at(20));
        bell.ring_at(at(90));
        bell.ring();
        assert_eq!(bell.rung().await, Ring::Claim);
        assert_eq!(bell.rung().await, Ring::Look);
        assert_eq!(
            clock::since(begun),
            Duration::from_millis(20),
            "the earliest counts, and they do not add up"
        );
        bell.ring_at(at(70));
        bell.looks();
        let none = tokio::time::timeout(Duration::from_secs(9), bell.rung()).await;
        assert!(none.is_err(), "a look has seen what it was about");
    }
}
