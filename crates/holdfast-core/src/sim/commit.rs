//! The commit batch on the model: the statements of `sql/commit` in their order, each on what the ones before left.
//!
//! Invariant: a batch is written whole; what would break a key of a table is a fault of the engine and is told as such.
//! length: the steps of one commit, which read in their order.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_replay::{EventId, MessageBody};

use super::model::{ActivityRow, InboxRow, LeaseRow, Model, Mutant, NEVER, TurnRow};
use crate::{
    error::{Error, ErrorKind, Result},
    store::{
        ActivityKey, Fence,
        commit::{
            ActivityCommit, ActivityOutcome, BelatedActivity, CommitItem, CommitOutcome, HandedTask,
            NewActivity, RIDE_PATIENCE_MS, Send, SettledTurn, TurnCommit, TurnEnd,
        },
        replay_version,
    },
};

/// A turn that stands, with its place in the batch.
pub(super) type Standing<'a> = (usize, &'a TurnCommit);

impl Model {
    /// Runs a batch; the outcome at index i belongs to item i. Items that were run before are run `again`.
    pub(super) fn commit(&mut self, items: &[CommitItem], again: bool) -> Result<Vec<CommitOutcome>> {
        let mut decided = vec![None; items.len()];
        self.yield_to_cancels(items, &mut decided);
        if again && self.mutant != Mutant::Forgetful {
            self.find_settled(items, &mut decided);
            self.release_handed(items);
            self.release_retaken(items);
            self.release_begun(items);
        }
        let ended = self.end_activities(items, &decided);
        let used_up = self.decide(items, &ended, again, &mut decided);
        let standing: Vec<Standing<'_>> =
            turns(items).filter(|(index, _)| decided[*index].is_none()).collect();
        self.make_turn_rows(items, &standing);
        let mut outcomes: Vec<CommitOutcome> =
            decided.iter().map(|decided| decided.clone().unwrap_or(CommitOutcome::Fenced)).collect();
        self.write_histories(&standing)?;
        for (_, turn) in &standing {
            self.take_back(turn);
        }
        for (index, item) in items.iter().enumerate() {
            if let (CommitItem::Activity(activity), None) = (item, &decided[index]) {
                outcomes[index] = self.settle_activity(activity, used_up.contains(&index));
            }
        }
        self.enqueue(items, &mut outcomes);
        let mut handed = self.queue_work(&standing)?;
        self.change_values(&standing);
        self.start_instances(items, &standing, &mut outcomes);
        self.send_messages(items, &standing, &mut outcomes);
        self.change_instances(&standing);
        self.settle_turns(items, &standing, &mut handed, &mut outcomes);
        Ok(outcomes)
    }

    /// Whether a turn's lease stands.
    fn passes(&self, turn: &TurnCommit) -> bool {
        self.turns.get(&turn.instance).is_some_and(|row| self.stands(&row.lease, turn.fence, &turn.node))
    }

