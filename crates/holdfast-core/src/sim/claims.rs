//! Statements of the model that change leases of both queues: claims, renewals, releases, recovery.
//! length: both queues take the same steps, which read side by side.

use std::collections::BTreeSet;

use super::{
    commit::turns,
    model::{ActivityRow, LeaseRow, Model, Mutant, TurnRow},
};
use crate::store::{
    ActivityKey, Fence, NodeKey, TagFilter,
    activity::{ClaimedActivity, Lane, Terms},
    commit::{CommitItem, TurnCommit},
    replay_version::ReplayRange,
    turn::{ClaimRequest, ClaimedTurn, RenewRequest, TurnStart},
};

/// What a claim asks for, owned.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) node: NodeKey,
    pub(super) limit: usize,
    pub(super) times: RenewRequest,
    pub(super) max_attempts: i32,
    pub(super) isolated: bool,
    pub(super) unowned_only: bool,
    pub(super) replay: ReplayRange,
}

/// Which activities a claim takes, owned.
#[derive(Debug, Clone)]
pub(super) struct Taking {
    pub(super) tags: TagFilter,
    pub(super) lane: Lane,
    pub(super) new_sessions: usize,
    pub(super) session_timeout_ms: i64,
    pub(super) spares_last: bool,
}

impl Taking {
    pub(super) fn of(terms: &Terms<'_>, lane: Lane) -> Self {
        Self {
            tags: terms.tags.clone(),
            lane,
            new_sessions: usize::try_from(terms.new_sessions).unwrap_or(0),
            session_timeout_ms: terms.session_timeout_ms,
            spares_last: terms.spares_last,
        }
    }

    /// Whether a claim in this lane takes the row, its session aside.
    fn takes(&self, row: &ActivityRow, wanted: &Wanted) -> bool {
        let in_lane = match self.lane {
            Lane::InSession => row.session.is_some() && by_tag(&self.tags, row),
            // Suspects with and without a tag come in one lane.
            _ if wanted.isolated => row.session.is_none() && by_tag(&self.tags, row),
            Lane::Plain => row.session.is_none() && row.tag.is_none(),
            Lane::Tagged => row.session.is_none() && row.tag.is_some() && by_tag(&self.tags, row),
        };
        // Of suspects, what has its last delivery before it.
        let last = row.lease.deliveries == wanted.max_attempts - 1;
        in_lane && !(wanted.isolated && self.spares_last && last)
    }
}

/// Whether a node with this filter takes a task, by its tag.
pub(super) fn by_tag(tags: &TagFilter, row: &ActivityRow) -> bool {
    row.tag.as_ref().map_or(tags.untagged, |tag| tags.any || tags.tags.contains(tag))
}

impl Wanted {
    pub(super) fn of(request: &ClaimRequest<'_>) -> Self {
        Self {
            node: request.node.clone(),
            limit: usize::try_from(request.limit).unwrap_or(0).min(if request.isolated {
                1
            } else {
                usize::MAX
            }),
            times: RenewRequest {
                lock_timeout_ms: request.lock_timeout_ms,
                backoff_base_ms: request.backoff_base_ms,
                backoff_max_ms: request.backoff_max_ms,
            },
            max_attempts: request.max_attempts,
            isolated: request.isolated,
            unowned_only: request.unowned_only,
            replay: request.replay,
        }
    }

    fn takes(&self, lease: &LeaseRow, started: i64) -> bool {
        let free = match &lease.owner {
            None => true,
            Some(_) => !self.unowned_only && !lease.is_owned_by(&self.node),
        };
        lease.due_at <= started && lease.is_suspect() == self.isolated && free
    }
}

/// Backoff by the number of deliveries.
fn backoff(deliveries: i32, times: &RenewRequest) -> i64 {
    if deliveries < 2 {
        return 0;
    }
    let doublings = u32::try_from((deliveries - 2).min(40)).unwrap_or(0);
    let grown = i128::from(times.backoff_base_ms) << doublings;
    i64::try_from(grown.min(i128::from(times.backoff_max_ms))).unwrap_or(i64::MAX)
}

/// The rows of a queue that a release or a renewal names.
fn held(lease: &LeaseRow, node: &NodeKey, fences: &BTreeSet<i64>) -> bool {
    lease.is_owned_by(node) && fences.contains(&lease.fence)
}

