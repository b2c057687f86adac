//! Items of a commit batch, and what became of them.
//! length: the words of one interface, most of them said in its docs.

use std::collections::BTreeMap;

use holdfast_replay::{MessageBody, ParentLink, Payload, event::StoredEvent};

use crate::store::{ActivityKey, Fence, NodeKey, instance::InstanceRow};

/// All that one turn writes.
#[derive(Debug, Clone)]
pub struct TurnCommit {
    /// Instance id.
    pub instance: String,
    /// The lease it settles.
    pub fence: Fence,
    /// Who holds it.
    pub node: NodeKey,
    /// Execution it belongs to.
    pub execution: i64,
    /// History length after this turn.
    pub history_len: i32,
    /// Exact version, to be fixed by the first turn.
    pub version: String,
    /// Orchestration name, copied onto activity rows.
    pub name: String,
    /// Inbox rows used up (accepted or dropped).
    pub consumed: Vec<i64>,
    /// Activities whose result it uses without a message, by scheduling event: they are settled in the same batch, or were
    /// in an earlier one. Without each of them the turn does not stand.
    pub results: Vec<i32>,
    /// Events to append.
    pub events: Vec<StoredEvent>,
    /// Activity tasks to queue.
    pub activities: Vec<NewActivity>,
    /// The lease goes on: activities that this turn, or one before it under the same lease, scheduled run under it without a
    /// row. Such a turn appends events, and the row of the instance's turn stays as it is, so it neither ends, parks nor unparks
    /// the instance. Nothing that it queues is leased: its outcome tells of no other lease.
    pub keeps: bool,
    /// Once it is settled its instance is leased to its node again, as by a claim, for so many ms: the next turn is about to begin
    /// there. Not while a message waits.
    pub retake_ms: Option<i64>,
    /// Activities scheduled by earlier turns under this lease, or under one that was cut off, that get their row only now.
    pub belated: Vec<BelatedActivity>,
    /// Timers to queue, as messages due later.
    pub timers: Vec<NewTimer>,
    /// Activities no longer wanted, by scheduling event.
    pub cancelled_activities: Vec<i32>,
    /// Timers no longer wanted, by scheduling event.
    pub cancelled_timers: Vec<i32>,
    /// Messages to other instances (child results, cancellations).
    pub sends: Vec<Send>,
    /// Children and detached starts.
    pub starts: Vec<Start>,
    /// New custom status: `Some(None)` resets it.
    pub custom_status: Option<Option<String>>,
    /// What becomes of the instance's values.
    pub values: ValueChanges,
    /// Values to read, of any instance.
    pub reads: Vec<ValueRead>,
    /// How the execution ends, if it does.
    pub end: Option<TurnEnd>,
    /// Stops the instance without an end; such a turn writes nothing else.
    pub park: Option<Park>,
    /// The instance was parked and this turn goes on with it.
    pub unparks: bool,
    /// Its deliveries are used up: what is left in the inbox stays, for a retry.
    pub poisoned: bool,
    /// Somebody here waits for the end: the outcome tells it.
    pub awaited: bool,
}

/// Why an instance is parked.
#[derive(Debug, Clone)]
pub struct Park {
    /// The error, JSON text.
    pub error: String,
    /// The version as the claim found it: a first turn that is parked fixes none.
    pub version: Option<String>,
}

/// What a turn does to the values that its instance keeps.
#[derive(Debug, Clone, Default)]
pub struct ValueChanges {
    /// All that were there before go.
    pub all_cleared: bool,
    /// What becomes of each key: a value with its time in ms, or `None` when it goes.
    pub keys: BTreeMap<String, Option<(String, i64)>>,
}

/// A value to be read by the commit; the answer is a message.
#[derive(Debug, Clone)]
pub struct ValueRead {
    /// Scheduling event.
    pub event: i32,
    /// Whose value.
    pub instance: String,
    /// Its key.
    pub key: String,
}

/// An activity task to queue.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the same fields as in ClaimedActivity")]
pub struct NewActivity {
    pub event: i32,
    pub name: String,
    pub input: String,
    pub retry: Option<String>,
    pub timeout_ms: Option<i64>,
    pub tag: Option<String>,
    pub session: Option<String>,
    /// Taken by the node of the turn at once, under a lease of so many ms.
    pub lease_ms: Option<i64>,
}

