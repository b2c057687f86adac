//! What one execution hands to the next, and which terminal event stands for which end.
//!
//! Messages that nobody read go along in the order in which they came, of all names; nothing accepted is lost by
//! continuing as new. Kept values go along with their times. Open waits do not go along, and neither do results of the old execution's commands.

use crate::{CarryOver, End, ErrorPayload, EventBody, ReplyOutcome, books::Books};

/// The end that an outcome of user code means; `None` while it goes on.
pub(crate) fn end_of(outcome: ReplyOutcome, books: &mut Books) -> Option<End> {
    match outcome {
        ReplyOutcome::Waiting | ReplyOutcome::Diverged => None,
        ReplyOutcome::Completed { output } => Some(End::Completed { output }),
        ReplyOutcome::Failed { error } => Some(End::Failed { error }),
        ReplyOutcome::Continued { input, version } => {
            let carried = CarryOver { messages: books.mailboxes.take_unread(), values: books.values.all() };
            Some(End::ContinuedAsNew { input, version, carried })
        }
        ReplyOutcome::Foreign { message } => {
            let error = ErrorPayload::new("ForeignWaitError", "FOREIGN_WAIT", message).to_payload();
            Some(End::Failed { error })
        }
    }
}

/// The terminal event of an end.
pub(crate) fn terminal_event(end: &End) -> EventBody {
    match end {
        End::Completed { output } => EventBody::OrchestrationCompleted { output: output.clone() },
        End::Failed { error } | End::Cancelled { error } => {
            EventBody::OrchestrationFailed { error: error.clone() }
        }
        End::ContinuedAsNew { input, version, .. } => {
            EventBody::OrchestrationContinuedAsNew { input: input.clone(), version: version.clone() }
        }
    }
}
