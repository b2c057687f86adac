//! The simulation: the real rooms of several engines over a store in memory, on virtual clocks, in one thread.
//!
//! A seed decides everything: what clients do, which programs run, what befalls the processes, the network and the database.
//! After every step the oracle looks at what the step touched. The same seed gives the same run.

mod claims;
mod clients;
mod commit;
mod faults;
mod host;
mod instances;
mod model;
mod nodes;
mod oracle;
mod port;
mod process;
mod program;
mod promises;
mod reads;
mod workload;
mod world;

pub use model::Mutant;
pub use oracle::Violation;

/// Seeds that failed in the past, with what they found. They are always run.
pub const CORPUS: &[u64] = &[];

/// How a seed is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What is broken on purpose.
    pub mutant: Mutant,
    /// Prints what happens.
    pub trace: bool,
}

/// What runs came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Seeds that were run.
    pub seeds: u64,
    /// Events of all worlds.
    pub steps: u64,
    /// Their time, in ms.
    pub simulated_ms: u64,
    /// What did not hold; a run ends with its first step that shows something.
    pub violations: Vec<Violation>,
}

/// Runs one seed.
pub fn run(seed: u64, options: Options) -> Report {
    world::World::new(seed, &options).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of so many seeds that finds a mutant, and what it finds.
    fn caught(mutant: Mutant, seeds: u64) -> Option<(u64, &'static str)> {
        let options = Options { mutant, ..Options::default() };
        (1..=seeds)
            .find_map(|seed| run(seed, options).violations.first().map(|found| (seed, found.invariant)))
    }

    #[test]
    fn seeds_that_failed_in_the_past_and_a_few_others_hold() {
        for seed in CORPUS.iter().copied().chain(1..=20) {
            assert_eq!(run(seed, Options::default()).violations, [], "npm run sim -- --seed {seed}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for seed in [3, 7, 11] {
            let (first, second) = (run(seed, Options::default()), run(seed, Options::default()));
            assert_eq!((first.steps, first.simulated_ms), (second.steps, second.simulated_ms), "seed {seed}");
        }
    }

    #[test]
    fn every_mutant_is_caught() {
        let mutants =
            [Mutant::NoFence, Mutant::LeaseBeforeWait, Mutant::Uncounted, Mutant::NoWake, Mutant::Forgetful];
        for mutant in mutants {
            assert!(caught(mutant, 200).is_some(), "{mutant:?} is not caught");
        }
    }
}
