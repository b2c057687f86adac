//! A claim whose reply came late: what was taken from this node meanwhile is not started.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::join;

use crate::{
    clock,
    dispatch::{Claimer, latency::ClaimLatency},
    lease::Kind,
    store::{Fence, NodeKey, StoreSession},
    telemetry::Level,
};

impl Claimer {
    /// A claim took so long: says so when claims near a lease.
    pub(super) fn tell_if_slow(&self, latency: &Mutex<ClaimLatency>, took: Duration) {
        let leases = &self.config.lease;
        let (lease, option) = if leases.orchestrator_lock_timeout <= leases.worker_lock_timeout {
            (leases.orchestrator_lock_timeout, "orchestratorLockTimeoutMs")
        } else {
            (leases.worker_lock_timeout, "workerLockTimeoutMs")
        };
        let mut last = latency.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(p99) = last.record(took, lease, clock::now()) else { return };
        drop(last);
        let (p99, lease) = (p99.as_secs_f64() * 1000.0, lease.as_secs_f64() * 1000.0);
        let text = format!(
            "claims take {p99:.1} ms (p99), more than half of the lease of {lease} ms: raise {option}, or work is claimed again before it is done"
        );
        let fields = serde_json::json!({ "p99Ms": p99, "leaseMs": lease, "option": option });
        self.provider.events().emit("claims-slow", Level::Warn, text, fields);
    }

    /// A reply that came late is followed by one renewal; returns what was fenced by then and is not started. Correctness
    /// rests on the fences, so a look that fails changes nothing. What a renewal leaves out may only be locked at that moment,
    /// so the look asks for all of them, in the same flight.
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
        let (_, gone) = match kind {
            Kind::Turn => {
                join(session.renew_turns(node, &fences, &times), session.gone_turns(node, &fences)).await
            }
            Kind::Activity => {
                let renewed = session.renew_activities(node, &fences, &times);
                join(renewed, session.gone_activities(node, &fences)).await
            }
        };
        gone.unwrap_or_default()
    }
}
