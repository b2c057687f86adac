//! From what a turn decided to what it writes.

use std::collections::BTreeMap;

use holdfast_replay::{
    Effect, End, ErrorPayload, Event, EventBody, EventId, MessageBody, ParentLink, Payload, TurnResult,
    event::StoredEvent,
};

use crate::{
    store::{
        NodeKey,
        commit::{NewActivity, NewTimer, Park, Send, Start, TurnCommit, TurnEnd, ValueChanges, ValueRead},
        turn::{ClaimedTurn, Open},
    },
    turn::Flight,
};

/// All that a flight's turn writes.
pub(super) fn turn_commit(flight: &Flight, result: TurnResult, history_len: u32) -> TurnCommit {
    let mut commit = empty(&flight.claimed, &flight.node, &flight.version);
    commit.history_len = to_i32(history_len);
    commit.consumed.clone_from(&flight.consumed);
    commit.results.clone_from(&flight.results);
    commit.events = result.events.iter().map(StoredEvent::encode).collect();
    for effect in result.effects {
        apply(&mut commit, effect);
    }
    commit.end = result.end.map(turn_end);
    if commit.poisoned {
        commit.cancelled_timers.clear();
    }
    commit
}

/// A turn that stops its instance without an end: nothing is written, nothing is used up.
pub(super) fn park_commit(flight: &Flight, error: &Payload) -> TurnCommit {
    let mut commit = empty(&flight.claimed, &flight.node, &flight.version);
    commit.park = Some(Park { error: error.as_str().to_owned(), version: flight.claimed.version.clone() });
    commit
}

/// The end of a cancelled instance whose history cannot be read: one event behind what is there. What it has under way is
/// told by the tables; the parent is told.
pub(super) fn blind_cancel(flight: &Flight, reason: &str, open: Open) -> TurnCommit {
    let claimed = &flight.claimed;
    let error = ErrorPayload::cancelled(reason).to_payload();
    let mut commit =
        bare_end(empty(claimed, &flight.node, &flight.version), open.last_event, claimed.now_ms, &error);
    commit.cancelled_activities = open.activities;
    let body = MessageBody::CancelRequested { reason: "parent canceled".to_owned() };
    commit.sends = open
        .children
        .into_iter()
        .map(|instance| Send { instance, body: body.clone(), dedup_key: None })
        .collect();
    if let Some(parent) = &claimed.parent {
        commit.sends.push(tell_parent(parent, Err(error)));
    }
    commit
}

/// What is left of a cancellation that the server refused as a whole: its end, and what it takes back.
pub(super) fn rescued_cancel(flight: &Flight, refused: &TurnCommit) -> Option<TurnCommit> {
    let Some(TurnEnd::Cancelled { error }) = &refused.end else { return None };
    let error = Payload::from_text(error.clone())?;
    let claimed = &flight.claimed;
    let mut commit =
        bare_end(empty(claimed, &flight.node, &flight.version), claimed.history_len, claimed.now_ms, &error);
    commit.cancelled_activities.clone_from(&refused.cancelled_activities);
    commit.sends.clone_from(&refused.sends);
    Some(commit)
}

fn bare_end(mut commit: TurnCommit, last_event: i32, at_ms: i64, error: &Payload) -> TurnCommit {
    commit.history_len = last_event + 1;
    commit.events = vec![StoredEvent::encode(&Event {
        id: EventId(commit.history_len.unsigned_abs()),
        at_ms,
        source: None,
        body: EventBody::OrchestrationFailed { error: error.clone() },
    })];
    commit.end = Some(TurnEnd::Cancelled { error: error.as_str().to_owned() });
    commit
}

pub(super) fn empty(claimed: &ClaimedTurn, node: &NodeKey, version: &str) -> TurnCommit {
    TurnCommit {
        instance: claimed.instance.clone(),
        fence: claimed.fence,
        node: node.clone(),
        execution: claimed.execution,
        history_len: claimed.history_len,
        version: version.to_owned(),
        name: claimed.name.clone(),
        consumed: Vec::new(),
        results: Vec::new(),
        events: Vec::new(),
        activities: Vec::new(),
        keeps: false,
        retake_ms: None,
        belated: Vec::new(),
        timers: Vec::new(),
        cancelled_activities: Vec::new(),
        cancelled_timers: Vec::new(),
        sends: Vec::new(),
        starts: Vec::new(),
        custom_status: None,
        values: ValueChanges::default(),
        reads: Vec::new(),
        end: None,
        park: None,
        unparks: claimed.parked,
        poisoned: claimed.poisoned,
        awaited: false,
    }
}

fn apply(commit: &mut TurnCommit, effect: Effect) {
    match effect {
        Effect::ScheduleActivity { event, name, input, tag, session, retry, timeout_ms } => {
            commit.activities.push(NewActivity {
                event: to_i32(event.0),
                name,
                input: input.into_text(),
                retry: retry.map(|policy| Payload::of(&policy).into_text()),
                timeout_ms: timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                tag,
                session,
                lease_ms: None,
            });
        }
        Effect::CreateTimer { event, fire_at_ms } => {
            commit.timers.push(NewTimer { event: to_i32(event.0), fire_at_ms });
        }
        Effect::StartChild { event, instance, name, version, input } => {
            let parent = ParentLink { instance: commit.instance.clone(), execution: commit.execution, event };
            commit.starts.push(Start {
                instance,
                name,
                version,
                input: input.into_text(),
                parent: Some(parent),
                ..Start::default()
            });
        }
        Effect::StartDetached { instance, name, version, input } => {
            commit.starts.push(Start {
                instance,
                name,
                version,
                input: input.into_text(),
                ..Start::default()
            });
        }
        Effect::CancelActivity { event } => commit.cancelled_activities.push(to_i32(event.0)),
        Effect::CancelTimer { event } => commit.cancelled_timers.push(to_i32(event.0)),
        Effect::CancelChild { instance, reason } => {
            commit.sends.push(Send {
                instance,
                body: MessageBody::CancelRequested { reason },
                dedup_key: None,
            });
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
    Send { instance: parent.instance.clone(), body, dedup_key: None }
}

fn turn_end(end: End) -> TurnEnd {
    match end {
        End::Completed { output } => TurnEnd::Completed { output: output.into_text() },
        End::Failed { error } => TurnEnd::Failed { error: error.into_text() },
        End::Cancelled { error } => TurnEnd::Cancelled { error: error.into_text() },
        End::ContinuedAsNew { input, version, carried } => TurnEnd::ContinuedAsNew {
            input: input.into_text(),
            version,
            carried: (!carried.is_empty()).then(|| Payload::of(&carried).into_text()),
        },
    }
}

/// Event ids fit: a history is bounded far below 2^31 events.
fn to_i32(id: u32) -> i32 {
    i32::try_from(id).expect("histories are bounded below 2^31 events")
}
