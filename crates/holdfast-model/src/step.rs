//! The protocol: what can happen next, and what it does to the state.
//!
//! One action is one transaction, one message or one fault. A process that is paused is one that does nothing for a
//! while: every order of actions is explored, so pauses need no action of their own.

use crate::{
    action::{Action, Breach},
    rules::{Mutant, Rules},
    state::{End, Hold, Item, Owner, Phase, State},
};

/// The state after an action, or `None` when it cannot happen. A breach is reported once.
pub fn apply(rules: &Rules, from: &State, action: Action) -> Option<Result<State, Breach>> {
    let mut state = *from;
    let outcome = match action {
        Action::Claim { node, item, waited } => claim(rules, &mut state, node, item, waited)?,
        Action::Receive { node, item } => receive(&mut state, node, item)?,
        Action::LoseReply { node, item } => lose_reply(&mut state, node, item)?,
        Action::ReleaseUnknown { node, item } => release_unknown(&mut state, node, item)?,
        Action::Start { node, item } => start(rules, &mut state, node, item)?,
        Action::Settle { node, item } => settle(rules, &mut state, node, item, true)?,
        Action::SettleUnanswered { node, item } => settle(rules, &mut state, node, item, false)?,
        Action::LoseCommit { node, item } => turn_to(&mut state, node, item, Phase::Started, Phase::Unknown)?,
        Action::Resolve { node, item } => resolve(rules, &mut state, node, item)?,
        Action::Abandon { node, item } => abandon(rules, &mut state, node, item)?,
        Action::Return { node, item } => turn_to(&mut state, node, item, Phase::Held, Phase::Returning)?,
        Action::Release { node, item } => release(rules, &mut state, node, item, true)?,
        Action::ReleaseUnanswered { node, item } => release(rules, &mut state, node, item, false)?,
        Action::EndPoisoned { node, item } => end_poisoned(rules, &mut state, node, item)?,
        Action::Renew { node, item } => renew(rules, &mut state, node, item)?,
        Action::Lapse { item } => lapse(&mut state, item)?,
        Action::Cancel { item } => cancel(&mut state, item)?,
        Action::Crash { node } => crash(&mut state, node)?,
        Action::DeclareDead { node } => declare_dead(&mut state, node)?,
        Action::Recover { item } => recover(&mut state, item)?,
        Action::Register { node } => register(&mut state, node)?,
    };
    Some(outcome.map(|()| state.canonical()))
}

fn lose_reply(state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    hold_in(state, node, item, &[Phase::Asked, Phase::AskedPoison])?;
    state.nodes[node].holds[item] = None;
    Some(Ok(()))
}

fn settle(
    rules: &Rules,
    state: &mut State,
    node: usize,
    item: usize,
    answered: bool,
) -> Option<Result<(), Breach>> {
    hold_in(state, node, item, &[Phase::Started])?;
    let settled = commit(rules, state, node, item);
    if answered {
        state.nodes[node].holds[item] = None;
    } else {
        set_phase(state, node, item, Phase::Unknown);
    }
    Some(settled)
}

fn turn_to(
    state: &mut State,
    node: usize,
    item: usize,
    from: Phase,
    to: Phase,
) -> Option<Result<(), Breach>> {
    hold_in(state, node, item, &[from])?;
    set_phase(state, node, item, to);
    Some(Ok(()))
}

fn lapse(state: &mut State, item: usize) -> Option<Result<(), Breach>> {
    let row = &mut state.items[item];
    if row.owner.is_none() || row.due {
        return None;
    }
    row.due = true;
    Some(Ok(()))
}

fn cancel(state: &mut State, item: usize) -> Option<Result<(), Breach>> {
    if state.items[item].end != End::Open {
        return None;
    }
    end(state, item, End::Cancelled);
    Some(Ok(()))
}

fn crash(state: &mut State, node: usize) -> Option<Result<(), Breach>> {
    if !state.nodes[node].alive {
        return None;
    }
    state.nodes[node].alive = false;
    state.nodes[node].holds = Default::default();
    Some(Ok(()))
}

fn recover(state: &mut State, item: usize) -> Option<Result<(), Breach>> {
    let row = &mut state.items[item];
    row.owner.filter(|owner| !owner.current)?;
    (row.owner, row.due) = (None, true);
    Some(Ok(()))
}

