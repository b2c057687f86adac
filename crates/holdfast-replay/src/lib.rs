//! Deterministic replay of one orchestration execution.
//!
//! The crate is told facts (a message arrived, user code asked for something) and answers with events to append
//! and effects to carry out. It has no I/O, no clock, no chance and no unordered iteration: the same calls give
//! the same answers, on every node and at every time.
//!
//! Reading order: [`payload`], [`event`], [`message`], [`command`], [`activation`], [`execution`], [`retry`].
#![forbid(unsafe_code)]

pub mod activation;
pub mod command;
pub mod event;
pub mod execution;
pub mod message;
pub mod mismatch;
pub mod payload;
pub mod retry;

pub use activation::{Activation, FrameId};
pub use command::{Reply, ReplyCommand, ReplyOutcome};
pub use event::{Carried, CarriedKind, Event, EventBody, EventId, ParentLink, StartInfo};
pub use execution::{Accepted, Effect, End, Execution, TurnResult};
pub use message::{Message, MessageBody};
pub use mismatch::{CorruptHistory, Mismatch};
pub use payload::Payload;
pub use retry::RetryPolicy;