fn numbers(fences: &[Fence]) -> BTreeSet<i64> {
    fences.iter().map(|fence| fence.0).collect()
}

impl Model {
    /// Takes a row for the claimer; it was chosen by a statement that began at `started`.
    fn take(&mut self, lease: &mut LeaseRow, wanted: &Wanted, started: i64) {
        let stamp = if self.mutant == Mutant::LeaseBeforeWait { started } else { self.now };
        let next = lease.deliveries + 1;
        // A claim of what is poisoned is no delivery.
        if self.mutant != Mutant::Uncounted && lease.deliveries <= wanted.max_attempts {
            lease.deliveries = next;
        }
        lease.fence = self.next_fence();
        lease.owner = Some((wanted.node.id.clone(), wanted.node.epoch));
        lease.leased_at = stamp;
        lease.due_at = stamp + wanted.times.lock_timeout_ms + backoff(next, &wanted.times);
        if lease.due_at < self.now + wanted.times.lock_timeout_ms * 8 / 10 {
            self.wrong
                .push(("I11", format!("a lease of fence {} is over before its claim returns", lease.fence)));
        }
    }

    pub(super) fn claim_turns(
        &mut self,
        started: i64,
        wanted: &Wanted,
        names: &[String],
        handlers: &[String],
    ) -> Vec<ClaimedTurn> {
        if !self.is_node(&wanted.node) {
            return Vec::new();
        }
        let runs = |row: &TurnRow| runs(row, names, handlers, wanted.replay);
        let mut due: Vec<(i64, bool, String)> = self
            .turns
            .iter()
            .filter(|(id, row)| runs(row) && wanted.takes(&row.lease, started) && !self.locked.contains(*id))
            .map(|(id, row)| (row.lease.due_at, !self.preferred.contains(&turn_key(id)), id.clone()))
            .collect();
        due.sort();
        due.truncate(wanted.limit);
        due.into_iter().map(|(_, _, id)| self.claim_turn(id, wanted, started)).collect()
    }

    fn claim_turn(&mut self, id: String, wanted: &Wanted, started: i64) -> ClaimedTurn {
        let mut row = self.turns[&id].clone();
        row.cut_off = row.is_behind();
        self.take(&mut row.lease, wanted, started);
        self.turns.insert(id.clone(), row.clone());
        self.dirty.insert(id.clone());
        let instance = self.instances.get(&id).cloned().unwrap_or_default();
        ClaimedTurn {
            fence: Fence(row.lease.fence),
            deliveries: row.lease.deliveries,
            poisoned: row.lease.deliveries > wanted.max_attempts,
            name: row.name.clone().unwrap_or_default(),
            version: row.version.clone().or(instance.version.filter(|_| row.cut_off)),
            execution: row.execution,
            history_len: row.history_len,
            parked: row.parked,
            cut_off: row.cut_off,
            replay_version: row.replay_version.max(instance.replay_version.filter(|_| row.cut_off)),
            last_fence: Fence(row.lease.last_fence),
            start: (row.history_len == 0).then(|| TurnStart {
                input: instance.input.clone(),
                carried: instance.carried.clone(),
                custom_status: instance.custom_status.clone(),
            }),
            unread: false,
            parent: instance.parent,
            now_ms: row.lease.leased_at,
            instance: id,
        }
    }

    pub(super) fn claim_activities(
        &mut self,
        started: i64,
        wanted: &Wanted,
        names: &[String],
        taking: &Taking,
    ) -> Vec<ClaimedActivity> {
        if !self.is_node(&wanted.node) {
            return Vec::new();
        }
        let in_session = taking.lane == Lane::InSession;
        let mut due: Vec<(i64, bool, ActivityKey)> = self
            .activities
            .iter()
            .filter(|(_, row)| names.contains(&row.name) && wanted.takes(&row.lease, started))
            .filter(|(_, row)| taking.takes(row, wanted))
            .filter(|(_, row)| !in_session || self.may_take_session(row, started, wanted, taking))
            .map(|(key, row)| (row.lease.due_at, !self.preferred.contains(key), key.clone()))
            .collect();
        due.sort();
        due.truncate(wanted.limit);
        if in_session {
            self.take_sessions(started, wanted, taking, &mut due);
        }
        due.into_iter().map(|(_, _, key)| self.claim_activity(key, wanted, started)).collect()
    }