/// An activity that was scheduled without a row and gets it later. Nothing is written when it has a row, or a result in the inbox.
#[derive(Debug, Clone)]
pub struct BelatedActivity {
    /// The task. With a lease its body runs already, on the node of the turn: that delivery counts.
    pub task: NewActivity,
    /// The try that runs or comes next.
    pub attempt: i32,
    /// Deliveries that count beside the one that runs.
    pub deliveries: i32,
    /// From now until it can be claimed, in ms.
    pub delay_ms: i64,
    /// What its body told last.
    pub heartbeat: Option<String>,
    /// It may have killed its process: it is claimed alone.
    pub isolated: bool,
}

/// A timer to queue.
#[derive(Debug, Clone, Copy)]
pub struct NewTimer {
    /// Scheduling event.
    pub event: i32,
    /// Due time, ms since 1970 of the database's clock.
    pub fire_at_ms: i64,
}

/// How an execution ends.
#[derive(Debug, Clone)]
pub enum TurnEnd {
    /// With a value, JSON text.
    Completed {
        /// The output.
        output: String,
    },
    /// With an error, JSON text.
    Failed {
        /// The error.
        error: String,
    },
    /// Cancelled, with the error that says so, JSON text.
    Cancelled {
        /// The error.
        error: String,
    },
    /// As the next execution.
    ContinuedAsNew {
        /// Input of the next execution, JSON text.
        input: String,
        /// Its exact version; `None` means newest at its first turn.
        version: Option<String>,
        /// JSON of what is carried over.
        carried: Option<String>,
    },
}

/// A message to an instance.
#[derive(Debug, Clone)]
pub struct Send {
    /// Addressee.
    pub instance: String,
    /// What it says.
    pub body: MessageBody,
    /// A client's key: two messages to one instance with the same key are one. `None` for those of turns, which are sent
    /// once by their fences.
    pub dedup_key: Option<String>,
}

/// A start.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Instance id.
    pub instance: String,
    /// Orchestration name.
    pub name: String,
    /// Exact version, if asked for.
    pub version: Option<String>,
    /// Input, JSON text.
    pub input: String,
    /// Parent: when the id exists already, the parent gets a ChildFailed message instead.
    pub parent: Option<ParentLink>,
    /// Label, for lists.
    pub tag: Option<String>,
    /// Not before this many ms from the commit on.
    pub delay_ms: Option<i64>,
    /// Not before this time, ms since 1970 of the database's clock; goes before a delay.
    pub start_at_ms: Option<i64>,
    /// The node of this process that begins the first turn at once; such a start has no delay and no parent.
    pub lease: Option<StartLease>,
}

/// The lease that a start gives its first turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartLease {
    /// Who has it.
    pub node: NodeKey,
    /// How long, in ms.
    pub lease_ms: i64,
}

/// How a claimed activity is settled.
#[derive(Debug, Clone)]
pub struct ActivityCommit {
    /// The task.
    pub key: ActivityKey,
    /// The lease it settles.
    pub fence: Fence,
    /// Who holds it.
    pub node: NodeKey,
    /// It ran without a row, and the lease is that of its instance's turn, which goes on. It has ended for its instance.
    pub rowless: bool,
    /// What becomes of it.
    pub outcome: ActivityOutcome,
    /// A turn of this process has the result in hand already.
    pub rides: bool,
    /// What its body told last and is not stored yet; kept for the next try.
    pub heartbeat: Option<Payload>,
}

/// What becomes of a settled activity.
#[derive(Debug, Clone)]
pub enum ActivityOutcome {
    /// Ended: the row goes, the instance gets this message.
    Ended(MessageBody),
    /// A standalone one ended: the row goes, and stays elsewhere when it failed or somebody wants to read it.
    StandaloneEnded(ActivityEnd),
    /// To be tried again after a delay; the next attempt's number. Deliveries start anew: the try was answered.
    Retry {
        /// From now, in ms.
        delay_ms: i64,
        /// The next attempt.
        attempt: i32,
    },
}

/// How an activity ends.
#[derive(Debug, Clone)]
pub enum ActivityEnd {
    /// With a result.
    Completed(Payload),
    /// With an error, for good.
    Failed(Payload),
    /// Its deliveries were used up.
    Poisoned(Payload),
}

impl ActivityEnd {
    /// The status as it is stored.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Completed(_) => "Completed",
            Self::Failed(_) => "Failed",
            Self::Poisoned(_) => "Poisoned",
        }
    }

    /// The result or the error.
    pub fn result(&self) -> &Payload {
        match self {
            Self::Completed(payload) | Self::Failed(payload) | Self::Poisoned(payload) => payload,
        }
    }
}

