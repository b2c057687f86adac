//! What activities count and tell: events for people, and the counters that go with them. It decides nothing.

use std::time::Duration;

use serde_json::json;

use super::flight::Flight;
use crate::{provider::Provider, store::Fence, telemetry::Level};

/// A lease ended without a result here: the activity runs elsewhere, was cancelled, or runs again.
pub(super) fn lost(provider: &Provider, flight: Option<&Flight>, fence: Fence) {
    provider.counters().leases_lost.add(1);
    let claimed = flight.map(|flight| &flight.claimed);
    let text = match claimed {
        Some(claimed) => format!(
            "the lease of activity {:?} of {:?} ended before its result was recorded here",
            claimed.name, claimed.key.instance
        ),
        None => "the lease of an activity ended before its result was recorded here".to_owned(),
    };
    let fields = json!({
        "kind": "activity",
        "instance": claimed.map(|claimed| &claimed.key.instance),
        "activity": claimed.map(|claimed| &claimed.name),
        "fence": fence.0,
    });
    provider.events().emit("lease-lost", Level::Warn, text, fields);
}

/// Nobody can say any more who recorded a result.
pub(super) fn overtaken(provider: &Provider, flight: Option<&Flight>, fence: Fence) {
    let Some(claimed) = flight.map(|flight| &flight.claimed) else { return };
    let text = format!(
        "the commit of activity {:?} of {:?} got no answer, and its task has gone on since: that commit recorded the result, or \
         somebody else has",
        claimed.name, claimed.key.instance
    );
    let fields = json!({
        "kind": "activity",
        "instance": claimed.key.instance,
        "activity": claimed.name,
        "fence": fence.0,
    });
    provider.events().emit("commit-overtaken", Level::Info, text, fields);
}

/// The code has no function for a task that it was handed.
pub(super) fn unregistered(provider: &Provider, flight: &Flight, delay: Duration) {
    provider.counters().unregistered.add(1);
    let (claimed, ms) = (&flight.claimed, delay.as_millis());
    let text = format!(
        "activity {:?} is not registered here: that of {:?} is put back for {ms} ms",
        claimed.name, claimed.key.instance
    );
    let fields = json!({
        "kind": "activity",
        "handler": claimed.name,
        "instance": claimed.key.instance,
        "delayMs": ms as u64,
    });
    provider.events().emit("handler-missing", Level::Warn, text, fields);
}

/// An activity ends because its deliveries are used up; returns what its orchestration is told.
pub(super) fn poisoned(provider: &Provider, flight: &Flight) -> String {
    provider.counters().poisoned.add(1);
    let claimed = &flight.claimed;
    let deliveries = claimed.deliveries - 1;
    let text = format!(
        "activity {:?} of {:?} was delivered {deliveries} times without an end and fails",
        claimed.name, claimed.key.instance
    );
    let fields = json!({
        "kind": "activity",
        "instance": claimed.key.instance,
        "activity": claimed.name,
        "deliveries": deliveries,
    });
    provider.events().emit("poisoned", Level::Error, text, fields);
    format!("poison: activity {} exceeded {} attempts (max {deliveries})", claimed.name, claimed.deliveries)
}
