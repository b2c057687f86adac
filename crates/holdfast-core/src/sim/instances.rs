//! What a commit batch of the model does to instances: starts, messages, changes of state.

use std::collections::BTreeMap;

use holdfast_replay::MessageBody;

use super::{
    commit::{Standing, rowless},
    model::{ClosedRow, InboxRow, InstanceRow, Model},
};
use crate::store::{
    Fence,
    commit::{CommitItem, CommitOutcome, Send, Start, StartLease, TurnCommit, TurnEnd, taken_error},
    replay_version,
};

impl Model {
    pub(super) fn start_instances(
        &mut self,
        items: &[CommitItem],
        standing: &[Standing<'_>],
        outcomes: &mut [CommitOutcome],
    ) {
        let mut created = BTreeMap::new();
        let clients = || {
            items.iter().enumerate().filter_map(|(index, item)| match item {
                CommitItem::Start(start) => Some((index, start)),
                _ => None,
            })
        };
        let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, start) in clients() {
            *ids.entry(&start.instance).or_default() += 1;
        }
        // One batch gives one lease: the first that a start names.
        let mut begins = None;
        for (_, start) in clients() {
            let lease = start.lease.as_ref().filter(|_| ids[start.instance.as_str()] == 1);
            let lease = lease.filter(|lease| *begins.get_or_insert(*lease) == *lease);
            if let Some(outcome) = self.start(start, lease) {
                created.insert(start.instance.clone(), outcome);
            }
        }
        for start in standing.iter().flat_map(|(_, turn)| &turn.starts) {
            self.start(start, None);
        }
        for (index, start) in clients() {
            let made = created.remove(&start.instance);
            outcomes[index] = match self.instances.get(&start.instance) {
                _ if made.is_some() => made.unwrap_or(CommitOutcome::Unsettled),
                Some(row) => {
                    let same = row.name == start.name && self.started_with(start, row);
                    CommitOutcome::Exists { same }
                }
                None => CommitOutcome::Unsettled,
            };
        }
        for start in standing.iter().flat_map(|(_, turn)| &turn.starts) {
            self.refuse_child(start);
        }
    }

    /// Whether an instance was made with the input of a start; once its first execution is pruned its name decides.
    fn started_with(&self, start: &Start, row: &InstanceRow) -> bool {
        let first = (start.instance.clone(), 1);
        match self.executions.get(&first) {
            _ if row.execution == 1 => row.input == start.input,
            Some(closed) => closed.input == start.input,
            None => true,
        }
    }

    /// What became of a start that made its instance. It is leased only where no message waits for it.
    fn start(&mut self, start: &Start, lease: Option<&StartLease>) -> Option<CommitOutcome> {
        let named = self.turns.get(&start.instance).is_some_and(|row| row.name.is_some());
        if named || self.instances.contains_key(&start.instance) {
            return None;
        }
        let lease =
            lease.filter(|lease| !self.turns.contains_key(&start.instance) && self.is_node(&lease.node));
        let now = self.now;
        let starts_at = start.start_at_ms.or(start.delay_ms.map(|delay| now + delay));
        let instance = InstanceRow {
            name: start.name.clone(),
            version: start.version.clone(),
            execution: 1,
            status: "Pending",
            input: start.input.clone(),
            parent: start.parent.clone(),
            ..InstanceRow::default()
        };
        self.instances.insert(start.instance.clone(), instance);
        let fence = if lease.is_some() { self.next_fence() } else { 0 };
        let row = self.turns.entry(start.instance.clone()).or_default();
        row.execution = 1;
        row.name = Some(start.name.clone());
        row.version.clone_from(&start.version);
        row.lease.due_at = starts_at.map_or(now, |at| at.max(now));
        row.starts_at = starts_at;
        self.dirty.insert(start.instance.clone());
        let Some(StartLease { node, lease_ms }) = lease else { return Some(CommitOutcome::Created) };
        row.lease.due_at = now + lease_ms;
        row.lease.fence = fence;
        row.lease.owner = Some((node.id.clone(), node.epoch));
        row.lease.leased_at = now;
        row.lease.deliveries = 1;
        Some(CommitOutcome::Begun { fence: Fence(fence), now_ms: now })
    }

    /// First turns that an earlier run of these starts leased to a node that did not hear of it.
    pub(super) fn release_begun(&mut self, items: &[CommitItem]) {
        for item in items {
            let CommitItem::Start(Start { instance, lease: Some(StartLease { node, .. }), .. }) = item else {
                continue;
            };
            // Whoever settles a lease, or something that ran under it, knows of it.
            let knows = |item: &CommitItem| match item {
                CommitItem::Turn(turn) => turn.instance == *instance,
                _ => rowless(item).is_some_and(|activity| activity.key.instance == *instance),
            };
            if items.iter().any(knows) || !self.events(instance, 1).is_empty() {
                continue;
            }
            let (fence, now) = (self.next_fence(), self.now);
            let Some(row) = self.turns.get_mut(instance) else { continue };
            let first = row.lease.deliveries == 1 && row.lease.last_fence == 0 && row.history_len == 0;
            if first && row.lease.owner.as_ref() == Some(&(node.id.clone(), node.epoch)) {
                row.lease.disown();
                row.lease.fence = fence;
                row.lease.due_at = now;
                self.dirty.insert(instance.clone());
            }
        }
    }

