//! What those who look after instances do to the model: trees deleted, executions pruned, parked instances resumed.

use super::model::Model;
use crate::store::manage::{Deleted, Pruned};

impl Model {
    /// Deletes an instance without a parent and all that came of it; `None` when there is none, or something of it runs and
    /// that is not forced.
    pub(super) fn delete_tree(&mut self, root: &str, force: bool) -> Option<Deleted> {
        if self.instances.get(root).is_none_or(|row| row.parent.is_some()) {
            return None;
        }
        let mut doomed = vec![root.to_owned()];
        let mut next = 0;
        while let Some(member) = doomed.get(next).cloned() {
            next += 1;
            let children = self
                .instances
                .iter()
                .filter(|(_, row)| row.parent.as_ref().is_some_and(|parent| parent.instance == member));
            let children: Vec<String> = children.map(|(id, _)| id.clone()).collect();
            doomed.extend(children);
        }
        if !force && !doomed.iter().all(|id| self.instances[id].is_ended()) {
            return None;
        }
        let is = |id: &String| doomed.contains(id);
        let mut deleted = Deleted { instances: doomed.len() as i64, ..Deleted::default() };
        let count = |before: usize, after: usize| (before - after) as i64;
        self.turns.retain(|id, _| !is(id));
        self.keys.retain(|(id, _)| !is(id));
        self.values.retain(|(id, _), _| !is(id));
        let before = self.inbox.len() + self.activities.len();
        self.inbox.retain(|(id, _), _| !is(id));
        self.activities.retain(|key, _| key.execution == 0 || !is(&key.instance));
        deleted.messages = count(before, self.inbox.len() + self.activities.len());
        let gone = self.history.iter().filter(|((id, _), _)| is(id));
        deleted.events = gone.map(|(_, events)| events.len() as i64).sum();
        self.history.retain(|(id, _), _| !is(id));
        let before = self.executions.len() + self.instances.len();
        self.executions.retain(|(id, _), _| !is(id));
        self.instances.retain(|id, _| !is(id));
        deleted.executions = count(before, self.executions.len() + self.instances.len());
        Some(deleted)
    }

    /// Deletes the oldest closed executions of an instance beyond the newest `keep`.
    pub(super) fn prune(&mut self, instance: &str, keep: i64, limit: usize) -> Pruned {
        let mut pruned = Pruned::default();
        let Some(newest) = self.instances.get(instance).map(|row| row.execution - keep.max(1)) else {
            return pruned;
        };
        let closed = self.executions.keys().filter(|(id, execution)| id == instance && *execution <= newest);
        let closed: Vec<(String, i64)> = closed.take(limit).cloned().collect();
        for key in closed {
            self.executions.remove(&key);
            pruned.executions += 1;
            pruned.events += self.history.remove(&key).map_or(0, |events| events.len() as i64);
        }
        pruned
    }

    /// Lets a parked instance go on, unless somebody has claimed it; whether it did.
    pub(super) fn resume(&mut self, instance: &str) -> bool {
        let now = self.now;
        let Some(row) = self.turns.get_mut(instance).filter(|row| row.parked && row.lease.owner.is_none())
        else {
            return false;
        };
        row.parked = false;
        (row.lease.deliveries, row.lease.isolated, row.lease.due_at) = (0, false, now);
        if let Some(row) = self.instances.get_mut(instance) {
            row.parked = false;
            row.error = None;
        }
        true
    }
}
