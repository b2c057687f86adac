//! What turns count and tell: events for people, and the counters that go with them. It decides nothing.

use std::time::Duration;

use holdfast_replay::ErrorPayload;
use serde_json::json;

use crate::{
    error::Error,
    store::{Fence, commit::Park, turn::ClaimedTurn},
    telemetry::Level,
    turn::{Flight, TurnRunner},
};

impl TurnRunner {
    /// A lease ended without a result here: the turn runs elsewhere, or again.
    pub(super) fn tell_lost(&self, instance: Option<&str>, fence: Fence) {
        self.provider.counters().leases_lost.add(1);
        let text = format!(
            "the lease of a turn of {:?} ended before its result was recorded here",
            instance.unwrap_or("an instance that is settled")
        );
        let fields = json!({ "kind": "turn", "instance": instance, "fence": fence.0 });
        self.provider.events().emit("lease-lost", Level::Warn, text, fields);
    }

    /// Nobody can say any more who recorded a turn.
    pub(super) fn tell_overtaken(&self, instance: &str, fence: Fence) {
        let text = format!(
            "the commit of a turn of {instance:?} got no answer, and the instance has gone on since: that commit recorded the \
             turn, or somebody else has done it"
        );
        let fields = json!({ "kind": "turn", "instance": instance, "fence": fence.0 });
        self.provider.events().emit("commit-overtaken", Level::Info, text, fields);
    }

    /// An instance ends because its deliveries are used up.
    pub(super) fn tell_poisoned(&self, claimed: &ClaimedTurn) {
        self.provider.counters().poisoned.add(1);
        let deliveries = claimed.deliveries - 1;
        let text = format!(
            "orchestration {:?} was delivered {deliveries} times without an end and fails",
            claimed.instance
        );
        let fields = json!({
            "kind": "turn",
            "instance": claimed.instance,
            "orchestration": claimed.name,
            "deliveries": deliveries,
        });
        self.provider.events().emit("poisoned", Level::Error, text, fields);
    }

    /// The code has no function for a turn that it was handed.
    pub(super) fn tell_unregistered(&self, flight: &Flight, delay: Duration) {
        self.provider.counters().unregistered.add(1);
        let (claimed, ms) = (&flight.claimed, delay.as_millis());
        let text = format!(
            "orchestration {:?} {} is not registered here: {:?} is put back for {ms} ms",
            claimed.name, flight.version, claimed.instance
        );
        let fields = json!({
            "kind": "orchestration",
            "handler": claimed.name,
            "version": flight.version,
            "instance": claimed.instance,
            "delayMs": ms as u64,
        });
        self.provider.events().emit("handler-missing", Level::Warn, text, fields);
    }

    /// A stored history cannot be understood.
    pub(super) fn tell_corrupt(&self, claimed: &ClaimedTurn, error: &Error) {
        self.provider.counters().corrupt.add(1);
        let text =
            format!("the history of {:?} cannot be understood: {}", claimed.instance, error.full_text());
        let fields = json!({ "instance": claimed.instance, "orchestration": claimed.name });
        self.provider.events().emit("history-corrupt", Level::Error, text, fields);
    }

    /// An instance was stopped without an end.
    pub(super) fn tell_parked(&self, flight: &Flight, park: &Park) {
        self.provider.counters().parked.add(1);
        let claimed = &flight.claimed;
        let error: ErrorPayload = serde_json::from_str(&park.error).unwrap_or_default();
        let text = format!("orchestration {:?} is parked: {}", claimed.instance, error.message);
        let fields = json!({
            "instance": claimed.instance,
            "orchestration": claimed.name,
            "version": flight.version,
            "code": error.code,
        });
        self.provider.events().emit("instance-parked", Level::Error, text, fields);
    }

    /// The code of an orchestration did not fit its history.
    pub(super) fn tell_mismatch(&self, instance: Option<&str>, mismatch: &str) {
        self.provider.counters().mismatches.add(1);
        let text =
            format!("the code of {:?} does not fit its history: {mismatch}", instance.unwrap_or_default());
        let fields = json!({ "instance": instance });
        self.provider.events().emit("nondeterminism", Level::Error, text, fields);
    }
}
