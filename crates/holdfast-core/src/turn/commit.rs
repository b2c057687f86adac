//! From what a turn decided to what it writes.

use std::collections::BTreeMap;

use holdfast_replay::{
    Effect, End, Event, EventBody, EventId, MessageBody, ParentLink, Payload, TurnResult, event::StoredEvent,
};

use crate::{
    store::{
        NodeKey,
        commit::{NewActivity, NewTimer, Send, Start, TurnCommit, TurnEnd, ValueChanges, ValueRead},
        turn::ClaimedTurn,
    },
    turn::Flight,
};

/// All that a flight's turn writes.
pub(super) fn turn_commit(flight: &Flight, result: TurnResult, history_len: u32) -> TurnCommit {
    let mut commit = empty(&flight.claimed, &flight.node, &flight.version);
    commit.history_len = to_i32(history_len);
    commit.consumed.clone_from(&flight.consumed);
    commit.events = result.events.iter().map(StoredEvent::encode).collect();
    for effect in result.effects {
        apply(&mut commit, effect);
    }
    commit.end = result.end.map(turn_end);
    commit
}

/// The end of an instance whose history cannot be understood: one event behind what is there, the parent is told.
pub(super) fn bare_failure(
    claimed: &ClaimedTurn,
    node: &NodeKey,
    version: &str,
    error: Payload,
) -> TurnCommit {
    let mut commit = empty(claimed, node, version);
    commit.history_len = claimed.history_len + 1;
    commit.events = vec![StoredEvent::encode(&Event {
        id: EventId(commit.history_len.unsigned_abs()),
        at_ms: claimed.now_ms,
        source: None,
        body: EventBody::OrchestrationFailed { error: error.clone() },
    })];
    if let Some(parent) = &claimed.parent {
        commit.sends.push(tell_parent(parent, Err(error.clone())));
    }
    commit.end = Some(TurnEnd::Failed { error: text(&error) });
    commit
}

fn empty(claimed: &ClaimedTurn, node: &NodeKey, version: &str) -> TurnCommit {
    TurnCommit {
        instance: claimed.instance.clone(),
        fence: claimed.fence,
        node: node.clone(),
        execution: claimed.execution,
        history_len: claimed.history_len,
        version: version.to_owned(),
        name: claimed.name.clone(),
        consumed: Vec::new(),
        events: Vec::new(),
        activities: Vec::new(),
        timers: Vec::new(),
        cancelled_activities: Vec::new(),
        cancelled_timers: Vec::new(),
        sends: Vec::new(),
        starts: Vec::new(),
        custom_status: None,
        values: ValueChanges::default(),
        reads: Vec::new(),
        end: None,
    }
}

fn apply(commit: &mut TurnCommit, effect: Effect) {
    match effect {
        Effect::ScheduleActivity { event, name, input, tag, session, retry, timeout_ms } => {
            commit.activities.push(NewActivity {
                event: to_i32(event.0),
                name,
                input: text(&input),
                retry: retry.map(|policy| text(&Payload::of(&policy))),
                timeout_ms: timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                tag,
                session,
            });
        }
        Effect::CreateTimer { event, fire_at_ms } => {
            commit.timers.push(NewTimer { event: to_i32(event.0), fire_at_ms });
        }
        Effect::StartChild { event, instance, name, version, input } => {
            let parent = ParentLink { instance: commit.instance.clone(), execution: commit.execution, event };
            commit.starts.push(Start { instance, name, version, input: text(&input), parent: Some(parent) });
        }
        Effect::StartDetached { instance, name, version, input } => {
            commit.starts.push(Start { instance, name, version, input: text(&input), parent: None });
        }
        Effect::CancelActivity { event } => commit.cancelled_activities.push(to_i32(event.0)),
        Effect::CancelTimer { event } => commit.cancelled_timers.push(to_i32(event.0)),
        Effect::CancelChild { instance, reason } => {
            commit.sends.push(Send { instance, body: MessageBody::CancelRequested { reason } });
        }
        Effect::SetStatus { status } => commit.custom_status = Some(status),
        Effect::SetValue { key, value, at_ms } => {
            commit.values.keys.insert(key, Some((value, at_ms)));
        }
        Effect::ClearValue { key } => {
            commit.values.keys.insert(key, None);
        }
        Effect::ClearValues => commit.values = ValueChanges { all_cleared: true, keys: BTreeMap::new() },
        Effect::ReadValue { event, instance, key } => {
            commit.reads.push(ValueRead { event: to_i32(event.0), instance, key });
        }
        Effect::TellParent { parent, result } => commit.sends.push(tell_parent(&parent, result)),
    }
}

fn tell_parent(parent: &ParentLink, result: Result<Payload, Payload>) -> Send {
    let (execution, source) = (parent.execution, parent.event);
    let body = match result {
        Ok(result) => MessageBody::ChildCompleted { execution, source, result },
        Err(error) => MessageBody::ChildFailed { execution, source, error },
    };
    Send { instance: parent.instance.clone(), body }
}

fn turn_end(end: End) -> TurnEnd {
    match end {
        End::Completed { output } => TurnEnd::Completed { output: text(&output) },
        End::Failed { error } => TurnEnd::Failed { error: text(&error) },
        End::Cancelled { error } => TurnEnd::Cancelled { error: text(&error) },
        End::ContinuedAsNew { input, version, carried } => TurnEnd::ContinuedAsNew {
            input: text(&input),
            version,
            carried: (!carried.is_empty()).then(|| text(&Payload::of(&carried))),
        },
    }
}

fn text(payload: &Payload) -> String {
    payload.as_str().to_owned()
}

/// Event ids fit: a history is bounded far below 2^31 events.
fn to_i32(id: u32) -> i32 {
    i32::try_from(id).expect("histories are bounded below 2^31 events")
}
