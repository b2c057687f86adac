//! What a provider does about what a hub hears.

use std::sync::{Weak, atomic::Ordering};

use serde_json::json;

use crate::{
    notify::{
        Hints,
        hub::{HubState, Subscriber},
        sender::Hint,
    },
    telemetry::Level,
};

/// See the module.
pub(super) struct Ear(pub(super) Weak<Hints>);

impl Subscriber for Ear {
    fn state(&self, state: &HubState) {
        let Some(hints) = self.0.upgrade() else { return };
        let listening = *state == HubState::Listening;
        let before = hints.listening.swap(listening, Ordering::AcqRel);
        {
            let mut kept = hints.lock();
            kept.hub = Some(state.clone());
            kept.proof.heard();
        }
        hints.tell(state);
        if before != listening {
            // What happened while nobody listened; and polls are as often as they must be from here on.
            hints.wakes.work();
            hints.wakes.all_may_have_ended();
            hints.presence.changed();
        }
    }

    fn hint(&self, payload: &str) {
        let Some(hints) = self.0.upgrade() else { return };
        hints.lock().proof.heard();
        let hint: Hint = serde_json::from_str(payload).unwrap_or_else(|_| Hint::anything());
        if hint.sender == hints.id {
            return;
        }
        hints.counters.hints_heard.add(1);
        if hint.listens {
            hints.somebody_listens();
        }
        if hint.work > 0 {
            hints.ring(hint.work, hint.first);
        }
        if hint.all {
            hints.wakes.all_may_have_ended();
        }
        for instance in &hint.ended {
            hints.wakes.ended_elsewhere(instance);
        }
    }

    fn proof(&self) {
        if let Some(hints) = self.0.upgrade() {
            hints.lock().proof.heard();
            hints.counters.hub_proofs.add(1);
        }
    }

    fn close_failed(&self) {
        if let Some(hints) = self.0.upgrade() {
            let text = "the session of a hub did not end in time; its place stays taken for a while";
            hints.events.emit("hub-close-failed", Level::Warn, text, json!({ "channel": hints.channel }));
        }
    }
}
