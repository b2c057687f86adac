//! Breadth first through every reachable state, with the shortest way back to the first one. Nodes are alike and are
//! numbered anew in each state: in a way that is printed, the numbers tell nodes apart only within one action.
//!
//! After the safety rules it answers one question about liveness: from each reachable state, faults or not, can every item
//! still come to its end by steps that are no faults? Where the answer is no, something is stuck for ever.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    action::{Action, Breach},
    rules::Rules,
    state::{End, ITEMS, NODES, State},
    step::apply,
};

/// What an exploration found.
#[derive(Debug)]
pub struct Report {
    /// Reachable states.
    pub states: usize,
    /// The first rule that was broken, with the actions that lead there.
    pub breach: Option<(Breach, Vec<Action>)>,
    /// A state from which an item can never end, as the actions that lead there.
    pub stuck: Option<Vec<Action>>,
}

struct Seen {
    states: Vec<State>,
    /// How each state was first reached.
    came_by: Vec<(u32, Action)>,
    index: HashMap<State, u32>,
}

/// Explores everything, or up to the first breach.
pub fn explore(rules: &Rules) -> Report {
    let first = State::first(rules.items, rules.faults).canonical();
    let begin = Action::Register { node: 0 };
    let mut seen =
        Seen { states: vec![first], came_by: vec![(0, begin)], index: HashMap::from([(first, 0)]) };
    // Steps that are no faults, backwards: `(to, from)`.
    let mut progress: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while let Some(&state) = seen.states.get(at) {
        for action in actions(rules) {
            let Some(from) = (if is_fault(action) { state.spend_fault() } else { Some(state) }) else {
                continue;
            };
            let next = match apply(rules, &from, action) {
                None => continue,
                Some(Ok(next)) => next,
                Some(Err(breach)) => {
                    let mut way = seen.way_to(at);
                    way.push(action);
                    return Report { states: seen.states.len(), breach: Some((breach, way)), stuck: None };
                }
            };
            if next.items == state.items && next.nodes == state.nodes {
                continue;
            }
            let to = seen.add(next, at, action);
            if !is_fault(action) {
                progress.push((to, at as u32));
            }
        }
        at += 1;
    }
    let stuck = first_stuck(&seen, progress).map(|state| seen.way_to(state));
    Report { states: seen.states.len(), breach: None, stuck }
}

impl Seen {
    fn add(&mut self, state: State, from: usize, action: Action) -> u32 {
        let fresh = self.states.len() as u32;
        match self.index.entry(state) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                place.insert(fresh);
                self.states.push(state);
                self.came_by.push((from as u32, action));
                fresh
            }
        }
    }

    fn way_to(&self, mut state: usize) -> Vec<Action> {
        let mut way = Vec::new();
        while state != 0 {
            let (from, action) = self.came_by[state];
            way.push(action);
            state = from as usize;
        }
        way.reverse();
        way
    }
}

/// Walks backwards from the states where everything has ended; what is not met is stuck.
fn first_stuck(seen: &Seen, mut progress: Vec<(u32, u32)>) -> Option<usize> {
    progress.sort_unstable();
    let mut reaches = vec![false; seen.states.len()];
    let mut open: Vec<u32> = Vec::new();
    for (index, state) in seen.states.iter().enumerate() {
        if state.items.iter().all(|item| item.end != End::Open) {
            reaches[index] = true;
            open.push(index as u32);
        }
    }
    while let Some(to) = open.pop() {
        let from = progress.partition_point(|&(target, _)| target < to);
        for &(_, source) in progress[from..].iter().take_while(|&&(target, _)| target == to) {
            if !reaches[source as usize] {
                reaches[source as usize] = true;
                open.push(source);
            }
        }
    }
    reaches.iter().position(|&reached| !reached)
}

/// Faults, and what only a client does: progress must not depend on them.
fn is_fault(action: Action) -> bool {
    matches!(
        action,
        Action::LoseReply { .. }
            | Action::SettleUnanswered { .. }
            | Action::LoseCommit { .. }
            | Action::ReleaseUnanswered { .. }
            | Action::Lapse { .. }
            | Action::Cancel { .. }
            | Action::Crash { .. }
            | Action::DeclareDead { .. }
    )
}

/// Everything that could happen, whether it can or not.
fn actions(rules: &Rules) -> impl Iterator<Item = Action> {
    let items = rules.items.min(ITEMS);
    let nodes = (0..NODES).flat_map(|node| {
        [Action::Crash { node }, Action::DeclareDead { node }, Action::Register { node }].into_iter()
    });
    let rows = (0..items).flat_map(|item| {
        [Action::Lapse { item }, Action::Cancel { item }, Action::Recover { item }].into_iter()
    });
    let pairs = (0..NODES).flat_map(move |node| (0..items).map(move |item| (node, item)));
    let claims = pairs
        .clone()
        .flat_map(move |(node, item)| [false, true].map(|waited| Action::Claim { node, item, waited }));
    let holds = pairs.flat_map(|(node, item)| {
        [
            Action::Receive { node, item },
            Action::LoseReply { node, item },
            Action::ReleaseUnknown { node, item },
            Action::Start { node, item },
            Action::Settle { node, item },
            Action::SettleUnanswered { node, item },
            Action::LoseCommit { node, item },
            Action::Resolve { node, item },
            Action::Abandon { node, item },
            Action::Return { node, item },
            Action::Release { node, item },
            Action::ReleaseUnanswered { node, item },
            Action::EndPoisoned { node, item },
            Action::Renew { node, item },
        ]
        .into_iter()
    });
    nodes.chain(rows).chain(claims).chain(holds)
}
