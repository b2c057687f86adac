//! Commands: what user code asked for in a turn, as JavaScript reports it.
//!
//! Commands are numbered in the order in which the code gave them, over the whole execution: command `seq` k is the
//! k-th command event in history. `step` is the number of facts that had been applied when the command was given
//! (counted over the whole execution), so the order of facts and commands is known exactly and recorded exactly.

use serde::{Deserialize, Serialize};

use crate::{Payload, RetryPolicy, activation::FrameId};

/// The answer to one activation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// Which frame answers.
    #[serde(rename = "h")]
    pub frame: FrameId,
    /// Facts applied so far, over the whole execution; fewer than given when the code ended before the last.
    #[serde(rename = "n")]
    pub applied: u32,
    /// New commands for a warm activation; all of them, from the first, for a cold one.
    #[serde(rename = "c")]
    pub commands: Vec<ReplyCommand>,
    /// Results of local steps, in the order in which the code was given them: facts behind those of the activation.
    #[serde(rename = "l", default)]
    pub locals: Vec<LocalResult>,
    /// Where the code stands.
    #[serde(rename = "o")]
    pub outcome: ReplyOutcome,
}

/// How a local step ended, on the wire `{"seq":0,"at":1,"ok":…}` or `{"seq":0,"at":1,"err":…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalResult {
    /// The command that it answers.
    pub seq: u32,
    /// Database time of the turn, as the code sees it, in ms since 1970.
    pub at: i64,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Payload>,
    /// Its error; without either the result is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub err: Option<Payload>,
}

/// One command with the step at which it was given, on the wire `{"activity":{"step":0,…}}` (externally tagged: a
/// tag inside would make serde buffer the payload and lose its exact text).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum ReplyCommand {
    /// Run an activity.
    #[serde(rename = "activity")]
    Activity {
        step: u32,
        name: String,
        input: Payload,
        #[serde(default)]
        tag: Option<String>,
        #[serde(default)]
        session: Option<String>,
        #[serde(default)]
        retry: Option<RetryPolicy>,
        #[serde(default, rename = "timeoutMs")]
        timeout_ms: Option<u64>,
    },
    /// Start a timer.
    #[serde(rename = "timer")]
    Timer {
        step: u32,
        #[serde(rename = "delayMs")]
        delay_ms: u64,
    },
    /// Wait for a one-shot event.
    #[serde(rename = "event")]
    WaitEvent { step: u32, name: String },
    /// Wait for the next message of a queue.
    #[serde(rename = "queue")]
    Dequeue { step: u32, name: String },
    /// Start a child and wait for its end; without `instance` the id is made from the parent's.
    #[serde(rename = "child")]
    Child {
        step: u32,
        name: String,
        #[serde(default)]
        version: Option<String>,
        #[serde(default)]
        instance: Option<String>,
        input: Payload,
    },
    /// Start an orchestration nobody waits for.
    #[serde(rename = "detached")]
    Detached {
        step: u32,
        name: String,
        #[serde(default)]
        version: Option<String>,
        instance: String,
        input: Payload,
    },
    /// The command `seq` is no longer wanted (it lost a race).
    #[serde(rename = "cancel")]
    Cancel { step: u32, seq: u32 },
    /// Set or reset the custom status.
    #[serde(rename = "status")]
    Status {
        step: u32,
        #[serde(default)]
        status: Option<String>,
    },
    /// Keep a value under a key; `at` is the time of the last fact.
    #[serde(rename = "set")]
    SetValue { step: u32, key: String, value: String, at: i64 },
    /// Drop the value of a key.
    #[serde(rename = "clear")]
    ClearValue { step: u32, key: String },
    /// Drop all values.
    #[serde(rename = "clearAll")]
    ClearValues { step: u32 },
    /// Run a step in place; its result is in the same reply.
    #[serde(rename = "local")]
    Local { step: u32, name: String },
    /// Read a value that another instance keeps; answered by the engine itself.
    #[serde(rename = "read")]
    ReadValue { step: u32, instance: String, key: String },
}

/// Where the code stands after an activation: `"waiting"`, `{"completed":{"output":…}}` and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum ReplyOutcome {
    /// It waits for something it asked for.
    #[serde(rename = "waiting")]
    Waiting,
    /// It returned.
    #[serde(rename = "completed")]
    Completed { output: Payload },
    /// It threw.
    #[serde(rename = "failed")]
    Failed { error: Payload },
    /// It continues as new.
    #[serde(rename = "continued")]
    Continued {
        input: Payload,
        #[serde(default)]
        version: Option<String>,
    },
    /// It waits for something the engine does not control, or a command came from outside an activation.
    #[serde(rename = "foreign")]
    Foreign { message: String },
    /// The recorded facts do not fit the code: a fact names a command that was not given.
    #[serde(rename = "diverged")]
    Diverged,
}

impl ReplyCommand {
    /// The number of facts applied before it was given.
    pub fn step(&self) -> u32 {
        match self {
            Self::Activity { step, .. }
            | Self::Timer { step, .. }
            | Self::WaitEvent { step, .. }
            | Self::Dequeue { step, .. }
            | Self::Child { step, .. }
            | Self::Detached { step, .. }
            | Self::Cancel { step, .. }
            | Self::Status { step, .. }
            | Self::SetValue { step, .. }
            | Self::ClearValue { step, .. }
            | Self::ClearValues { step }
            | Self::Local { step, .. }
            | Self::ReadValue { step, .. } => *step,
        }
    }
}
