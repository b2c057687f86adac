//! The commit batch on the model: the statements of `sql/commit` in their order, each on what the ones before left.
//!
//! Invariant: a batch is written whole; what would break a key of a table is a fault of the engine and is told as such.

use std::collections::BTreeSet;

use holdfast_replay::{EventId, MessageBody};

use super::model::{ActivityRow, InboxRow, LeaseRow, Model, Mutant, NEVER, TurnRow};
use crate::{
    error::{Error, ErrorKind, Result},
    store::{
        ActivityKey, Fence, NodeKey,
        commit::{
            ActivityCommit, ActivityOutcome, CommitItem, CommitOutcome, Send, Start, TurnCommit, TurnEnd,
        },
    },
};

impl Model {
    /// Runs a batch; the outcome at index i belongs to item i.
    pub(super) fn commit(&mut self, items: &[CommitItem]) -> Result<Vec<CommitOutcome>> {
        let mut outcomes = vec![CommitOutcome::Fenced; items.len()];
        self.make_turn_rows(items);
        self.yield_to_cancels(items, &mut outcomes);
        self.find_settled(items, &mut outcomes);
        self.write_histories(items)?;
        for turn in turns(items).map(|(_, turn)| turn) {
            if self.passes(turn) {
                self.take_back(turn);
            }
        }
        self.settle_activities(items, &mut outcomes);
        self.queue_work(items)?;
        self.start_instances(items, &mut outcomes);
        self.send_messages(items, &mut outcomes);
        self.change_instances(items);
        self.settle_turns(items, &mut outcomes);
        Ok(outcomes)
    }

    /// Whether a turn's lease stands.
    pub(super) fn passes(&self, turn: &TurnCommit) -> bool {
        self.turns.get(&turn.instance).is_some_and(|row| self.stands(&row.lease, turn.fence, &turn.node))
    }

    fn make_turn_rows(&mut self, items: &[CommitItem]) {
        let mut wanted = BTreeSet::new();
        for item in items {
            match item {
                CommitItem::Turn(turn) if self.passes(turn) => {
                    wanted.extend(turn.starts.iter().map(|start| start.instance.clone()));
                }
                CommitItem::Send(Send { instance, .. }) | CommitItem::Start(Start { instance, .. }) => {
                    wanted.insert(instance.clone());
                }
                _ => {}
            }
        }
        for instance in wanted {
            if self.instances.get(&instance).is_none_or(|row| !row.is_ended()) {
                let lease = LeaseRow { due_at: NEVER, ..LeaseRow::default() };
                let fresh = TurnRow { lease, execution: 1, ..TurnRow::default() };
                self.turns.entry(instance.clone()).or_insert(fresh);
                self.dirty.insert(instance);
            }
        }
    }

    fn yield_to_cancels(&mut self, items: &[CommitItem], outcomes: &mut [CommitOutcome]) {
        for (index, turn) in turns(items) {
            let completes = matches!(turn.end, Some(TurnEnd::Completed { .. }));
            let holds = self.turns.get(&turn.instance).is_some_and(|row| row.lease.fence == turn.fence.0);
            if !completes || !holds || !self.has_cancel(&turn.instance) {
                continue;
            }
            let fence = self.next_fence();
            let now = self.now;
            if let Some(row) = self.turns.get_mut(&turn.instance) {
                row.lease.fence = fence;
                row.lease.disown();
                row.lease.due_at = now;
                row.lease.deliveries = (row.lease.deliveries - 1).max(0);
            }
            outcomes[index] = CommitOutcome::Yielded;
        }
    }

    fn find_settled(&mut self, items: &[CommitItem], outcomes: &mut [CommitOutcome]) {
        if self.mutant == Mutant::Forgetful {
            return;
        }
        for (index, turn) in turns(items) {
            let row = self.turns.get(&turn.instance);
            let settled = match row.map(|row| &row.lease) {
                Some(lease) if lease.fence == turn.fence.0 => false,
                Some(lease) if lease.last_fence == turn.fence.0 => true,
                _ => self.instances.get(&turn.instance).is_some_and(|row| row.last_fence == turn.fence.0),
            };
            if settled {
                outcomes[index] = CommitOutcome::Done { more_work: false };
            }
        }
    }

    fn write_histories(&mut self, items: &[CommitItem]) -> Result<()> {
        for (_, turn) in turns(items) {
            if !self.passes(turn) {
                continue;
            }
            let recorded = self.events(&turn.instance, turn.execution).len();
            let ids = turn.events.iter().map(|event| event.id.0 as usize);
            if !ids.eq(recorded + 1..=recorded + turn.events.len()) {
                let text = format!(
                    "a turn of {} writes events {:?} behind {recorded}",
                    turn.instance,
                    turn.events.iter().map(|event| event.id.0).collect::<Vec<_>>()
                );
                self.wrong.push(("I5", text));
                return Err(Error::new(ErrorKind::Query, "duplicate key value violates history_pkey"));
            }
            let history = self.history.entry((turn.instance.clone(), turn.execution)).or_default();
            history.extend(turn.events.iter().cloned());
            self.dirty.insert(turn.instance.clone());
        }
        Ok(())
    }