    /// The rows of activities that end go, where their leases stand. One without a row ends under the lease of its turn.
    fn end_activities(
        &mut self,
        items: &[CommitItem],
        decided: &[Option<CommitOutcome>],
    ) -> BTreeMap<ActivityKey, usize> {
        let mut ended = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let CommitItem::Activity(activity) = item else { continue };
            if rowless(item).is_some() {
                let row = self.turns.get(&activity.key.instance);
                let held = row.is_some_and(|row| self.stands(&row.lease, activity.fence, &activity.node));
                if held && decided[index].is_none() {
                    ended.insert(activity.key.clone(), index);
                }
                continue;
            }
            let row = self.activities.get(&activity.key);
            let held = row.is_some_and(|row| self.stands(&row.lease, activity.fence, &activity.node));
            if matches!(activity.outcome, ActivityOutcome::Ended(_)) && held {
                self.activities.remove(&activity.key);
                self.dirty.insert(activity.key.instance.clone());
                ended.insert(activity.key.clone(), index);
            }
        }
        ended
    }

    /// Which items are decided; the activities whose result a turn uses.
    fn decide(
        &mut self,
        items: &[CommitItem],
        ended: &BTreeMap<ActivityKey, usize>,
        again: bool,
        decided: &mut [Option<CommitOutcome>],
    ) -> BTreeSet<usize> {
        // The result of a task that is to end in this batch is that one, unless the batch was run before.
        let here: BTreeSet<ActivityKey> = items.iter().filter_map(|item| ending(item).cloned()).collect();
        for (index, item) in items.iter().enumerate() {
            if decided[index].is_some() {
                continue;
            }
            let stands = match item {
                CommitItem::Turn(turn) => {
                    let known = |source: &i32| {
                        let key = key_of(turn, *source);
                        let looks = again || !here.contains(&key);
                        ended.contains_key(&key) || (looks && self.result_of(turn, *source).is_some())
                    };
                    self.passes(turn) && turn.results.iter().all(known)
                }
                CommitItem::Activity(activity) => match activity.outcome {
                    ActivityOutcome::Ended(_) => ended.get(&activity.key) == Some(&index),
                    _ => true,
                },
                _ => true,
            };
            decided[index] = (!stands).then_some(CommitOutcome::Fenced);
        }
        let mut used_up = BTreeSet::new();
        for (index, turn) in turns(items) {
            if decided[index].is_some() {
                continue;
            }
            for source in &turn.results {
                match (ended.get(&key_of(turn, *source)), self.result_of(turn, *source)) {
                    (Some(index), _) => drop(used_up.insert(*index)),
                    (None, Some(id)) => drop(self.inbox.remove(&(turn.instance.clone(), id))),
                    (None, None) => {}
                }
            }
            for event in &turn.cancelled_activities {
                if let Some(index) = ended.get(&key_of(turn, *event)) {
                    decided[*index] = Some(CommitOutcome::Fenced);
                }
            }
        }
        used_up
    }

    /// The message with the result of an activity.
    fn result_of(&self, turn: &TurnCommit, event: i32) -> Option<i64> {
        let source = Some((turn.execution, event.unsigned_abs()));
        self.messages(&turn.instance).find(|(_, row)| row.source() == source).map(|(id, _)| id)
    }

    /// Turn rows that messages and children need.
    fn make_turn_rows(&mut self, items: &[CommitItem], standing: &[Standing<'_>]) {
        let mut wanted = BTreeSet::new();
        for (_, turn) in standing {
            wanted.extend(turn.starts.iter().map(|start| start.instance.clone()));
        }
        for item in items {
            if let CommitItem::Send(Send { instance, .. }) = item {
                wanted.insert(instance.clone());
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

    fn yield_to_cancels(&mut self, items: &[CommitItem], decided: &mut [Option<CommitOutcome>]) {
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
                row.cut_off = true;
            }
            decided[index] = Some(CommitOutcome::Yielded);
        }
    }

    fn find_settled(&self, items: &[CommitItem], decided: &mut [Option<CommitOutcome>]) {
        for (index, item) in items.iter().enumerate() {
            let found = match item {
                CommitItem::Turn(turn) if self.was_kept(turn) => Some(CommitOutcome::Kept),
                // What it took is given back.
                CommitItem::Turn(turn) if self.was_turn_settled(turn) => {
                    let more_work = turn.retake_ms.is_some() || !taken(turn).is_empty();
                    Some(CommitOutcome::Done { more_work })
                }
                CommitItem::Activity(activity) if self.was_settled(activity) => {
                    Some(CommitOutcome::Done { more_work: false })
                }
                _ => None,
            };
            if decided[index].is_none() {
                decided[index] = found;
            }
        }
    }

    /// What an earlier run of a turn leased to its node is given back, unstarted if it got its row before its body ran.
    fn release_handed(&mut self, items: &[CommitItem]) {
        for (_, turn) in turns(items) {
            let settled = self.turns.get(&turn.instance).is_some_and(|row| row.lease.fence != turn.fence.0);
            for (task, deliveries) in taken(turn).into_iter().filter(|_| settled) {
                let (key, now) = (key_of(turn, task.event), self.now);
                let as_leased = |row: &ActivityRow| {
                    row.lease.is_owned_by(&turn.node) && row.lease.deliveries == deliveries.max(1)
                };
                if !self.activities.get(&key).is_some_and(as_leased) {
                    continue;
                }
                let fence = self.next_fence();
                if let Some(row) = self.activities.get_mut(&key) {
                    row.lease.disown();
                    (row.lease.due_at, row.lease.deliveries, row.lease.fence) = (now, deliveries, fence);
                }
                self.dirty.insert(key.instance);
            }
        }
    }

    /// A turn whose lease goes on and whose events are there.
    fn was_kept(&self, turn: &TurnCommit) -> bool {
        let holds = self.turns.get(&turn.instance).is_some_and(|row| row.lease.fence == turn.fence.0);
        let recorded = self.events(&turn.instance, turn.execution).len();
        let first = turn.events.first().filter(|_| turn.keeps);
        holds && first.is_some_and(|event| event.id.0 as usize <= recorded)
    }

    pub(super) fn was_turn_settled(&self, turn: &TurnCommit) -> bool {
        match self.turns.get(&turn.instance).map(|row| &row.lease) {
            Some(lease) if lease.fence == turn.fence.0 => false,
            Some(lease) if lease.last_fence == turn.fence.0 => true,
            _ => self.instances.get(&turn.instance).is_some_and(|row| row.last_fence == turn.fence.0),
        }
    }

    fn write_histories(&mut self, standing: &[Standing<'_>]) -> Result<()> {
        for (_, turn) in standing {
            let recorded = self.events(&turn.instance, turn.execution).len();
            let ids = turn.events.iter().map(|event| event.id.0 as usize);
            if !ids.eq(recorded + 1..=recorded + turn.events.len()) {
                let text = format!(
                    "a turn of {} writes events {:?} behind {recorded}",
                    turn.instance,
                    turn.events.iter().map(|event| event.id.0).collect::<Vec<_>>()
                );
                self.wrong.push(("I5", text));
                return Err(Error::new(ErrorKind::Query, "duplicate key value violates history_turn_pkey"));
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

    /// Tells a result, unless a turn of the batch used it, or puts the task back for its next try.
    fn settle_activity(&mut self, activity: &ActivityCommit, used_up: bool) -> CommitOutcome {
        let more_work = match &activity.outcome {
            ActivityOutcome::Ended(_) if used_up => false,
            ActivityOutcome::Ended(body) => self.tell_result(activity, body),
            ActivityOutcome::Retry { delay_ms, attempt } => {
                let row = self.activities.get(&activity.key);
                if !row.is_some_and(|row| self.stands(&row.lease, activity.fence, &activity.node)) {
                    return CommitOutcome::Fenced;
                }
                self.retry_activity(activity, *delay_ms, *attempt)
            }
            ActivityOutcome::StandaloneEnded(end) => return self.end_standalone(activity, end),
        };
        CommitOutcome::Done { more_work }
    }

    pub(super) fn was_settled(&self, activity: &ActivityCommit) -> bool {
        match self.activities.get(&activity.key).map(|row| &row.lease) {
            _ if activity.rowless => self.is_answered(&activity.key),
            Some(lease) if lease.fence == activity.fence.0 => false,
            Some(lease) if lease.last_fence == activity.fence.0 => true,
            _ if activity.key.execution == 0 => self.was_standalone_settled(activity),
            _ => self.is_answered(&activity.key),
        }
    }

    fn tell_result(&mut self, activity: &ActivityCommit, body: &MessageBody) -> bool {
        let instance = &activity.key.instance;
        if !self.turns.contains_key(instance) {
            return false;
        }
        let row = InboxRow { due_at: self.now, body: body.clone() };
        if self.put_message(instance, row) && self.mutant != Mutant::NoWake {
            // A turn that has it in hand is given time to use it up.
            let due_at = self.now + if activity.rides { RIDE_PATIENCE_MS } else { 0 };
            if let Some(row) = self.turns.get_mut(instance)
                && row.lease.owner.is_none()
                && row.name.is_some()
                && !row.parked
            {
                row.lease.due_at = row.lease.due_at.min(due_at);
            }
        }
        !activity.rides
    }

    /// A row that nobody holds is due now; one that does not go on by itself for a cancel only.
    pub(super) fn wake(&mut self, instance: &str, cancel: bool) {
        if self.mutant == Mutant::NoWake {
            return;
        }
        let now = self.now;
        let Some(row) = self.turns.get_mut(instance) else { return };
        let waits = row.parked || row.starts_at.is_some_and(|at| at > now);
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

    /// Queues tasks and timers; the tasks that the node of their turn has at once, by instance.
    fn queue_work(&mut self, standing: &[Standing<'_>]) -> Result<BTreeMap<String, Vec<HandedTask>>> {
        let mut handed: BTreeMap<String, Vec<HandedTask>> = BTreeMap::new();
        for (_, turn) in standing {
            for task in &turn.activities {
                let lease = LeaseRow { due_at: self.now, ..LeaseRow::default() };
                let row = self.queued(turn, task, lease, &mut handed);
                if self.activities.insert(key_of(turn, task.event), row).is_some() {
                    self.wrong
                        .push(("I3", format!("{} queues activity {} twice", turn.instance, task.event)));
                    return Err(Error::new(
                        ErrorKind::Query,
                        "duplicate key value violates activity_queue_pkey",
                    ));
                }
            }
            for belated in &turn.belated {
                self.queue_belated(turn, belated, &mut handed);
            }
            for timer in &turn.timers {
                let source = EventId(timer.event.unsigned_abs());
                let body = MessageBody::TimerFired { execution: turn.execution, source };
                let row = InboxRow { due_at: timer.fire_at_ms.max(0), body };
                self.put_message(&turn.instance, row);
            }
        }
        Ok(handed)
    }

    /// A task as it is queued, leased to the node of its turn where the turn says so.
    fn queued(
        &mut self,
        turn: &TurnCommit,
        task: &NewActivity,
        mut lease: LeaseRow,
        handed: &mut BTreeMap<String, Vec<HandedTask>>,
    ) -> ActivityRow {
        if let Some(lease_ms) = lease_ms(turn, task).filter(|_| self.is_node(&turn.node)) {
            lease.due_at = self.now + lease_ms;
            lease.fence = self.next_fence();
            lease.owner = Some((turn.node.id.clone(), turn.node.epoch));
            lease.leased_at = self.now;
            lease.deliveries += 1;
            let (event, fence) = (task.event, Fence(lease.fence));
            let task = HandedTask { event, fence, scheduled_at_ms: self.now };
            handed.entry(turn.instance.clone()).or_default().push(task);
        }
        ActivityRow {
            lease,
            name: task.name.clone(),
            input: task.input.clone(),
            attempt: 1,
            retry: task.retry.clone(),
            timeout_ms: task.timeout_ms,
            tag: task.tag.clone(),
            session: task.session.clone(),
            orchestration: Some((turn.name.clone(), turn.version.clone())),
            scheduled_at: self.now,
            ..ActivityRow::default()
        }
    }

    /// A task that was scheduled without a row, unless it has one, or a result that its instance was told.
    fn queue_belated(
        &mut self,
        turn: &TurnCommit,
        belated: &BelatedActivity,
        handed: &mut BTreeMap<String, Vec<HandedTask>>,
    ) {
        let BelatedActivity { task, attempt, deliveries, delay_ms, heartbeat, isolated } = belated;
        let key = key_of(turn, task.event);
        if self.activities.contains_key(&key) || self.result_of(turn, task.event).is_some() {
            return;
        }
        let due_at = self.now + delay_ms.max(&0);
        let lease = LeaseRow { due_at, deliveries: *deliveries, isolated: *isolated, ..LeaseRow::default() };
        let mut row = self.queued(turn, task, lease, handed);
        // Its body runs, whether its node has a row or not.
        row.lease.deliveries = deliveries + i32::from(lease_ms(turn, task).is_some());
        row.attempt = *attempt;
        row.heartbeat_at = heartbeat.as_ref().map(|_| self.now);
        row.heartbeat.clone_from(heartbeat);
        self.activities.insert(key, row);
        self.dirty.insert(turn.instance.clone());
    }

    fn settle_turns(
        &mut self,
        items: &[CommitItem],
        standing: &[Standing<'_>],
        handed: &mut BTreeMap<String, Vec<HandedTask>>,
        outcomes: &mut [CommitOutcome],
    ) {
        let ends = |turn: &TurnCommit| !matches!(turn.end, None | Some(TurnEnd::ContinuedAsNew { .. }));
        for (index, turn) in standing.iter().filter(|(_, turn)| !ends(turn)) {
            if turn.keeps {
                outcomes[*index] = CommitOutcome::Kept;
                continue;
            }
            let handed = handed.remove(&turn.instance).unwrap_or_default();
            let (more_work, settled) = self.settle_turn(turn);
            let retaken = self.retake_turn(turn);
            let next = retaken.unwrap_or(settled);
            let settled =
                SettledTurn { more_work, next, now_ms: self.now, handed, retaken: retaken.is_some() };
            outcomes[*index] = CommitOutcome::Settled(settled);
        }
        for (index, turn) in standing.iter().filter(|(_, turn)| ends(turn)) {
            self.turns.remove(&turn.instance);
            if !turn.poisoned {
                self.inbox.retain(|(instance, _), _| *instance != turn.instance);
            }
            self.dirty.insert(turn.instance.clone());
            outcomes[*index] = CommitOutcome::Done { more_work: false };
            retract(items, outcomes, &turn.instance);
        }
    }

    /// Whether it is due at once, and its fence from here on.
    fn settle_turn(&mut self, turn: &TurnCommit) -> (bool, Fence) {
        let now = self.now;
        let again = match &turn.end {
            Some(TurnEnd::ContinuedAsNew { version, .. }) => Some(version.clone()),
            _ => None,
        };
        let earliest = self.messages(&turn.instance).map(|(_, row)| row.waits_until()).min().unwrap_or(NEVER);
        let due_at = if again.is_some() || (turn.park.is_some() && self.has_cancel(&turn.instance)) {
            now
        } else if turn.park.is_some() {
            NEVER
        } else {
            earliest.max(now)
        };
        let fence = self.next_fence();
        self.dirty.insert(turn.instance.clone());
        let Some(row) = self.turns.get_mut(&turn.instance) else { return (false, Fence(fence)) };
        let progress = !turn.consumed.is_empty()
            || !turn.events.is_empty()
            || turn.park.is_some()
            || turn.history_len > row.history_len;
        row.lease = LeaseRow {
            due_at,
            fence,
            last_fence: row.lease.fence,
            deliveries: if progress { 0 } else { row.lease.deliveries },
            ..LeaseRow::default()
        };
        row.parked = turn.park.is_some();
        row.cut_off &= row.parked;
        row.starts_at = None;
        row.replay_version = row.replay_version.max(Some(replay_version::current()));
        (row.execution, row.history_len, row.version) = match (again, &turn.park) {
            (Some(version), _) => (turn.execution + 1, 0, version),
            (None, Some(park)) => (turn.execution, turn.history_len, park.version.clone()),
            (None, None) => (turn.execution, turn.history_len, Some(turn.version.clone())),
        };
        (due_at <= now, Fence(fence))
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

/// The task that an item ends for an instance.
fn ending(item: &CommitItem) -> Option<&ActivityKey> {
    match item {
        CommitItem::Activity(ActivityCommit { key, outcome: ActivityOutcome::Ended(_), .. }) => Some(key),
        _ => None,
    }
}

/// What ended for its instance without a row.
pub(super) fn rowless(item: &CommitItem) -> Option<&ActivityCommit> {
    match item {
        CommitItem::Activity(activity) if activity.rowless && ending(item).is_some() => Some(activity),
        _ => None,
    }
}

/// The lease that the node of a turn gets; a turn that keeps its own gives none.
fn lease_ms(turn: &TurnCommit, task: &NewActivity) -> Option<i64> {
    task.lease_ms.filter(|_| !turn.keeps)
}

/// The tasks that a turn leases to its node, each with the deliveries that count when nobody hears of that.
fn taken(turn: &TurnCommit) -> Vec<(&NewActivity, i32)> {
    let queued = turn.activities.iter().map(|task| (task, 0));
    let belated = turn.belated.iter().map(|belated| (&belated.task, belated.deliveries + 1));
    queued.chain(belated).filter(|(task, _)| lease_ms(turn, task).is_some()).collect()
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