fn claim(
    rules: &Rules,
    state: &mut State,
    node: usize,
    item: usize,
    waited: bool,
) -> Option<Result<(), Breach>> {
    let row = state.items[item];
    let process = &state.nodes[node];
    let mine = Owner { node: node as u8, current: true };
    let free_here = process.holds[item].is_none_or(|hold| hold.phase == Phase::Started);
    // A claim needs its own node row and never takes a row that this node and epoch own.
    if !process.alive
        || !process.row
        || !free_here
        || row.end != End::Open
        || !row.due
        || row.owner == Some(mine)
    {
        return None;
    }
    let fence = state.mint(item);
    let counts = !rules.breaks(Mutant::CountedAtSettle);
    let deliveries = if counts { (row.deliveries + 1).min(rules.max_attempts + 1) } else { row.deliveries };
    let dead = rules.breaks(Mutant::EarlyStamp) && waited;
    let row = &mut state.items[item];
    row.deliveries = deliveries;
    row.fence = fence;
    row.owner = Some(mine);
    row.due = rules.slow_claims || dead;
    let length = row.length;
    let poisoned = deliveries > rules.max_attempts;
    let running = state.nodes[node].holds[item];
    let adopted = running.filter(|hold| hold.length == length && !poisoned);
    state.nodes[node].holds[item] = match (running, adopted) {
        // The item still runs here: it goes on under the new fence. Its body does not start again.
        (_, Some(hold)) => Some(Hold { fence, current: true, ..hold }),
        // It runs on an older history: the claim waits, unknown to the node, until the body is gone.
        (Some(hold), None) => Some(hold),
        (None, _) => {
            let phase = if poisoned { Phase::AskedPoison } else { Phase::Asked };
            Some(Hold { phase, fence, length, current: true })
        }
    };
    Some(if dead { Err(Breach::DeadLease) } else { Ok(()) })
}

fn receive(state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Asked, Phase::AskedPoison])?;
    let phase = if hold.phase == Phase::Asked { Phase::Held } else { Phase::Poison };
    set_phase(state, node, item, phase);
    Some(Ok(()))
}

fn release_unknown(state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let process = &state.nodes[node];
    let row = state.items[item];
    let mine = Owner { node: node as u8, current: true };
    let knows = process.holds[item].is_some_and(|hold| hold.fence == row.fence);
    if !process.alive || !process.row || row.owner != Some(mine) || knows {
        return None;
    }
    give_back(state, item);
    Some(Ok(()))
}

fn start(rules: &Rules, state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Held])?;
    set_phase(state, node, item, Phase::Started);
    let row = &mut state.items[item];
    if row.end != End::Open || row.length != hold.length {
        // A slow node starts what others have taken further: wasted, and its settle will be refused.
        return Some(Ok(()));
    }
    row.started += 1;
    if row.started > rules.max_attempts + 1 {
        return Some(Err(Breach::TooManyBodies));
    }
    let counted = row.deliveries + u8::from(rules.breaks(Mutant::CountedAtSettle)) * row.started;
    Some(if row.started > counted { Err(Breach::Uncounted) } else { Ok(()) })
}

/// The fence stands and nobody else owns the row.
fn stands(rules: &Rules, row: &Item, node: usize, hold: &Hold) -> bool {
    let fence = row.fence == hold.fence || rules.breaks(Mutant::NoFence);
    let owner = row.owner.is_none_or(|owner| owner.node == node as u8 && owner.current == hold.current);
    fence && (owner || rules.breaks(Mutant::NoFence))
}

/// The guarded transaction of a settle: changes nothing when the fence is gone.
fn commit(rules: &Rules, state: &mut State, node: usize, item: usize) -> Result<(), Breach> {
    let Some(hold) = state.nodes[node].holds[item] else { return Ok(()) };
    let row = state.items[item];
    if !stands(rules, &row, node, &hold) || row.end != End::Open && !rules.breaks(Mutant::NoFence) {
        return Ok(());
    }
    if row.end != End::Open {
        return Err(Breach::SecondEnd);
    }
    if row.length != hold.length {
        return Err(Breach::SameLength);
    }
    if row.fence != hold.fence {
        return Err(Breach::StaleWrite);
    }
    state.items[item].last_fence = hold.fence;
    if row.length + 1 == rules.commits {
        end(state, item, End::Done);
        return Ok(());
    }
    let fence = state.mint(item);
    let row = &mut state.items[item];
    *row = Item { length: row.length + 1, owner: None, due: true, fence, deliveries: 0, started: 0, ..*row };
    Ok(())
}

