//! Session rows of the model: whose they are, and which a claim takes before it takes their activities.

use super::{
    claims::{Taking, Wanted},
    model::{ALWAYS, ActivityRow, Model, SessionRow},
};
use crate::store::{ActivityKey, NodeKey};

impl Model {
    fn owns_session(&self, id: &str, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|row| row.owner.as_deref() == Some(id))
    }

    /// Whether its session is the node's, or free and it may take one more.
    pub(super) fn session_serves(&self, row: &ActivityRow, started: i64, id: &str, takes_new: bool) -> bool {
        let Some(session) = &row.session else { return true };
        let free = self.sessions.get(session).is_none_or(|session| session.leased_until <= started);
        self.owns_session(id, session) || (free && takes_new)
    }

    pub(super) fn may_take_session(
        &self,
        row: &ActivityRow,
        started: i64,
        wanted: &Wanted,
        taking: &Taking,
    ) -> bool {
        self.session_serves(row, started, &wanted.node.id, taking.new_sessions > 0)
    }

    /// Takes the sessions of what a claim found; what belongs to others stays where it is.
    pub(super) fn take_sessions(
        &mut self,
        started: i64,
        wanted: &Wanted,
        taking: &Taking,
        found: &mut Vec<(i64, bool, ActivityKey)>,
    ) {
        let id = wanted.node.id.as_str();
        let session_of = |model: &Self, key: &ActivityKey| {
            model.activities.get(key).and_then(|row| row.session.clone()).unwrap_or_default()
        };
        // Found in the order of due times, those that are preferred first.
        let (mut taken, mut fresh): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (_, _, key) in found.iter() {
            let session = session_of(self, key);
            if self.owns_session(id, &session) {
                taken.push(session);
            } else if !fresh.contains(&session) {
                fresh.push(session);
            }
        }
        fresh.truncate(taking.new_sessions);
        let may_be_had = |session: &String| {
            self.sessions
                .get(session)
                .is_none_or(|row| row.owner.as_deref() == Some(id) || row.leased_until <= started)
        };
        taken.extend(fresh);
        taken.retain(may_be_had);
        found.retain(|(_, _, key)| taken.contains(&session_of(self, key)));
        for session in taken {
            let row = SessionRow {
                owner: Some(id.to_owned()),
                leased_until: self.now + taking.session_timeout_ms,
                used_at: self.now,
            };
            self.sessions.insert(session, row);
        }
    }

    /// Of what a node owns, what is in use or was a short while ago.
    pub(super) fn renew_sessions(
        &mut self,
        started: i64,
        node: &NodeKey,
        in_use: &[String],
        timeout_ms: i64,
        idle_ms: i64,
    ) -> usize {
        if !self.is_node(node) {
            return 0;
        }
        let (mut renewed, now) = (0, self.now);
        for (session, row) in &mut self.sessions {
            let used = in_use.contains(session);
            if row.owner.as_ref() == Some(&node.id) && (used || row.used_at > started - idle_ms) {
                renewed += 1;
                row.leased_until = row.leased_until.max(now + timeout_ms);
                if used {
                    row.used_at = now;
                }
            }
        }
        renewed
    }

    pub(super) fn sweep_sessions(&mut self, started: i64) -> usize {
        let before = self.sessions.len();
        self.sessions.retain(|_, row| row.leased_until >= started);
        before - self.sessions.len()
    }

    /// Sessions of ids that no node has any more are free; `of` names one id, or all.
    pub(super) fn free_sessions(&mut self, of: Option<&str>) {
        for row in self.sessions.values_mut() {
            let Some(owner) = &row.owner else { continue };
            let asked = of.is_none_or(|id| id == owner);
            if asked && !self.nodes.keys().any(|(id, _)| id == owner) {
                row.owner = None;
                row.leased_until = ALWAYS;
            }
        }
    }
}
