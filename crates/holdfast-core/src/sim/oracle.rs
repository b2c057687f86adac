//! What must hold after every step: the invariants that the tables can show, on the instances that the step touched.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_replay::event::StoredEvent;
use serde_json::Value;

use super::model::{LeaseRow, Model, NEVER, TurnRow};
use crate::store::{ActivityKey, commit::RIDE_PATIENCE_MS};

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, as the design numbers them.
    pub invariant: &'static str,
    /// What was seen.
    pub text: String,
}

/// What the oracle has seen so far.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// Length of each history.
    lengths: BTreeMap<(String, i64), usize>,
    /// Message id of each event raised, by its number, and whether it is in a history.
    raised: BTreeMap<u64, (String, i64, bool)>,
    /// The last of them in each instance's history.
    delivered: BTreeMap<(String, String), i64>,
    leases: BTreeMap<String, LeaseRow>,
    ended: BTreeMap<String, &'static str>,
    /// What each instance was first started with.
    inputs: BTreeMap<String, String>,
    latest: i64,
    found: Vec<Violation>,
}

impl Oracle {
    /// Looks at what changed; what does not hold.
    pub(super) fn look(&mut self, model: &mut Model) -> Vec<Violation> {
        self.latest = self.latest.max(model.now);
        for (invariant, text) in std::mem::take(&mut model.wrong) {
            self.found.push(Violation { invariant, text });
        }
        let dirty = std::mem::take(&mut model.dirty);
        for instance in &dirty {
            self.note_raised(model, instance);
            self.look_at_histories(model, instance);
            self.look_at_rows(model, instance);
            self.look_at_leases(model, instance);
            self.look_at_end(model, instance);
        }
        std::mem::take(&mut self.found)
    }

    /// Whether an event was ever in an inbox.
    pub(super) fn was_raised(&self, number: u64) -> bool {
        self.raised.contains_key(&number)
    }

    /// What an instance was first started with.
    pub(super) fn first_input(&self, instance: &str) -> Option<&str> {
        self.inputs.get(instance).map(String::as_str)
    }

    fn fail(&mut self, invariant: &'static str, text: String) {
        self.found.push(Violation { invariant, text });
    }

    fn note_raised(&mut self, model: &Model, instance: &str) {
        for (id, row) in model.messages(instance) {
            if let holdfast_replay::MessageBody::EventRaised { data, .. } = &row.body
                && let Ok(number) = data.as_str().parse()
            {
                self.raised.entry(number).or_insert((instance.to_owned(), id, false));
            }
        }
    }

    fn look_at_histories(&mut self, model: &Model, instance: &str) {
        let range = (instance.to_owned(), i64::MIN)..=(instance.to_owned(), i64::MAX);
        for (key, events) in model.history.range(range) {
            let before = self.lengths.insert(key.clone(), events.len()).unwrap_or(0);
            if events.len() < before {
                self.fail("I1", format!("the history of {instance} has become shorter"));
            }
            for index in before..events.len() {
                if events[index].id.0 as usize != index + 1 {
                    self.fail("I1", format!("the history of {instance} has a gap at {}", index + 1));
                }
                self.look_at_event(instance, events, index);
            }
        }
    }

    fn look_at_event(&mut self, instance: &str, events: &[StoredEvent], index: usize) {
        let event = &events[index];
        let kind = event.kind.as_str();
        let ends = |event: &StoredEvent| {
            matches!(
                event.kind.as_str(),
                "OrchestrationCompleted" | "OrchestrationFailed" | "OrchestrationContinuedAsNew"
            )
        };
        if events[..index].iter().any(ends) {
            self.fail("I2", format!("{instance} goes on after its end with {kind}"));
        }
        let results = [
            "ActivityCompleted",
            "ActivityFailed",
            "TimerFired",
            "SubOrchestrationCompleted",
            "SubOrchestrationFailed",
        ];
        if let Some(source) = event.source.filter(|_| results.contains(&kind)) {
            let twice =
                |other: &StoredEvent| other.source == Some(source) && results.contains(&other.kind.as_str());
            if events[..index].iter().any(twice) {
                self.fail("I3", format!("event {} of {instance} has two results", source.0));
            }
            match events[..index].get((source.0 as usize).wrapping_sub(1)) {
                None => self.fail("I3", format!("a result of {instance} answers no event")),
                Some(asked) if kind == "TimerFired" => self.look_at_timer(instance, asked),
                Some(_) => {}
            }
        }
        if kind == "ExternalEvent" {
            self.look_at_delivery(instance, event);
        }
    }