    /// Messages used up, timers and activities that are wanted no longer.
    fn take_back(&mut self, turn: &TurnCommit) {
        for id in &turn.consumed {
            self.inbox.remove(&(turn.instance.clone(), *id));
        }
        let ids: Vec<i64> = self.messages(&turn.instance).map(|(id, _)| id).collect();
        for id in ids {
            let key = (turn.instance.clone(), id);
            let source = self.inbox[&key].source();
            let unwanted = |event: &i32| source == Some((turn.execution, event.unsigned_abs()));
            if turn.cancelled_timers.iter().any(unwanted) {
                self.inbox.remove(&key);
            }
        }
        for event in &turn.cancelled_activities {
            self.activities.remove(&key_of(turn, *event));
        }
    }

    fn settle_activities(&mut self, items: &[CommitItem], outcomes: &mut [CommitOutcome]) {
        let activities = || {
            items.iter().enumerate().filter_map(|(index, item)| match item {
                CommitItem::Activity(activity) => Some((index, activity)),
                _ => None,
            })
        };
        for (index, activity) in activities() {
            if self.was_settled(activity) {
                outcomes[index] = CommitOutcome::Done { more_work: false };
            }
        }
        for (index, activity) in activities() {
            let row = self.activities.get(&activity.key);
            let held = row.is_some_and(|row| self.stands(&row.lease, activity.fence, &activity.node));
            if !held {
                continue;
            }
            self.settled.insert(activity.fence.0);
            let more_work = match &activity.outcome {
                ActivityOutcome::Ended(body) => self.end_activity(&activity.key, body),
                ActivityOutcome::Retry { delay_ms, attempt } => {
                    self.retry_activity(activity, *delay_ms, *attempt)
                }
                ActivityOutcome::StandaloneEnded(_) => false,
            };
            outcomes[index] = CommitOutcome::Done { more_work };
        }
    }

    fn was_settled(&self, activity: &ActivityCommit) -> bool {
        if self.mutant == Mutant::Forgetful {
            return false;
        }
        match self.activities.get(&activity.key).map(|row| &row.lease) {
            Some(lease) if lease.fence == activity.fence.0 => false,
            Some(lease) if lease.last_fence == activity.fence.0 => true,
            _ => self.is_answered(&activity.key),
        }
    }

    fn end_activity(&mut self, key: &ActivityKey, body: &MessageBody) -> bool {
        self.activities.remove(key);
        self.dirty.insert(key.instance.clone());
        if !self.turns.contains_key(&key.instance) {
            return false;
        }
        let row = InboxRow { due_at: self.now, body: body.clone() };
        if self.put_message(&key.instance, row) {
            self.wake(&key.instance, false, true);
        }
        true
    }

    /// A row that nobody holds is due now.
    pub(super) fn wake(&mut self, instance: &str, cancel: bool, starts: bool) {
        if self.mutant == Mutant::NoWake {
            return;
        }
        let now = self.now;
        let Some(row) = self.turns.get_mut(instance) else { return };
        let waits = row.parked || (!starts && row.starts_at.is_some_and(|at| at > now));
        if row.lease.owner.is_none() && row.name.is_some() && (!waits || cancel) && row.lease.due_at > now {
            row.lease.due_at = now;
        }
    }

    fn retry_activity(&mut self, activity: &ActivityCommit, delay_ms: i64, attempt: i32) -> bool {
        let (fence, now) = (self.next_fence(), self.now);
        let Some(row) = self.activities.get_mut(&activity.key) else { return false };
        row.lease = LeaseRow {
            due_at: now + delay_ms.max(0),
            fence,
            last_fence: row.lease.fence,
            ..LeaseRow::default()
        };
        row.attempt = attempt;
        if let Some(details) = &activity.heartbeat {
            row.heartbeat = Some(details.as_str().to_owned());
        }
        delay_ms <= 0
    }