    fn claim_activity(&mut self, key: ActivityKey, wanted: &Wanted, started: i64) -> ClaimedActivity {
        let mut row = self.activities[&key].clone();
        self.take(&mut row.lease, wanted, started);
        self.activities.insert(key.clone(), row.clone());
        ClaimedActivity {
            key,
            fence: Fence(row.lease.fence),
            deliveries: row.lease.deliveries,
            poisoned: row.lease.deliveries > wanted.max_attempts,
            attempt: row.attempt,
            name: row.name,
            input: row.input,
            retry: row.retry,
            heartbeat: row.heartbeat,
            timeout_ms: row.timeout_ms,
            tag: row.tag,
            session: row.session,
            orchestration_name: row.orchestration.as_ref().map(|(name, _)| name.clone()),
            orchestration_version: row.orchestration.map(|(_, version)| version),
            scheduled_at_ms: row.scheduled_at,
            now_ms: row.lease.leased_at,
        }
    }

    /// Changes the leases of a queue that `which` names and `change` is told; returns how many that were.
    fn change(
        &mut self,
        turns: bool,
        skip_locked: bool,
        which: impl Fn(&LeaseRow) -> bool,
        change: impl Fn(&mut Self, &mut LeaseRow),
    ) -> Vec<i64> {
        self.change_rows(turns, skip_locked, false, which, change)
    }

    /// The same; `cuts_off` marks turns whose lease ended unsettled.
    fn change_rows(
        &mut self,
        turns: bool,
        skip_locked: bool,
        cuts_off: bool,
        which: impl Fn(&LeaseRow) -> bool,
        change: impl Fn(&mut Self, &mut LeaseRow),
    ) -> Vec<i64> {
        let mut fences = Vec::new();
        if turns {
            let ids: Vec<String> = self.turns.keys().cloned().collect();
            for id in ids {
                if !which(&self.turns[&id].lease) || (skip_locked && self.locked.contains(&id)) {
                    continue;
                }
                let mut row = self.turns[&id].clone();
                change(self, &mut row.lease);
                row.cut_off |= cuts_off && self.mutant != Mutant::Unmarked;
                fences.push(row.lease.fence);
                self.turns.insert(id.clone(), row);
                self.dirty.insert(id);
            }
        } else {
            let keys: Vec<ActivityKey> = self.activities.keys().cloned().collect();
            for key in keys {
                if !which(&self.activities[&key].lease) {
                    continue;
                }
                let mut row = self.activities[&key].clone();
                change(self, &mut row.lease);
                fences.push(row.lease.fence);
                self.dirty.insert(key.instance.clone());
                self.activities.insert(key, row);
            }
        }
        fences
    }

    pub(super) fn renew(
        &mut self,
        turns: bool,
        node: &NodeKey,
        fences: &[Fence],
        times: RenewRequest,
    ) -> Vec<Fence> {
        if !self.is_node(node) {
            return Vec::new();
        }
        let fences = numbers(fences);
        let renewed = self.change(
            turns,
            true,
            |lease| held(lease, node, &fences),
            |model, lease| {
                lease.due_at =
                    lease.due_at.max(model.now + times.lock_timeout_ms + backoff(lease.deliveries, &times));
            },
        );
        renewed.into_iter().map(Fence).collect()
    }

    pub(super) fn release(&mut self, turns: bool, node: &NodeKey, fences: &[Fence], delay_ms: i64) -> u64 {
        let fences = numbers(fences);
        let released = self.change(
            turns,
            false,
            |lease| held(lease, node, &fences),
            |model, lease| {
                model.give_back(lease);
                lease.due_at += delay_ms;
            },
        );
        released.len() as u64
    }

    fn give_back(&mut self, lease: &mut LeaseRow) {
        lease.due_at = self.now;
        lease.fence = self.next_fence();
        lease.disown();
        lease.deliveries = (lease.deliveries - 1).max(0);
    }

    pub(super) fn cut_off(&mut self, node: &NodeKey, fences: &[Fence]) -> u64 {
        self.give_up(true, true, node, fences, true)
    }

    pub(super) fn abandon(&mut self, turns: bool, node: &NodeKey, fences: &[Fence], at_once: bool) -> u64 {
        self.give_up(turns, false, node, fences, at_once)
    }

