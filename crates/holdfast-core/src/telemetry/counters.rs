//! Counters of one provider and of one runtime. Names live here and nowhere else.

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
    ($type:ident, $doc:literal; $($field:ident = $name:literal: $what:literal,)*) => {
        #[doc = $doc]
        #[derive(Debug, Default)]
        pub struct $type {
            $(#[doc = $what] pub $field: Counter,)*
        }

        impl $type {
            /// Every counter with its public name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field.get()),)*]
            }
        }
    };
}

counters! {
    Counters, "What happened on a provider so far.";
    claims = "claims": "Claim rounds sent.",
    looks = "looks": "Looks at both queues that take nothing.",
    looks_along = "looksAlong": "Looks that a heartbeat took along for a claimer that slept.",
    claims_failed = "claimsFailed": "Claim rounds that failed.",
    turns_claimed = "turnsClaimed": "Turns claimed.",
    activities_claimed = "activitiesClaimed": "Activities claimed.",
    history_rows_read = "historyRowsRead": "Events of histories read for cold turns.",
    local_starts = "localStarts": "First turns that began without a claim, in the process that started their instance.",
    local_turns = "localTurns": "Turns that began without a claim, with a result of this process.",
    warm_turns = "warmTurns": "Turns run on a live frame.",
    cold_turns = "coldTurns": "Turns replayed from history.",
    turns_settled = "turnsSettled": "Turns committed.",
    activities_settled = "activitiesSettled": "Activity results committed.",
    leases_lost = "leasesLost": "Leases that ended without a result here.",
    poisoned = "poisoned": "Items ended because their deliveries were used up.",
    messages_dropped = "messagesDropped": "Messages for another execution, or answered before.",
    unknown_dropped = "unknownDropped": "Messages dropped that waited too long for an instance that was never started.",
    expired = "expired": "Instances deleted because they ended longer ago than the retention.",
    unserved = "unserved": "Times that due work was found which no live node can run, once for each name.",
    unregistered = "unregistered": "Items met that the code has no function for; they were put back.",
    parked = "parked": "Instances parked.",
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
    self_fences = "selfFences": "Times this node fenced itself because it was not heard.",
    loop_stalls = "loopStalls": "Times the JavaScript loop stood still for the stall timeout.",
    loop_hangs = "loopHangs": "Times it stood still for the hang timeout, and its work was given up.",
    parts_stuck = "partsStuck": "Times a part made no progress for the stale age.",
    parts_restarted = "partsRestarted": "Parts of a runtime that panicked and were started again.",
    leases_recovered = "leasesRecovered": "Leases taken from dead nodes.",
    hints_sent = "hintsSent": "Hints sent to other processes.",
    hints_lost = "hintsLost": "Hints that could not be sent.",
    hints_heard = "hintsHeard": "Hints heard from other processes.",
    hub_proofs = "hubProofs": "Hints to this process alone that proved its listener alive.",
    crossings = "crossings": "Batches that JavaScript pulled; what comes back with its answers is not counted.",
    unknown_answers = "unknownAnswers": "Answers for work that is not in progress.",
}

counters! {
    RunCounters, "What one runtime did so far.";
    orch_starts = "orchStarts": "First turns committed.",
    orch_completions = "orchCompletions": "Instances completed.",
    orch_failures = "orchFailures": "Instances failed, for whatever reason, and cancelled.",
    orch_application_errors = "orchApplicationErrors": "Of those: by their own code, or cancelled.",
    orch_infrastructure_errors = "orchInfrastructureErrors": "Of those: by what the engine could not do.",
    orch_configuration_errors = "orchConfigurationErrors": "Of those: by code that does not fit.",
    orch_poison = "orchPoison": "Of those: by deliveries that were used up.",
    activity_success = "activitySuccess": "Activities completed.",
    activity_app_errors = "activityAppErrors": "Tries that failed by their own code.",
    activity_infra_errors = "activityInfraErrors": "Tries that failed by what the engine could not do.",
    activity_config_errors = "activityConfigErrors": "Tries that failed by code that does not fit.",
    activity_poison = "activityPoison": "Activities whose deliveries were used up.",
    orch_items_fetched = "orchDispatcherItemsFetched": "Turns claimed.",
    worker_items_fetched = "workerDispatcherItemsFetched": "Activities claimed.",
    orch_continue_as_new = "orchContinueAsNew": "Executions that went on as new.",
    suborchestration_calls = "suborchestrationCalls": "Children started.",
    provider_errors = "providerErrors": "Claims that failed and commits that were refused.",
}
