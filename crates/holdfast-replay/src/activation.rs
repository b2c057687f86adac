//! Activations: what is handed to user code in one turn.
//!
//! A cold activation carries `start` and every fact of the execution; a warm one only the new facts. JavaScript
//! applies the facts in order, lets the code run after each, and answers with a [`crate::Reply`].

use serde::{Deserialize, Serialize};

use crate::{Carried, KeptValue, Payload};

/// A live frame: the code of one execution kept between turns. Chosen by the engine, unique within a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FrameId(pub u32);

/// What user code is given in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// The frame.
    #[serde(rename = "h")]
    pub frame: FrameId,
    /// Present for a cold activation: the frame starts from nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<ActivationStart>,
    /// Facts applied before this activation (0 when cold).
    #[serde(rename = "n")]
    pub applied: u32,
    /// Facts to apply, in order.
    #[serde(rename = "f")]
    pub facts: Vec<Fact>,
    /// How many of `facts` are replayed from history; the others are new. Log calls are silent during the former.
    #[serde(rename = "r")]
    pub replayed: u32,
    /// The instance is not leased: no code of a local step may run.
    #[serde(rename = "l", skip_serializing_if = "std::ops::Not::not")]
    pub unleased: bool,
}

/// What a cold frame starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivationStart {
    /// Instance id.
    pub instance: String,
    /// Execution number, from 1.
    pub execution: i64,
    /// Orchestration name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// Input.
    pub input: Payload,
    /// Instance id of the parent, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Seed of the deterministic random numbers, in hexadecimal.
    pub seed: String,
    /// Database time of the first turn, in ms since 1970.
    pub at_ms: i64,
    /// Unread messages of the predecessor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
    /// Custom status taken over from the predecessor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<String>,
    /// Values taken over from the predecessor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<KeptValue>,
    /// True when history already holds events of this execution (the first turn ran before).
    pub replaying: bool,
}

/// One fact. `at` is the database time of the turn that recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "t")]
#[expect(missing_docs, reason = "the fields say what they are; the variants are documented")]
pub enum Fact {
    /// The command `seq` has a result (a timer's is `null`).
    #[serde(rename = "done")]
    Done { at: i64, seq: u32, value: Payload },
    /// The command `seq` failed.
    #[serde(rename = "fail")]
    Fail { at: i64, seq: u32, error: Payload },
    /// A one-shot event was raised.
    #[serde(rename = "event")]
    Event { at: i64, name: String, data: Payload },
    /// A queue message arrived.
    #[serde(rename = "queue")]
    Queue { at: i64, name: String, data: Payload },
    /// The instance is to be cancelled.
    #[serde(rename = "cancel")]
    Cancel { at: i64, reason: String },
}
