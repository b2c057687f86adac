//! Counters of one provider. Names live here and nowhere else.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($field:ident = $name:literal: $what:literal,)*) => {
        /// What happened so far.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(#[doc = $what] pub $field: Counter,)*
        }

        impl Counters {
            /// Every counter with its public name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field.get()),)*]
            }
        }
    };
}

counters! {
    claims = "claims": "Claim rounds sent.",
    claims_failed = "claimsFailed": "Claim rounds that failed.",
    turns_claimed = "turnsClaimed": "Turns claimed.",
    activities_claimed = "activitiesClaimed": "Activities claimed.",
    history_rows_read = "historyRowsRead": "History rows read for cold turns.",
    warm_turns = "warmTurns": "Turns run on a live frame.",
    cold_turns = "coldTurns": "Turns replayed from history.",
    turns_settled = "turnsSettled": "Turns committed.",
    activities_settled = "activitiesSettled": "Activity results committed.",
    leases_lost = "leasesLost": "Leases that ended without a result here.",
    poisoned = "poisoned": "Items ended because their deliveries were used up.",
    messages_dropped = "messagesDropped": "Messages for another execution, or answered before.",
    mismatches = "mismatches": "Turns whose code did not fit its history.",
    corrupt = "corrupt": "Histories that could not be understood.",
    commit_batches = "commitBatches": "Batches committed.",
    commit_items = "commitItems": "Items in them.",
    commit_retries = "commitRetries": "Batches run again.",
    commit_refused = "commitRefused": "Items the server refused.",
    heartbeats = "heartbeats": "Heartbeats answered.",
    heartbeats_failed = "heartbeatsFailed": "Heartbeats that failed.",
    nodes_recovered = "nodesRecovered": "Dead nodes found.",
    declared_dead = "declaredDead": "Times this node was declared dead and registered again.",
    parts_restarted = "partsRestarted": "Parts of a runtime that panicked and were started again.",
    leases_recovered = "leasesRecovered": "Leases taken from dead nodes.",
    crossings = "crossings": "Batches handed to JavaScript.",
    unknown_answers = "unknownAnswers": "Answers for work that is not in progress.",
}
