//! Instances that a batch starts, changes and continues.

use holdfast_replay::Payload;
use serde::{Deserialize, Serialize};

use super::{
    flight::columns,
    inbox::LAST_DUE_MS,
    item::{Start, StartLease, TurnCommit, TurnEnd},
};
use crate::{
    error::ErrorKind,
    store::{message::event_number, queue::MAX_MS, replay_version},
};

columns! {
    /// Starts, the clients' first, so that a client's start is told truthfully.
    Starts<'a> of StartRow {
        instance: &'a str,
        name: &'a str,
        version: Option<&'a str>,
        input: &'a str,
        parent_instance: Option<&'a str>,
        parent_execution: Option<i64>,
        parent_event: Option<i32>,
        tag: Option<&'a str>,
        delay_ms: Option<i64>,
        start_at_ms: Option<i64>,
    }
}

columns! {
    /// Clients' starts, to be compared with what exists.
    Compared<'a> of ComparedRow {
        instance: &'a str,
        name: &'a str,
        input: &'a str,
    }
}

columns! {
    /// Children, whose parents are told when the id is taken.
    Children<'a> of ChildRow {
        instance: &'a str,
        parent_instance: &'a str,
        parent_execution: i64,
        parent_event: i32,
        error: String,
    }
}

columns! {
    /// Changes of instances by their turns.
    Changes<'a> of ChangeRow {
        instance: &'a str,
        first: bool,
        version: &'a str,
        sets_status: bool,
        custom_status: Option<&'a str>,
        status: Option<&'static str>,
        output: Option<&'a str>,
        error: Option<&'a str>,
        history_len: i32,
        error_code: Option<String>,
        parked: bool,
        fence: i64,
        replay_version: i64,
    }
}

columns! {
    /// Instances that continue as new.
    Continued<'a> of ContinuedRow {
        instance: &'a str,
        execution: i64,
        input: &'a str,
        version: Option<&'a str>,
        carried: Option<&'a str>,
    }
}

/// What the batch does to instances.
#[derive(Debug, Default)]
pub(super) struct Instances<'a> {
    pub(super) starts: Starts<'a>,
    /// Those whose first turn is leased at once, all to one node.
    pub(super) begun: Starts<'a>,
    begins: Option<&'a StartLease>,
    pub(super) compared: Compared<'a>,
    pub(super) compared_items: Vec<usize>,
    pub(super) children: Children<'a>,
    pub(super) changes: Changes<'a>,
    pub(super) continued: Continued<'a>,
}

/// The longest code that is kept for lists; longer ones are no codes.
const MAX_CODE_BYTES: usize = 128;

/// The code of an error payload, when it has one that a column can hold.
fn error_code(error: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Coded {
        code: Option<String>,
    }
    let Coded { code } = serde_json::from_str(error).ok()?;
    code.filter(|code| code.len() <= MAX_CODE_BYTES && !code.contains('\0'))
}

/// The error that a parent is told, in the form of every error that crosses to user code.
#[derive(Serialize)]
struct TakenError {
    name: &'static str,
    message: String,
    code: &'static str,
}

/// What a parent is told whose child's id is taken.
pub(crate) fn taken_error(child: &str) -> Payload {
    Payload::of(&TakenError {
        name: "Error",
        message: format!("sub-orchestration instance id '{child}' already exists"),
        code: ErrorKind::InstanceExists.code(),
    })
}

impl<'a> Instances<'a> {
    /// Adds a client's start; `once` when the batch has no other one of its id. One statement gives one lease: a start that
    /// names another one goes through the queue.
    pub(super) fn client_start(&mut self, index: usize, start: &'a Start, once: bool) {
        let lease = start.lease.as_ref().filter(|_| once);
        let begins = lease.is_some_and(|lease| *self.begins.get_or_insert(lease) == lease);
        self.start(start, begins);
        self.compared.push(ComparedRow { instance: &start.instance, name: &start.name, input: &start.input });
        self.compared_items.push(index);
    }

    /// Children and detached starts; they come after the clients' starts of the batch.
    pub(super) fn started_by(&mut self, turn: &'a TurnCommit) {
        for start in &turn.starts {
            self.start(start, false);
            self.child(start);
        }
    }

    /// The node that the leased starts belong to, its epoch, and the length of the lease in ms.
    pub(super) fn leased_to(&self) -> (Option<&'a str>, Option<i64>, Option<i64>) {
        let lease = self.begins;
        let node = lease.map(|lease| &lease.node);
        let lease_ms = lease.map(|lease| lease.lease_ms.clamp(0, MAX_MS));
        (node.map(|node| node.id.as_str()), node.map(|node| node.epoch), lease_ms)
    }

    fn start(&mut self, start: &'a Start, begins: bool) {
        let parent = start.parent.as_ref();
        let starts = if begins { &mut self.begun } else { &mut self.starts };
        starts.push(StartRow {
            instance: &start.instance,
            name: &start.name,
            version: start.version.as_deref(),
            input: &start.input,
            parent_instance: parent.map(|parent| parent.instance.as_str()),
            parent_execution: parent.map(|parent| parent.execution),
            parent_event: parent.map(|parent| event_number(parent.event)),
            tag: start.tag.as_deref(),
            delay_ms: start.delay_ms.map(|ms| ms.clamp(0, LAST_DUE_MS / 2)),
            start_at_ms: start.start_at_ms.map(|ms| ms.clamp(0, LAST_DUE_MS)),
        });
    }

    fn child(&mut self, start: &'a Start) {
        let Some(parent) = &start.parent else { return };
        let error = taken_error(&start.instance);
        self.children.push(ChildRow {
            instance: &start.instance,
            parent_instance: &parent.instance,
            parent_execution: parent.execution,
            parent_event: event_number(parent.event),
            error: error.as_str().to_owned(),
        });
    }

    /// Adds what a turn changes on its instance; most turns change nothing.
    pub(super) fn turn(&mut self, turn: &'a TurnCommit) {
        let first = turn.events.first().is_some_and(|event| event.id.0 == 1);
        let (status, output, error) = match &turn.end {
            Some(TurnEnd::Completed { output }) => (Some("Completed"), Some(output.as_str()), None),
            Some(TurnEnd::Failed { error }) => (Some("Failed"), None, Some(error.as_str())),
            Some(TurnEnd::Cancelled { error }) => (Some("Cancelled"), None, Some(error.as_str())),
            Some(TurnEnd::ContinuedAsNew { .. }) => (None, None, None),
            None => (None, None, turn.park.as_ref().map(|park| park.error.as_str())),
        };
        if first || turn.custom_status.is_some() || status.is_some() || turn.park.is_some() || turn.unparks {
            self.changes.push(ChangeRow {
                instance: &turn.instance,
                first,
                version: &turn.version,
                sets_status: turn.custom_status.is_some(),
                custom_status: turn.custom_status.as_ref().and_then(|status| status.as_deref()),
                status,
                output,
                error,
                history_len: turn.history_len,
                error_code: error.and_then(error_code),
                parked: turn.park.is_some(),
                fence: turn.fence.0,
                replay_version: replay_version::current(),
            });
        }
        if let Some(TurnEnd::ContinuedAsNew { input, version, carried }) = &turn.end {
            self.continued.push(ContinuedRow {
                instance: &turn.instance,
                execution: turn.execution,
                input,
                version: version.as_deref(),
                carried: carried.as_deref(),
            });
        }
    }
}