/// A standalone activity to queue.
#[derive(Debug, Clone)]
pub struct NewStandalone {
    /// Its id, unique among standalone activities.
    pub id: String,
    /// Activity name.
    pub name: String,
    /// Input, JSON text.
    pub input: String,
    /// Retry policy, JSON text; one try without it.
    pub retry: Option<String>,
    /// Time limit of one try, in ms.
    pub timeout_ms: Option<i64>,
    /// Routing tag.
    pub tag: Option<String>,
    /// From now until it can be claimed, in ms.
    pub delay_ms: i64,
    /// How long it is kept after a success, in ms; 0 for not at all, -1 until it is deleted.
    pub retention_ms: i64,
}

/// Standalone activities that are queued together.
#[derive(Debug, Clone)]
pub struct Enqueue {
    /// The tasks.
    pub tasks: Vec<NewStandalone>,
    /// Whether some ids were chosen by the caller, and not drawn at random.
    pub named: bool,
}

/// One item of a batch.
#[derive(Debug, Clone)]
pub enum CommitItem {
    /// A turn.
    Turn(Box<TurnCommit>),
    /// An activity result.
    Activity(ActivityCommit),
    /// A client's message.
    Send(Send),
    /// A client's start.
    Start(Start),
    /// A client's standalone activities.
    Enqueue(Enqueue),
}

impl CommitItem {
    /// What it is, in a word.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Turn(_) => "turn",
            Self::Activity(_) => "activity",
            Self::Send(_) => "message",
            Self::Start(_) => "start",
            Self::Enqueue(_) => "enqueue",
        }
    }

    /// The instances whose turn rows it locks.
    pub fn instances(&self) -> Vec<&str> {
        match self {
            Self::Turn(turn) => {
                let sends = turn.sends.iter().map(|send| send.instance.as_str());
                let starts = turn.starts.iter().map(|start| start.instance.as_str());
                [turn.instance.as_str()].into_iter().chain(sends).chain(starts).collect()
            }
            // A standalone activity belongs to no instance.
            Self::Activity(activity) if activity.key.execution == 0 => Vec::new(),
            Self::Activity(activity) => vec![&activity.key.instance],
            Self::Send(send) => vec![&send.instance],
            Self::Start(start) => vec![&start.instance],
            Self::Enqueue(_) => Vec::new(),
        }
    }
}

/// A turn whose instance goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledTurn {
    /// The next due time is already over: claim again at once.
    pub more_work: bool,
    /// The fence that the row has now, without an owner: a turn may be settled under it without a claim, as long as nobody
    /// has claimed the row.
    pub next: Fence,
    /// The row is leased to the node of the turn under that fence.
    pub retaken: bool,
    /// Database time, ms since 1970.
    pub now_ms: i64,
    /// The activities that this node took, or had already.
    pub handed: Vec<HandedTask>,
}

/// An activity that was queued under a lease of the node that queued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedTask {
    /// Scheduling event.
    pub event: i32,
    /// The lease.
    pub fence: Fence,
    /// When it was scheduled, ms since 1970.
    pub scheduled_at_ms: i64,
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Written, by this call or by an earlier one whose reply was lost.
    Done {
        /// A turn or task is due because of this item (the next due time of a settled turn is already over, or a
        /// message was delivered): claim again at once.
        more_work: bool,
    },
    /// A turn was written and its instance goes on.
    Settled(SettledTurn),
    /// A turn was written, and its lease goes on.
    Kept,
    /// A turn was written that ends its instance, which somebody here waits for.
    Ended(Box<InstanceRow>),
    /// The lease is not held any more; nothing was written.
    Fenced,
    /// The lease is not held any more, and an earlier run got no answer: that one wrote it, or somebody else has done its work
    /// since. The committer says so, never the store.
    Overtaken,
    /// A turn that was to complete gave way to a request to cancel: nothing was written, the instance is due again.
    Yielded,
    /// A start whose instance was made.
    Created,
    /// The same, and its first turn is leased to the node that the start names.
    Begun {
        /// The lease.
        fence: Fence,
        /// Database time of it, ms since 1970.
        now_ms: i64,
    },
    /// A start whose id exists; `same` when name and input are equal.
    Exists {
        /// Whether name and input are the same.
        same: bool,
    },
    /// A message to an instance that has ended: dropped.
    AlreadyEnded,
    /// A start that met a deletion of the same id: nothing was made and nothing is there. To be run again.
    Unsettled,
    /// Standalone activities: whether each was made by this run; the others exist.
    Enqueued {
        /// In the order of the tasks.
        created: Vec<bool>,
    },
}
