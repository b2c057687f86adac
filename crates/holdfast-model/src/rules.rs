//! What is explored: the protocol as it is, or with one rule taken out.

/// A rule that a mutant breaks. Each must be caught, or the model proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A settle does not look at the fence.
    NoFence,
    /// A lease is stamped with a time from before the wait for the row's lock.
    EarlyStamp,
    /// The end of a poisoned item needs a live lease.
    PoisonThroughLease,
    /// Deliveries are counted when an item is settled, not when it is claimed.
    CountedAtSettle,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::NoFence, Self::EarlyStamp, Self::PoisonThroughLease, Self::CountedAtSettle];

    /// Its public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoFence => "no fence",
            Self::EarlyStamp => "lease from a time before the wait",
            Self::PoisonThroughLease => "poison through the lease",
            Self::CountedAtSettle => "attempts counted at settle",
        }
    }
}

/// One exploration.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Items that take part.
    pub items: usize,
    /// Deliveries before poison.
    pub max_attempts: u8,
    /// Commits that an item needs to its end.
    pub commits: u8,
    /// Every claim takes longer than the lease: it is over when the reply arrives, and so is every renewal.
    pub slow_claims: bool,
    /// Faults at most over a whole run; none: any number.
    pub faults: Option<u8>,
    /// The rule that is taken out.
    pub mutant: Option<Mutant>,
}

impl Rules {
    /// One item that takes two commits and two deliveries, with any number of faults.
    pub fn one_item() -> Self {
        Self { items: 1, max_attempts: 2, commits: 2, slow_claims: false, faults: None, mutant: None }
    }

    /// Whether this rule is taken out.
    pub fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
