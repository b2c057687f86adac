//! Whether a listener is alive: each heartbeat sends a hint to this process's own channel, and two that do not come back
//! mean that the listener is deaf. No I/O.

use std::collections::HashMap;

use crate::limits;

/// Hints on their way to ourselves, by the ticket of who sends them.
#[derive(Debug, Default)]
pub(super) struct Proof {
    missing: HashMap<u64, u32>,
}

impl Proof {
    /// One is about to be sent.
    pub(super) fn sent(&mut self, ticket: u64) {
        *self.missing.entry(ticket).or_default() += 1;
    }

    /// It was not sent after all.
    pub(super) fn not_sent(&mut self, ticket: u64) {
        if let Some(missing) = self.missing.get_mut(&ticket) {
            *missing = missing.saturating_sub(1);
        }
    }

    /// It was sent; true when the listener is deaf. The last one may still be on its way, the one before has had a whole
    /// interval.
    pub(super) fn is_deaf(&self, ticket: u64) -> bool {
        self.missing.get(&ticket).is_some_and(|missing| *missing >= limits::HUB_PROOFS_MISSED)
    }

    /// Something was heard.
    pub(super) fn heard(&mut self) {
        self.missing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_missed_hints_mean_that_the_listener_is_deaf() {
        let mut proof = Proof::default();
        proof.sent(1);
        assert!(!proof.is_deaf(1), "the first may be on its way");
        proof.sent(1);
        assert!(proof.is_deaf(1));
        proof.heard();
        assert!(!proof.is_deaf(1));
    }

    #[test]
    fn heartbeats_of_two_runtimes_do_not_add_up_and_failed_ones_do_not_count() {
        let mut proof = Proof::default();
        proof.sent(1);
        proof.sent(2);
        assert!(!proof.is_deaf(1) && !proof.is_deaf(2));
        proof.not_sent(1);
        proof.sent(1);
        assert!(!proof.is_deaf(1));
    }
}
