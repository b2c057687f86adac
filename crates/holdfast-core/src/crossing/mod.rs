//! The crossing into JavaScript: one batch of data out, one batch of answers in.

mod answers;
mod outbox;

pub use answers::{ActivityAnswer, ActivityResult, Answers, BeatAnswer, Broken, Whose};
pub use outbox::{Abort, AbortReason, ActivityJob, Job, Outbox, Pulled, Unstarted};