fn resolve(rules: &Rules, state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Unknown])?;
    let done = state.items[item].last_fence == hold.fence;
    let outcome = if done { Ok(()) } else { commit(rules, state, node, item) };
    state.nodes[node].holds[item] = None;
    Some(outcome)
}

fn abandon(rules: &Rules, state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Started])?;
    state.nodes[node].holds[item] = None;
    let row = state.items[item];
    if row.end == End::Open && stands(rules, &row, node, &hold) && row.fence == hold.fence {
        let fence = state.mint(item);
        let counted = u8::from(rules.breaks(Mutant::CountedAtSettle));
        let row = &mut state.items[item];
        *row = Item { owner: None, due: true, fence, deliveries: row.deliveries + counted, ..*row };
    }
    Some(Ok(()))
}

fn release(
    rules: &Rules,
    state: &mut State,
    node: usize,
    item: usize,
    answered: bool,
) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Returning])?;
    let row = state.items[item];
    if row.end == End::Open && row.fence == hold.fence && stands(rules, &row, node, &hold) {
        give_back(state, item);
    }
    if answered {
        state.nodes[node].holds[item] = None;
    }
    Some(Ok(()))
}

/// The row is free again and its delivery is taken back.
fn give_back(state: &mut State, item: usize) {
    let fence = state.mint(item);
    let row = &mut state.items[item];
    *row = Item { owner: None, due: true, fence, deliveries: row.deliveries.saturating_sub(1), ..*row };
}

fn end_poisoned(rules: &Rules, state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = hold_in(state, node, item, &[Phase::Poison])?;
    let row = state.items[item];
    if rules.breaks(Mutant::PoisonThroughLease) && row.due {
        return None;
    }
    state.nodes[node].holds[item] = None;
    if row.end != End::Open || !stands(rules, &row, node, &hold) {
        return Some(Ok(()));
    }
    if row.fence != hold.fence {
        return Some(Err(Breach::StaleWrite));
    }
    end(state, item, End::Poisoned);
    Some(Ok(()))
}

fn end(state: &mut State, item: usize, how: End) {
    let fence = state.mint(item);
    let row = &mut state.items[item];
    *row = Item { end: how, owner: None, due: false, fence, deliveries: 0, started: 0, ..*row };
}

fn renew(rules: &Rules, state: &mut State, node: usize, item: usize) -> Option<Result<(), Breach>> {
    let hold = state.nodes[node].holds[item]?;
    let row = state.items[item];
    let mine = Owner { node: node as u8, current: true };
    let process = &state.nodes[node];
    if rules.slow_claims
        || !process.alive
        || !process.row
        || row.owner != Some(mine)
        || row.fence != hold.fence
        || !row.due
    {
        return None;
    }
    state.items[item].due = false;
    Some(Ok(()))
}

fn declare_dead(state: &mut State, node: usize) -> Option<Result<(), Breach>> {
    if !state.nodes[node].row {
        return None;
    }
    state.nodes[node].row = false;
    forget_epoch(state, node);
    Some(Ok(()))
}

fn register(state: &mut State, node: usize) -> Option<Result<(), Breach>> {
    let process = state.nodes[node];
    if process.alive && process.row {
        return None;
    }
    // A process that was started anew leaves the row of its predecessor to the others; here the epoch tells them apart.
    forget_epoch(state, node);
    state.nodes[node].alive = true;
    state.nodes[node].row = true;
    Some(Ok(()))
}

/// What was owned or held under the node's epoch belongs to an earlier one.
fn forget_epoch(state: &mut State, node: usize) {
    for row in &mut state.items {
        if let Some(owner) = row.owner.as_mut().filter(|owner| owner.node == node as u8) {
            owner.current = false;
        }
    }
    for hold in state.nodes[node].holds.iter_mut().flatten() {
        hold.current = false;
    }
}

fn hold_in(state: &State, node: usize, item: usize, phases: &[Phase]) -> Option<Hold> {
    let process = &state.nodes[node];
    process.holds[item].filter(|hold| process.alive && phases.contains(&hold.phase))
}

fn set_phase(state: &mut State, node: usize, item: usize, phase: Phase) {
    if let Some(hold) = &mut state.nodes[node].holds[item] {
        hold.phase = phase;
    }
}
