//! The one source of chance: pauses, keys of messages, marks of senders. Nothing secret is made of it.
//!
//! The simulation gives its thread a seed; then the same calls bring the same numbers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 64 random bits: the seed of a fresh hasher of the standard library.
pub(crate) fn bits() -> u64 {
    #[cfg(any(test, feature = "sim"))]
    if let Some(bits) = seeded::next() {
        return bits;
    }
    RandomState::new().build_hasher().finish()
}

/// A number in [0, 1).
pub(crate) fn unit() -> f64 {
    (bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// One step of SplitMix64: from a state to the next state and its number.
#[cfg(any(test, feature = "sim"))]
pub(crate) fn step(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, mixed ^ (mixed >> 31))
}

#[cfg(any(test, feature = "sim"))]
pub(crate) mod seeded {
    //! The chance of a thread that simulates.

    use std::cell::Cell;

    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// From here on this thread's numbers follow from the seed; `None` gives them back to chance.
    pub(crate) fn seed(seed: Option<u64>) {
        STATE.set(seed);
    }

    pub(super) fn next() -> Option<u64> {
        let (state, bits) = super::step(STATE.get()?);
        STATE.set(Some(state));
        Some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_thread_draws_the_same_numbers_again_and_others_do_not() {
        let draw = || (0..4).map(|_| bits()).collect::<Vec<_>>();
        let seeded = |seed| {
            seeded::seed(Some(seed));
            let drawn = draw();
            seeded::seed(None);
            drawn
        };
        assert_eq!(seeded(7), seeded(7));
        assert_ne!(seeded(7), seeded(8));
        assert_ne!(draw(), draw());
        assert!((0..100).all(|_| (0.0..1.0).contains(&unit())));
    }
}
