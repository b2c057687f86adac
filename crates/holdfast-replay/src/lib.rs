//! Deterministic replay of one orchestration execution.
//!
//! The crate is told facts (a message arrived, user code asked for something) and answers with events to append
//! and effects to carry out. It has no I/O, no clock, no chance and no unordered iteration: the same calls give
//! the same answers, on every node and at every time.
//!
//! Reading order: [`payload`], [`event`], [`message`], [`command`], [`activation`], [`execution`] with its rooms
//! (books, ledger, inbox, values, cursor, determinism, issue, cancel, carry_over, turn), [`limits`], [`retry`].
#![forbid(unsafe_code)]

pub mod activation;
mod books;
mod cancel;
mod carry_over;
pub mod command;
mod cursor;
mod describe;
mod determinism;
pub mod error_payload;
pub mod event;
pub mod execution;
mod inbox;
mod issue;
mod ledger;
pub mod limits;
pub mod message;
pub mod mismatch;
pub mod payload;
mod reopen;
pub mod retry;
mod stored;
pub mod turn;
mod values;

pub use activation::{Activation, ActivationStart, Fact, FrameId};
pub use command::{LocalResult, Reply, ReplyCommand, ReplyOutcome};
pub use error_payload::ErrorPayload;
pub use event::{
    Carried, CarriedKind, CarryOver, Event, EventBody, EventId, KeptValue, ParentLink, StartInfo, StoredEvent,
};
pub use execution::{Accepted, Execution};
pub use message::{Message, MessageBody};
pub use mismatch::{CorruptHistory, Mismatch};
pub use payload::Payload;
pub use reopen::{Reopened, reopen};
pub use retry::{Backoff, RetryPolicy};
pub use turn::{Effect, End, TurnResult};
