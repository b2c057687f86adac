//! What can happen, and what must not. Decides nothing.

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum Action {
    /// A node claims an item; `waited`: the statement waited for a lock longer than a lease.
    Claim { node: usize, item: usize, waited: bool },
    /// The reply of a claim arrives.
    Receive { node: usize, item: usize },
    /// The reply of a claim never arrives.
    LoseReply { node: usize, item: usize },
    /// The node frees a row that it owns and does not know of.
    ReleaseUnknown { node: usize, item: usize },
    /// The body starts.
    Start { node: usize, item: usize },
    /// The commit is carried out and answered.
    Settle { node: usize, item: usize },
    /// The commit is carried out and its answer is lost.
    SettleUnanswered { node: usize, item: usize },
    /// The commit is lost before it is carried out.
    LoseCommit { node: usize, item: usize },
    /// The node runs the guarded transaction again to learn the outcome.
    Resolve { node: usize, item: usize },
    /// A body that was stopped hands its item back.
    Abandon { node: usize, item: usize },
    /// The node decides to give an unstarted item back.
    Return { node: usize, item: usize },
    /// The release is carried out.
    Release { node: usize, item: usize },
    /// The release is carried out and its answer is lost.
    ReleaseUnanswered { node: usize, item: usize },
    /// A poisoned item is ended.
    EndPoisoned { node: usize, item: usize },
    /// A lease is renewed.
    Renew { node: usize, item: usize },
    /// The lease runs out.
    Lapse { item: usize },
    /// A client cancels the item.
    Cancel { item: usize },
    /// The process dies.
    Crash { node: usize },
    /// Others delete its node row. It may be dead, or only slow.
    DeclareDead { node: usize },
    /// A row whose owner has no node row, or an earlier epoch, loses its owner and is due.
    Recover { item: usize },
    /// A process starts, or one that was declared dead registers again, under a new epoch.
    Register { node: usize },
}

/// What a rule forbids and an action did all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// A second end, or a commit after the end.
    SecondEnd,
    /// A write under a fence that is not the row's.
    StaleWrite,
    /// Two commits on the same history length.
    SameLength,
    /// More bodies started than deliveries allow.
    TooManyBodies,
    /// A body started that no claim counted.
    Uncounted,
    /// A claim was committed with a lease that was over.
    DeadLease,
}

impl Breach {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::SecondEnd,
        Self::StaleWrite,
        Self::SameLength,
        Self::TooManyBodies,
        Self::Uncounted,
        Self::DeadLease,
    ];

    /// The property that it breaks.
    pub fn property(self) -> &'static str {
        match self {
            Self::SecondEnd => "one end, one result for each step",
            Self::StaleWrite => "nothing is written under an old fence",
            Self::SameLength => "no two commits on the same history length",
            Self::TooManyBodies => "started bodies stay within max attempts + 1",
            Self::Uncounted => "a delivery is counted before its body starts",
            Self::DeadLease => "a claim commits with a live lease",
        }
    }
}
