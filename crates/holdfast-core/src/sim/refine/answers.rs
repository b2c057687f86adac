//! Answers as lines that both sides must say alike, and commands in the database's numbers.

use super::{
    contents::or_empty,
    names::{Line, Names},
};
use crate::store::{
    Fence,
    activity::ClaimedActivity,
    commit::{CommitItem, CommitOutcome, SettledTurn},
    turn::ClaimedTurn,
};

/// The items with the database's numbers in the place of the model's.
pub(super) fn real_items(items: &[CommitItem], names: &Names) -> Vec<CommitItem> {
    let mut items = items.to_vec();
    for item in &mut items {
        match item {
            CommitItem::Turn(turn) => {
                turn.fence = Fence(names.fences.real(turn.fence.0));
                for id in &mut turn.consumed {
                    *id = names.messages.real(*id);
                }
            }
            CommitItem::Activity(activity) => {
                activity.fence = Fence(names.fences.real(activity.fence.0));
            }
            CommitItem::Send(_) | CommitItem::Start(_) | CommitItem::Enqueue(_) => {}
        }
    }
    items
}

pub(super) fn real_fences(fences: &[Fence], names: &Names) -> Vec<Fence> {
    fences.iter().map(|fence| Fence(names.fences.real(fence.0))).collect()
}

/// Fences that were told, by the order of the model's.
pub(super) fn told(fences: &[Fence], real: bool, names: &Names) -> Vec<i64> {
    let number = |fence: &Fence| if real { names.fences.model(fence.0) } else { fence.0 };
    let mut told: Vec<i64> = fences.iter().map(number).collect();
    told.sort_unstable();
    told
}

pub(super) fn turns(claimed: &[ClaimedTurn]) -> Vec<Line> {
    let line = |turn: &ClaimedTurn| {
        let start = turn.start.as_ref();
        let rest = format!(
            "deliveries={} poisoned={} name={} version={} execution={} len={} parked={} cut={} replay={} start={:?} parent={:?} now={}",
            turn.deliveries,
            turn.poisoned,
            turn.name,
            or_empty(turn.version.as_ref()),
            turn.execution,
            turn.history_len,
            turn.parked,
            turn.cut_off,
            or_empty(turn.replay_version),
            start.map(|start| (&start.input, &start.carried, &start.custom_status)),
            turn.parent,
            turn.now_ms
        );
        Line::new(turn.instance.clone(), rest).with_fences(&[turn.fence.0, turn.last_fence.0])
    };
    claimed.iter().map(line).collect()
}

pub(super) fn tasks(claimed: &[ClaimedActivity]) -> Vec<Line> {
    let line = |task: &ClaimedActivity| {
        let rest = format!("{:?}", ClaimedActivity { fence: Fence(0), ..task.clone() });
        let key = format!("{}/{}/{}", task.key.instance, task.key.execution, task.key.event);
        Line::new(key, rest).with_fences(&[task.fence.0])
    };
    claimed.iter().map(line).collect()
}

pub(super) fn outcomes(outcomes: &[CommitOutcome]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        let key = format!("item {index:03}");
        if let CommitOutcome::Begun { fence, now_ms } = outcome {
            lines.push(Line::new(key, format!("begun, now={now_ms}")).with_fences(&[fence.0]));
            continue;
        }
        let CommitOutcome::Settled(settled) = outcome else {
            lines.push(Line::new(key, format!("{outcome:?}")));
            continue;
        };
        let SettledTurn { more_work, retaken, now_ms, .. } = settled;
        let rest = format!("settled, more_work={more_work} retaken={retaken} now={now_ms}");
        lines.push(Line::new(key.clone(), rest).with_fences(&[settled.next.0]));
        for task in &settled.handed {
            let rest = format!("scheduled={}", task.scheduled_at_ms);
            lines.push(Line::new(format!("{key} task {:03}", task.event), rest).with_fences(&[task.fence.0]));
        }
    }
    lines
}