    fn look_at_timer(&mut self, instance: &str, asked: &StoredEvent) {
        let data: Value = serde_json::from_str(&asked.data).unwrap_or_default();
        let fire_at = data["fire_at_ms"].as_i64().unwrap_or(NEVER);
        if fire_at > self.latest {
            self.fail("I8", format!("a timer of {instance} fired {} ms too early", fire_at - self.latest));
        }
    }

    fn look_at_delivery(&mut self, instance: &str, event: &StoredEvent) {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let Some(number) = data["data"].as_u64() else { return };
        let name = data["name"].as_str().unwrap_or_default().to_owned();
        match self.raised.get_mut(&number) {
            None => self.fail("I12", format!("{instance} has event {number}, which nobody raised")),
            Some((_, _, true)) => self.fail("I12", format!("{instance} has event {number} twice")),
            Some((_, id, seen)) => {
                *seen = true;
                let id = *id;
                let last = self.delivered.insert((instance.to_owned(), name), id).unwrap_or(0);
                if last > id {
                    self.fail("I12", format!("event {number} of {instance} is out of order"));
                }
            }
        }
    }

    /// The orphan query, for one instance.
    fn look_at_rows(&mut self, model: &Model, instance: &str) {
        let (row, turn) = (model.instances.get(instance), model.turns.get(instance));
        let running = row.is_some_and(|row| !row.is_ended());
        if running && turn.is_none() {
            self.fail("I6", format!("{instance} has not ended and has no turn row"));
        }
        if turn.is_some_and(|turn| turn.name.is_some()) && !running {
            self.fail("I6", format!("the turn row of {instance} belongs to no instance that runs"));
        }
        if turn.is_none() && !row.is_some_and(|row| row.poisoned) && model.messages(instance).next().is_some()
        {
            self.fail("I6", format!("a message belongs to {instance}, which is not there"));
        }
        let (Some(row), Some(turn)) = (row, turn) else { return };
        if turn.parked != row.parked {
            self.fail("I6", format!("{instance} is parked in one table only"));
        }
        if row.parked {
            self.fail("I14", format!("{instance} is parked: {}", row.error.as_deref().unwrap_or("no error")));
        }
        if turn.name.is_none() || !running {
            return;
        }
        let events = model.events(instance, turn.execution);
        let told = usize::try_from(turn.history_len).unwrap_or(usize::MAX);
        if told > events.len() || (told < events.len() && !turn.is_behind()) {
            self.fail("I17", format!("the history of {instance} is not as long as its turn row says"));
        }
        let earliest = model.messages(instance).map(|(_, message)| message.due_at).min().unwrap_or(NEVER);
        let earliest = earliest.max(model.now).max(turn.starts_at.unwrap_or(0));
        // A clock that goes back makes due later what was due before.
        let free = turn.lease.owner.is_none() && !turn.parked && !model.went_back;
        // A result that a turn has in hand wakes its instance a little later.
        if free && turn.lease.due_at > earliest.saturating_add(RIDE_PATIENCE_MS) {
            self.fail("I6", format!("a message does not make {instance} due"));
        }
        self.look_at_waits(model, instance, turn, events);
        let missing = self.raised.iter().find(|(_, (to, id, seen))| {
            to == instance && !seen && !model.inbox.contains_key(&(instance.to_owned(), *id))
        });
        if let Some((number, _)) = missing {
            self.fail("I6", format!("event {number} of {instance} was accepted and is lost"));
        }
    }

