//! Node rows of the model: who may be declared dead.

use super::model::{Model, NodeRow};
use crate::store::{
    NodeKey,
    node::{HeartbeatTimes, Recovery},
};

impl Model {
    /// Removes the rows of nodes that were silent for too long, as far as the caller's own past allows. Their ids, and
    /// whether a fresh caller sees an outage of others.
    pub(super) fn delete_stale(
        &mut self,
        started: i64,
        node: &NodeKey,
        times: &HeartbeatTimes,
    ) -> (Vec<String>, bool) {
        let Recovery::Allowed { clean_ms, fresh } = times.recovery else { return (Vec::new(), false) };
        let Some(own) = self.nodes.get(&(node.id.clone(), node.epoch)) else { return (Vec::new(), false) };
        let predecessor = |key: &(String, i64)| times.explicit && key.0 == node.id && key.1 < node.epoch;
        let is_stale = |key: &(String, i64), row: &NodeRow| {
            let limit =
                if predecessor(key) { row.stale_after.min(3 * row.interval) } else { row.stale_after };
            row.heartbeat_at < started - limit
        };
        let silent: Vec<(&(String, i64), &NodeRow)> = self
            .nodes
            .iter()
            .filter(|(key, row)| row.heartbeat_at < started - 2 * row.interval && key.1 != node.epoch)
            .collect();
        let heard = |row: &NodeRow| own.heartbeat_at > started - (own.interval + row.interval);
        let named: Vec<i64> = silent
            .iter()
            .filter(|(key, row)| is_stale(key, row) && heard(row))
            .map(|(key, _)| key.1)
            .collect();
        if named.is_empty() {
            return (Vec::new(), false);
        }
        let peers: Vec<(i64, &NodeRow)> =
            silent.iter().filter(|(key, _)| !predecessor(key)).map(|(key, row)| (key.1, *row)).collect();
        let together = |epoch: i64, row: &NodeRow| {
            peers.iter().any(|(other_epoch, other)| {
                *other_epoch != epoch
                    && (other.heartbeat_at - row.heartbeat_at).abs() <= other.interval.max(row.interval)
            })
        };
        let in_outage = |epoch: i64| peers.iter().any(|(peer, row)| *peer == epoch && together(epoch, row));
        let outage = fresh && peers.iter().any(|(epoch, row)| together(*epoch, row));
        let may = |key: &(String, i64), row: &NodeRow| {
            predecessor(key)
                || clean_ms >= row.stale_after
                || (fresh && !in_outage(key.1) && self.up_since < started - row.stale_after)
        };
        let dead: Vec<(String, i64)> = silent
            .iter()
            .filter(|(key, row)| named.contains(&key.1) && may(key, row))
            .map(|(key, _)| (*key).clone())
            .collect();
        for key in &dead {
            self.nodes.remove(key);
        }
        (dead.into_iter().map(|(id, _)| id).collect(), outage)
    }

    /// Removes a node and what it holds becomes free.
    pub(super) fn say_goodbye(&mut self, node: &NodeKey) {
        self.nodes.remove(&(node.id.clone(), node.epoch));
        self.free_sessions(Some(&node.id));
        self.free(true, node);
        self.free(false, node);
    }
}