    fn queue_work(&mut self, items: &[CommitItem]) -> Result<()> {
        for (_, turn) in turns(items) {
            if !self.passes(turn) {
                continue;
            }
            for task in &turn.activities {
                let row = ActivityRow {
                    lease: LeaseRow { due_at: self.now, ..LeaseRow::default() },
                    name: task.name.clone(),
                    input: task.input.clone(),
                    attempt: 1,
                    retry: task.retry.clone(),
                    timeout_ms: task.timeout_ms,
                    heartbeat: None,
                    orchestration: (turn.name.clone(), turn.version.clone()),
                    scheduled_at: self.now,
                };
                if self.activities.insert(key_of(turn, task.event), row).is_some() {
                    self.wrong
                        .push(("I3", format!("{} queues activity {} twice", turn.instance, task.event)));
                    return Err(Error::new(
                        ErrorKind::Query,
                        "duplicate key value violates activity_queue_pkey",
                    ));
                }
            }
            for timer in &turn.timers {
                let source = EventId(timer.event.unsigned_abs());
                let body = MessageBody::TimerFired { execution: turn.execution, source };
                let row = InboxRow { due_at: timer.fire_at_ms.max(0), body };
                self.put_message(&turn.instance, row);
            }
        }
        Ok(())
    }

    fn settle_turns(&mut self, items: &[CommitItem], outcomes: &mut [CommitOutcome]) {
        let ends = |turn: &TurnCommit| !matches!(turn.end, None | Some(TurnEnd::ContinuedAsNew { .. }));
        for (index, turn) in turns(items) {
            if !ends(turn) && self.passes(turn) {
                let more_work = self.settle_turn(turn);
                outcomes[index] = CommitOutcome::Done { more_work };
            }
        }
        for (index, turn) in turns(items) {
            if ends(turn) && self.passes(turn) {
                self.settled.insert(turn.fence.0);
                self.turns.remove(&turn.instance);
                if !turn.poisoned {
                    self.inbox.retain(|(instance, _), _| *instance != turn.instance);
                }
                self.dirty.insert(turn.instance.clone());
                outcomes[index] = CommitOutcome::Done { more_work: false };
                retract(items, outcomes, &turn.instance);
            }
        }
    }

    /// Whether it is due at once.
    fn settle_turn(&mut self, turn: &TurnCommit) -> bool {
        self.settled.insert(turn.fence.0);
        let now = self.now;
        let again = match &turn.end {
            Some(TurnEnd::ContinuedAsNew { version, .. }) => Some(version.clone()),
            _ => None,
        };
        let earliest = self.messages(&turn.instance).map(|(_, row)| row.due_at).min().unwrap_or(NEVER);
        let due_at = if again.is_some() || (turn.park.is_some() && self.has_cancel(&turn.instance)) {
            now
        } else if turn.park.is_some() {
            NEVER
        } else {
            earliest.max(now)
        };
        let fence = self.next_fence();
        self.dirty.insert(turn.instance.clone());
        let Some(row) = self.turns.get_mut(&turn.instance) else { return false };
        let progress = !turn.consumed.is_empty() || !turn.events.is_empty() || turn.park.is_some();
        row.lease = LeaseRow {
            due_at,
            fence,
            last_fence: row.lease.fence,
            deliveries: if progress { 0 } else { row.lease.deliveries },
            ..LeaseRow::default()
        };
        row.parked = turn.park.is_some();
        (row.execution, row.history_len, row.version) = match (again, &turn.park) {
            (Some(version), _) => (turn.execution + 1, 0, version),
            (None, Some(park)) => (turn.execution, turn.history_len, park.version.clone()),
            (None, None) => (turn.execution, turn.history_len, Some(turn.version.clone())),
        };
        due_at <= now
    }

    /// Removes a node and what it holds becomes free.
    pub(super) fn say_goodbye(&mut self, node: &NodeKey) {
        self.nodes.remove(&(node.id.clone(), node.epoch));
        self.free(true, node);
        self.free(false, node);
    }

    /// Fences that a commit of these items would settle once more.
    pub(super) fn settled_before(&self, items: &[CommitItem]) -> Vec<(usize, Fence)> {
        let fence = |item: &CommitItem| match item {
            CommitItem::Turn(turn) => Some(turn.fence),
            CommitItem::Activity(activity) => Some(activity.fence),
            _ => None,
        };
        let fences = items.iter().enumerate().filter_map(|(index, item)| Some((index, fence(item)?)));
        fences.filter(|(_, fence)| self.settled.contains(&fence.0)).collect()
    }
}

/// A message to an instance that ends in the same batch was dropped with it.
fn retract(items: &[CommitItem], outcomes: &mut [CommitOutcome], ended: &str) {
    for (item, outcome) in items.iter().zip(outcomes) {
        if matches!(item, CommitItem::Send(send) if send.instance == ended) {
            *outcome = CommitOutcome::AlreadyEnded;
        }
    }
}

fn key_of(turn: &TurnCommit, event: i32) -> ActivityKey {
    ActivityKey { instance: turn.instance.clone(), execution: turn.execution, event }
}

/// The turns of a batch.
pub(super) fn turns(items: &[CommitItem]) -> impl Iterator<Item = (usize, &TurnCommit)> {
    items.iter().enumerate().filter_map(|(index, item)| match item {
        CommitItem::Turn(turn) => Some((index, &**turn)),
        _ => None,
    })
}