    fn refuse_child(&mut self, start: &Start) {
        let Some(parent) = &start.parent else { return };
        let child = self.instances.get(&start.instance).and_then(|row| row.parent.as_ref());
        if child == Some(parent) {
            return;
        }
        let (execution, source) = (parent.execution, parent.event);
        let error = taken_error(&start.instance);
        let body = MessageBody::ChildFailed { execution, source, error };
        let row = InboxRow { due_at: self.now, body };
        self.put_message(&parent.instance, row);
    }

    pub(super) fn send_messages(
        &mut self,
        items: &[CommitItem],
        standing: &[Standing<'_>],
        outcomes: &mut [CommitOutcome],
    ) {
        for (index, item) in items.iter().enumerate() {
            match item {
                CommitItem::Turn(turn) if standing.iter().any(|(other, _)| *other == index) => {
                    for send in &turn.sends {
                        self.send(Some(turn), send);
                    }
                }
                CommitItem::Send(send) => {
                    outcomes[index] = if self.send(None, send) {
                        CommitOutcome::Done { more_work: true }
                    } else {
                        CommitOutcome::AlreadyEnded
                    };
                }
                _ => {}
            }
        }
    }

    /// Whether the message is told as delivered.
    fn send(&mut self, sender: Option<&TurnCommit>, send: &Send) -> bool {
        let key = send.dedup_key.as_ref().map(|key| (send.instance.clone(), key.clone()));
        let sent_before = key.as_ref().is_some_and(|key| self.keys.contains(key));
        let instance = self.instances.get(&send.instance);
        let takes = self
            .turns
            .get(&send.instance)
            .is_some_and(|row| row.name.is_some() || instance.is_none_or(|row| !row.is_ended()));
        if sent_before || !takes {
            return sent_before;
        }
        self.keys.extend(key);
        let cancel = matches!(send.body, MessageBody::CancelRequested { .. });
        if let Some(turn) = sender.filter(|_| cancel) {
            let parent = instance.and_then(|row| row.parent.as_ref()).map(|parent| &parent.instance);
            if parent != Some(&turn.instance) {
                return false;
            }
        }
        let row = InboxRow { due_at: self.now, body: send.body.clone() };
        let told = self.put_message(&send.instance, row);
        if told {
            self.wake(&send.instance, cancel);
        }
        told
    }

    pub(super) fn change_instances(&mut self, standing: &[Standing<'_>]) {
        for (_, turn) in standing {
            let first = turn.events.first().is_some_and(|event| event.id.0 == 1);
            let (status, output, error) = match &turn.end {
                Some(TurnEnd::Completed { output }) => (Some("Completed"), Some(output), None),
                Some(TurnEnd::Failed { error }) => (Some("Failed"), None, Some(error)),
                Some(TurnEnd::Cancelled { error }) => (Some("Cancelled"), None, Some(error)),
                Some(TurnEnd::ContinuedAsNew { .. }) => (None, None, None),
                None => (None, None, turn.park.as_ref().map(|park| &park.error)),
            };
            let changes = first || turn.custom_status.is_some() || status.is_some() || turn.park.is_some();
            let Some(row) = self.instances.get_mut(&turn.instance) else { continue };
            if changes || turn.unparks {
                if turn.park.is_none() {
                    row.status = status.unwrap_or("Running");
                }
                if first {
                    row.version = Some(turn.version.clone());
                    row.replay_version = Some(replay_version::current());
                }
                if let Some(status) = &turn.custom_status {
                    row.custom_status.clone_from(status);
                }
                row.output = output.cloned();
                row.error = error.cloned();
                row.parked = turn.park.is_some();
                if status.is_some() {
                    row.last_fence = turn.fence.0;
                    row.poisoned = turn.poisoned;
                }
            }
            if let Some(TurnEnd::ContinuedAsNew { input, version, carried }) = &turn.end
                && row.execution == turn.execution
            {
                let closed = ClosedRow {
                    version: row.version.clone(),
                    input: row.input.clone(),
                    output: input.clone(),
                };
                self.executions.insert((turn.instance.clone(), turn.execution), closed);
                row.execution += 1;
                row.input.clone_from(input);
                row.version.clone_from(version);
                row.carried.clone_from(carried);
            }
        }
    }
}
