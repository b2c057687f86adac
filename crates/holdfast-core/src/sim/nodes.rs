//! Node rows of the model: who may be declared dead.

use super::model::{Model, NodeRow};
use crate::store::{
    NodeKey,
    node::{HeartbeatTimes, Recovery},
};

impl Model {
    /// Removes the rows of nodes that were silent for too long, as far as the caller's own past allows; their ids.
    pub(super) fn delete_stale(
        &mut self,
        started: i64,
        node: &NodeKey,
        times: &HeartbeatTimes,
    ) -> Vec<String> {
        let Recovery::Allowed { clean_ms, fresh } = times.recovery else { return Vec::new() };
        let Some(own) = self.nodes.get(&(node.id.clone(), node.epoch)).cloned() else { return Vec::new() };
        let predecessor = |key: &(String, i64)| times.explicit && key.0 == node.id && key.1 < node.epoch;
        let limit = |key: &(String, i64), row: &NodeRow| {
            if predecessor(key) { row.stale_after.min(3 * row.interval) } else { row.stale_after }
        };
        let silent: Vec<(&(String, i64), &NodeRow)> = self
            .nodes
            .iter()
            .filter(|(key, row)| {
                row.heartbeat_at < started - limit(key, row) && (key.0 != node.id || key.1 != node.epoch)
            })
            .collect();
        let peers: Vec<&NodeRow> =
            silent.iter().filter(|(key, _)| !predecessor(key)).map(|(_, row)| *row).collect();
        let beats = || peers.iter().map(|row| row.heartbeat_at);
        let spread = beats().max().unwrap_or(0) - beats().min().unwrap_or(0);
        let apart = spread > peers.iter().map(|row| row.interval).max().unwrap_or(0);
        let may = |key: &(String, i64), row: &NodeRow| {
            predecessor(key)
                || clean_ms >= row.stale_after
                || (fresh && (peers.len() < 2 || apart) && self.up_since < started - row.stale_after)
        };
        let heard = |row: &NodeRow| own.heartbeat_at > started - (own.interval + row.interval);
        let dead: Vec<(String, i64)> = silent
            .iter()
            .filter(|(key, row)| may(key, row) && heard(row))
            .map(|(key, _)| (*key).clone())
            .collect();
        for key in &dead {
            self.nodes.remove(key);
        }
        dead.into_iter().map(|(id, _)| id).collect()
    }

    /// Removes a node and what it holds becomes free.
    pub(super) fn say_goodbye(&mut self, node: &NodeKey) {
        self.nodes.remove(&(node.id.clone(), node.epoch));
        self.free(true, node);
        self.free(false, node);
    }
}