    /// Somebody works on every step that is waited for. An activity may run without a row under the lease of the turn; when that
    /// is cut off, whoever claims the turn gives it one.
    fn look_at_waits(&mut self, model: &Model, instance: &str, turn: &TurnRow, events: &[StoredEvent]) {
        let execution = turn.execution;
        let answered: BTreeSet<u32> =
            events.iter().filter_map(|event| event.source).map(|source| source.0).collect();
        let told: BTreeSet<u32> = model
            .messages(instance)
            .filter_map(|(_, row)| row.source())
            .filter(|source| source.0 == execution)
            .map(|source| source.1)
            .collect();
        let cancelled = events.iter().rposition(|event| event.kind == "OrchestrationCancelRequested");
        for (index, event) in events.iter().enumerate() {
            // A cancellation takes every timer back and says so once.
            if event.kind == "TimerCreated" && cancelled.is_some_and(|cancelled| cancelled > index) {
                continue;
            }
            let id = event.id.0;
            let waits = matches!(
                event.kind.as_str(),
                "ActivityScheduled" | "TimerCreated" | "SubOrchestrationScheduled"
            );
            if !waits || answered.contains(&id) || told.contains(&id) {
                continue;
            }
            let event_number = i32::try_from(id).unwrap_or(i32::MAX);
            let key = ActivityKey { instance: instance.to_owned(), execution, event: event_number };
            let is_child = |parent: &holdfast_replay::ParentLink| {
                parent.instance == instance && parent.execution == execution && parent.event == event.id
            };
            let child = || {
                model
                    .instances
                    .values()
                    .any(|row| !row.is_ended() && row.parent.as_ref().is_some_and(is_child))
            };
            let rowless = event.kind == "ActivityScheduled" && turn.is_behind();
            if !rowless && !model.activities.contains_key(&key) && !child() {
                self.fail("I6", format!("nobody works on {} {id} of {instance}", event.kind));
            }
        }
    }

    fn look_at_leases(&mut self, model: &Model, instance: &str) {
        let mut leases: Vec<(String, LeaseRow)> = Vec::new();
        if let Some(row) = model.turns.get(instance) {
            leases.push((format!("the turn of {instance}"), row.lease.clone()));
        }
        let from = ActivityKey { instance: instance.to_owned(), execution: i64::MIN, event: i32::MIN };
        for (key, row) in model.activities.range(from..).take_while(|(key, _)| key.instance == instance) {
            let gone = model
                .instances
                .get(instance)
                .is_none_or(|row| row.is_ended() || row.execution != key.execution);
            if gone {
                self.fail(
                    "I6",
                    format!("activity {} of {instance} belongs to no execution that runs", key.event),
                );
            }
            let what = format!("activity {} of {instance}, execution {}", key.event, key.execution);
            leases.push((what, row.lease.clone()));
        }
        for (what, lease) in leases {
            if let Some(before) = self.leases.get(&what).cloned() {
                if lease.fence < before.fence && lease.fence != 0 {
                    self.fail("I4", format!("the fence of {what} went back"));
                }
                let claimed = lease.owner.is_some() && lease.fence != before.fence;
                if claimed && lease.deliveries < 1 {
                    self.fail("I10", format!("the claim of {what} is not counted"));
                }
            }
            self.leases.insert(what, lease);
        }
    }

    fn look_at_end(&mut self, model: &Model, instance: &str) {
        let Some(row) = model.instances.get(instance) else { return };
        self.inputs.entry(instance.to_owned()).or_insert_with(|| row.input.clone());
        if let Some(before) = self.ended.get(instance)
            && *before != row.status
        {
            self.fail("I2", format!("{instance} was {before} and is {}", row.status));
        }
        if row.is_ended() {
            self.ended.insert(instance.to_owned(), row.status);
        }
    }
}