    fn give_up(
        &mut self,
        turns: bool,
        cuts_off: bool,
        node: &NodeKey,
        fences: &[Fence],
        at_once: bool,
    ) -> u64 {
        let fences = numbers(fences);
        let abandoned = self.change_rows(
            turns,
            false,
            cuts_off,
            |lease| held(lease, node, &fences),
            |model, lease| {
                if at_once {
                    lease.due_at = model.now;
                }
                lease.fence = model.next_fence();
                lease.disown();
            },
        );
        abandoned.len() as u64
    }

    pub(super) fn release_unknown(
        &mut self,
        started: i64,
        turns: bool,
        node: &NodeKey,
        known: &[Fence],
        older_ms: i64,
    ) -> u64 {
        let known = numbers(known);
        let unknown = |lease: &LeaseRow| {
            lease.is_owned_by(node) && lease.leased_at < started - older_ms && !known.contains(&lease.fence)
        };
        self.change_rows(turns, true, true, unknown, Self::give_back).len() as u64
    }

    /// The lease that the node of a settled turn gets again, when its row is there and no message waits.
    pub(super) fn retake_turn(&mut self, turn: &TurnCommit) -> Option<Fence> {
        let lease_ms = turn.retake_ms.filter(|_| self.is_node(&turn.node))?;
        let waits = |row: &TurnRow| row.lease.owner.is_none() && row.lease.due_at > self.now;
        self.turns.get(&turn.instance).filter(|row| waits(row))?;
        let (fence, now) = (self.next_fence(), self.now);
        let row = self.turns.get_mut(&turn.instance)?;
        row.lease.fence = fence;
        row.lease.owner = Some((turn.node.id.clone(), turn.node.epoch));
        row.lease.leased_at = now;
        row.lease.deliveries += 1;
        row.lease.due_at = now + lease_ms;
        Some(Fence(fence))
    }

    /// A lease that an earlier run of a turn got again, and nobody heard of.
    pub(super) fn release_retaken(&mut self, items: &[CommitItem]) {
        for (_, turn) in turns(items).filter(|(_, turn)| turn.retake_ms.is_some()) {
            let taken =
                |row: &TurnRow| row.lease.last_fence == turn.fence.0 && row.lease.is_owned_by(&turn.node);
            if !self.turns.get(&turn.instance).is_some_and(taken) {
                continue;
            }
            let (fence, now) = (self.next_fence(), self.now);
            let Some(row) = self.turns.get_mut(&turn.instance) else { continue };
            row.lease.disown();
            (row.lease.fence, row.lease.due_at, row.cut_off) = (fence, now, true);
            row.lease.deliveries = (row.lease.deliveries - 1).max(0);
            self.dirty.insert(turn.instance.clone());
        }
    }

    /// What a dead node held is free and suspect.
    pub(super) fn recover(&mut self, turns: bool) -> u64 {
        let alive: BTreeSet<(String, i64)> = self.nodes.keys().cloned().collect();
        let lost = |lease: &LeaseRow| lease.owner.as_ref().is_some_and(|owner| !alive.contains(owner));
        if !turns {
            for row in self.activities.values_mut().filter(|row| lost(&row.lease)) {
                row.lost_by = row.lease.owner.as_ref().map(|(id, _)| id.clone());
            }
        }
        let recovered = self.change_rows(turns, true, true, lost, |model, lease| {
            lease.due_at = model.now;
            lease.disown();
            lease.isolated = true;
        });
        recovered.len() as u64
    }

    pub(super) fn free(&mut self, turns: bool, node: &NodeKey) {
        self.change_rows(
            turns,
            true,
            true,
            |lease| lease.is_owned_by(node),
            |model, lease| {
                lease.due_at = model.now;
                lease.disown();
            },
        );
    }
}

/// A turn among [`Model::preferred`].
pub(super) fn turn_key(instance: &str) -> ActivityKey {
    ActivityKey { instance: instance.to_owned(), execution: 0, event: 0 }
}

/// Whether a node with these handlers runs it.
pub(super) fn runs(row: &TurnRow, names: &[String], handlers: &[String], replay: ReplayRange) -> bool {
    if row.replay_version.is_some_and(|version| version < replay.min || version > replay.max) {
        return false;
    }
    let Some(name) = &row.name else { return false };
    match &row.version {
        None => names.contains(name),
        Some(version) => handlers.contains(&format!("{name}@{version}")),
    }
}
