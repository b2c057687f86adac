//! How a running engine does, for probes.

use std::time::Duration;

use serde::Serialize;

use crate::{
    clock::Moment,
    liveness::{Claiming, LoopState, Standing},
    store::NodeKey,
};

/// Slots of one kind.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct Slots {
    pub used: usize,
    pub free: usize,
}

/// The state of one engine at one moment, as JavaScript sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `healthy`: all is well. `degraded`: it works, but less than it could or not for long. `unhealthy`: it takes no work.
    pub status: &'static str,
    /// What is not as it should be, for people; empty when healthy.
    pub reasons: Vec<&'static str>,
    /// Id of the node.
    pub node_id: String,
    /// Its epoch; it grows when the node was declared dead and registered again.
    pub epoch: i64,
    /// Time since the last successful heartbeat was sent.
    pub heartbeat_age_ms: Option<u64>,
    /// Whether the last call on the liveness connection succeeded.
    pub database_reachable: bool,
    /// Whether the node starts nothing because the others may take over soon.
    pub fenced: bool,
    /// `healthy`, `stalled` or `hung`.
    pub event_loop: &'static str,
    /// A part of the engine that makes no progress.
    pub stuck_part: Option<&'static str>,
    /// `all`, `unowned` (after an outage) or `nothing`.
    pub claims: &'static str,
    /// Turns in progress and free places.
    pub orchestration_slots: Slots,
    /// Activities in progress and free places.
    pub activity_slots: Slots,
}

/// What [`Health`] is made of.
pub(super) struct Findings<'a> {
    pub(super) standing: &'a Standing,
    pub(super) node: NodeKey,
    pub(super) late_after: Duration,
    pub(super) stopping: bool,
    pub(super) orchestration_slots: Slots,
    pub(super) activity_slots: Slots,
}

impl Findings<'_> {
    pub(super) fn judge(self, now: Moment) -> Health {
        let standing = self.standing;
        let age = standing.heartbeat_age(now);
        let (fenced, event_loop, stuck) = (standing.fenced(now), standing.event_loop(), standing.stuck());
        let reachable = standing.reachable();
        let mut bad = Vec::new();
        let mut poor = Vec::new();
        let note = |list: &mut Vec<&'static str>, holds: bool, text| {
            if holds {
                list.push(text);
            }
        };
        note(&mut bad, fenced, "no heartbeat for too long: nothing is started");
        note(&mut bad, event_loop == LoopState::Hung, "the JavaScript loop hangs: its work was given up");
        note(&mut bad, stuck.is_some(), "a part of the engine makes no progress");
        note(&mut poor, event_loop == LoopState::Stalled, "the JavaScript loop stands still");
        note(&mut poor, !reachable, "the database did not answer");
        note(&mut poor, !fenced && age.is_none_or(|age| age > self.late_after), "the last heartbeat is late");
        note(&mut poor, self.stopping, "the runtime stops");
        let status = match (bad.is_empty(), poor.is_empty()) {
            (false, _) => "unhealthy",
            (true, false) => "degraded",
            (true, true) => "healthy",
        };
        let claims = match standing.claiming(now) {
            _ if self.stopping => "nothing",
            Claiming::All => "all",
            Claiming::Unowned => "unowned",
            Claiming::Nothing => "nothing",
        };
        bad.append(&mut poor);
        Health {
            status,
            reasons: bad,
            node_id: self.node.id,
            epoch: self.node.epoch,
            heartbeat_age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            database_reachable: reachable,
            fenced,
            event_loop: event_loop.word(),
            stuck_part: stuck,
            claims,
            orchestration_slots: self.orchestration_slots,
            activity_slots: self.activity_slots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;

    const SECOND: Duration = Duration::from_secs(1);

    fn judge(standing: &Standing, now: Moment, stopping: bool) -> Health {
        let slots = || Slots { used: 1, free: 3 };
        let node = NodeKey { id: "a".to_owned(), epoch: 7 };
        let late_after = 10 * SECOND;
        let (orchestration_slots, activity_slots) = (slots(), slots());
        Findings { standing, node, late_after, stopping, orchestration_slots, activity_slots }.judge(now)
    }

    #[test]
    fn a_node_that_is_heard_is_healthy_a_late_one_degraded_and_a_fenced_one_unhealthy() {
        let standing = Standing::new(&EngineConfig::default());
        let start = Moment::now();
        assert_eq!(judge(&standing, start, false).status, "degraded", "not registered yet");
        standing.heard(start);
        let health = judge(&standing, start.plus(SECOND), false);
        assert_eq!((health.status, health.reasons.len(), health.claims), ("healthy", 0, "all"));
        assert_eq!(health.heartbeat_age_ms, Some(1_000));
        assert_eq!(judge(&standing, start.plus(SECOND), true).status, "degraded");
        let late = judge(&standing, start.plus(11 * SECOND), false);
        assert_eq!((late.status, late.reasons), ("degraded", vec!["the last heartbeat is late"]));
        let fenced = judge(&standing, start.plus(20 * SECOND), false);
        assert_eq!((fenced.status, fenced.fenced, fenced.claims), ("unhealthy", true, "nothing"));
    }

    #[test]
    fn a_failed_call_a_stalled_and_a_hung_loop_are_told() {
        let standing = Standing::new(&EngineConfig::default());
        let start = Moment::now();
        standing.heard(start);
        standing.failed(start);
        let health = judge(&standing, start, false);
        assert_eq!((health.status, health.database_reachable, health.claims), ("degraded", false, "unowned"));
        standing.set_event_loop(LoopState::Stalled);
        assert_eq!(judge(&standing, start, false).event_loop, "stalled");
        standing.set_event_loop(LoopState::Hung);
        assert_eq!(judge(&standing, start, false).status, "unhealthy");
    }
}
