//! Claims that take long wait a moment for slots that are about to be free: a claim for one slot takes as long as one for all,
//! and the others would wait for it.
//!
//! It only waits. Where claims are fast it does not.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    clock,
    dispatch::{Claimer, latency::ClaimLatency},
    limits,
};

/// Looks at the slots while it waits.
const LOOKS: u32 = 8;

impl Claimer {
    /// Waits until no turn is in progress that may end any moment, for a part of what claims took lately.
    pub(super) async fn gather(&self, latency: &Mutex<ClaimLatency>) {
        let Some(patience) = patience(latency.lock().unwrap_or_else(PoisonError::into_inner).lately()) else {
            return;
        };
        let begun = clock::now();
        while clock::since(begun) < patience
            && let Some(left) = self.turns.young_for(patience)
        {
            tokio::time::sleep(left.min(patience / LOOKS)).await;
        }
    }
}

/// How long to wait when claims take this long.
fn patience(lately: Duration) -> Option<Duration> {
    let (least, most) = limits::GATHER;
    let share = lately / limits::GATHER_SHARE;
    (share >= least).then(|| share.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_claims_wait_for_no_slot_and_slow_ones_for_a_part_of_their_time() {
        let ms = Duration::from_millis;
        assert_eq!(patience(ms(300)), None);
        assert_eq!(patience(ms(6400)), Some(ms(400)));
        assert_eq!(patience(ms(60_000)), Some(ms(500)));
    }
}
