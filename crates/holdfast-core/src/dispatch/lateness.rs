//! A claim whose reply came late: what was taken from this node meanwhile is not started.

use std::time::{Duration, Instant};

use crate::{
    clock,
    dispatch::{Claimer, latency::ClaimLatency},
    lease::Kind,
    store::{Fence, NodeKey, StoreSession},
    telemetry::Level,
};

impl Claimer {
    /// A claim took so long: says so when claims near a lease.
    pub(super) fn tell_if_slow(&self, latency: &mut ClaimLatency, took: Duration) {
        let leases = &self.config.lease;
        let (lease, option) = if leases.orchestrator_lock_timeout <= leases.worker_lock_timeout {
            (leases.orchestrator_lock_timeout, "orchestratorLockTimeoutMs")
        } else {
            (leases.worker_lock_timeout, "workerLockTimeoutMs")
        };
        let Some(p99) = latency.record(took, lease, clock::now()) else { return };
        let (p99, lease) = (p99.as_secs_f64() * 1000.0, lease.as_secs_f64() * 1000.0);
        let text = format!(
            "claims take {p99:.1} ms (p99), more than half of the lease of {lease} ms: raise {option}, or work is claimed again before it is done"
        );
        let fields = serde_json::json!({ "p99Ms": p99, "leaseMs": lease, "option": option });
        self.provider.events().emit("claims-slow", Level::Warn, text, fields);
    }

    /// A reply that came late is followed by one renewal; returns what was fenced by then and is not started. Correctness
    /// rests on the fences, so a look that fails changes nothing.
    pub(super) async fn fenced_meanwhile(
        &self,
        session: &dyn StoreSession,
        node: &NodeKey,
        kind: Kind,
        fences: Vec<Fence>,
        asked_at: Instant,
    ) -> Vec<Fence> {
        let lease = match kind {
            Kind::Turn => self.config.lease.orchestrator_lock_timeout,
            Kind::Activity => self.config.lease.worker_lock_timeout,
        };
        if fences.is_empty() || clock::since(asked_at) * 5 <= lease {
            return Vec::new();
        }
        let times = self.config.lease.renewal(lease);
        let renewed = match kind {
            Kind::Turn => session.renew_turns(node, &fences, &times).await,
            Kind::Activity => session.renew_activities(node, &fences, &times).await,
        };
        let Ok(renewed) = renewed else { return Vec::new() };
        // What a renewal leaves out may only be locked at this moment.
        let left_out: Vec<Fence> = fences.into_iter().filter(|fence| !renewed.contains(fence)).collect();
        let gone = match kind {
            Kind::Turn => session.gone_turns(node, &left_out).await,
            Kind::Activity => session.gone_activities(node, &left_out).await,
        };
        gone.unwrap_or_default()
    }
}
