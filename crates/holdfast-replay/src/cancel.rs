//! Cancellation: of a race's losers, of what is open when an execution ends, of the whole execution.
//!
//! The reasons below stand in histories; they are never reworded. [`LOST_RACE`] also tells, when a history is read,
//! a command of user code from the trace that the end of an execution leaves.

use std::collections::BTreeSet;

use crate::{
    Effect, End, EventBody, EventId, Execution, MessageBody,
    books::Books,
    ledger::{CommandKind, Ledger, Slot},
    limits,
    message::NewFact,
    turn::TurnWriter,
};

/// Reason of a cancellation that user code asked for: the task lost a race.
pub(crate) const LOST_RACE: &str = "dropped_future";

/// Reason that a child is given when its task lost a race.
pub(crate) const CHILD_LOST_RACE: &str = "parent dropped sub-orchestration future";

/// Reason of a cancellation that follows from the execution's own.
const CANCELLED: &str = "orchestration_cancelled";

/// Reason that a child is given when its parent was cancelled.
pub(crate) const PARENT_CANCELLED: &str = "parent canceled";

/// That somebody asked to cancel. What is open then is taken back; the code may clean up with new steps, and whatever it
/// does then the execution ends as cancelled.
#[derive(Debug, Clone)]
pub(crate) struct CancelRequest {
    /// Why.
    pub(crate) reason: String,
    /// Its event and the number of its fact, counted from 1, once they are recorded.
    pub(crate) recorded: Option<(EventId, u32)>,
}

impl Execution {
    /// Nothing that was asked for before the request is answered after it.
    pub(crate) fn note_cancel(&mut self) {
        if let Some(NewFact { body: EventBody::OrchestrationCancelRequested { reason }, .. }) =
            self.pending.last()
        {
            self.cancel = Some(CancelRequest { reason: reason.clone(), recorded: None });
            self.doomed = self.books.ledger.doom();
        }
    }

    /// Whether a message is the timer that ends the cleaning up.
    pub(crate) fn ends_clean_up(&self, body: &MessageBody) -> bool {
        let recorded = self.cancel.as_ref().and_then(|cancel| cancel.recorded);
        matches!((body, recorded), (MessageBody::TimerFired { execution, source }, Some((event, _)))
            if *execution == self.execution && *source == event)
    }

    /// Whether cancelled code has had its time.
    pub(crate) fn cleaned_up(&self) -> bool {
        let recorded = self.cancel.as_ref().and_then(|cancel| cancel.recorded);
        self.overdue || recorded.is_some_and(|(_, fact)| self.facts - fact > limits::MAX_CLEANUP_FACTS)
    }
}

/// The event that records a cancel command for a target of this kind.
pub(crate) fn cancel_event(kind: CommandKind) -> EventBody {
    let reason = LOST_RACE.to_owned();
    match kind {
        CommandKind::Activity => EventBody::ActivityCancelRequested { reason },
        CommandKind::WaitEvent => EventBody::ExternalSubscribedCancelled { reason },
        CommandKind::Dequeue => EventBody::QueueSubscriptionCancelled { reason },
        CommandKind::Child => EventBody::SubOrchestrationCancelRequested { reason },
        CommandKind::Timer
        | CommandKind::Detached
        | CommandKind::Cancel
        | CommandKind::Status
        | CommandKind::Value => EventBody::TimerCancelled {},
    }
}

/// The kind of command that a cancel event of user code names, or `None` for any other event.
pub(crate) fn cancelled_kind(body: &EventBody) -> Option<CommandKind> {
    match body {
        EventBody::ActivityCancelRequested { reason } if reason == LOST_RACE => Some(CommandKind::Activity),
        EventBody::SubOrchestrationCancelRequested { reason } if reason == LOST_RACE => {
            Some(CommandKind::Child)
        }
        EventBody::TimerCancelled {} => Some(CommandKind::Timer),
        EventBody::ExternalSubscribedCancelled { .. } => Some(CommandKind::WaitEvent),
        EventBody::QueueSubscriptionCancelled { .. } => Some(CommandKind::Dequeue),
        _ => None,
    }
}

/// The effect of a cancel command on what an earlier turn dispatched.
pub(crate) fn cancel_effect(slot: Slot, child: Option<String>) -> Option<Effect> {
    match slot.kind {
        CommandKind::Activity => Some(Effect::CancelActivity { event: slot.event }),
        CommandKind::Timer => Some(Effect::CancelTimer { event: slot.event }),
        CommandKind::Child => {
            child.map(|instance| Effect::CancelChild { instance, reason: CHILD_LOST_RACE.to_owned() })
        }
        _ => None,
    }
}

/// Takes back what is open when the request to cancel is recorded: nobody answers it any more. Traces in history, effects
/// for what was dispatched. `doomed` are the commands that were marked when the request was accepted.
pub(crate) fn take_back_open(books: &mut Books, turn: &mut TurnWriter, at_ms: i64, doomed: Vec<u32>) {
    let mut all: BTreeSet<u32> = doomed.into_iter().collect();
    all.extend(books.ledger.open().map(|(seq, _)| seq));
    for seq in all {
        let slot = *books.ledger.get(seq).expect("it was listed");
        let child = books.drop_command(seq);
        match slot.kind {
            CommandKind::Activity => {
                let reason = CANCELLED.to_owned();
                turn.event(at_ms, Some(slot.event), EventBody::ActivityCancelRequested { reason });
            }
            CommandKind::Child => {
                let reason = PARENT_CANCELLED.to_owned();
                turn.event(at_ms, Some(slot.event), EventBody::SubOrchestrationCancelRequested { reason });
            }
            _ => {}
        }
        if turn.was_dispatched(slot.event) {
            let effect = match slot.kind {
                CommandKind::Child => child
                    .map(|instance| Effect::CancelChild { instance, reason: PARENT_CANCELLED.to_owned() }),
                _ => cancel_effect(slot, None),
            };
            effect.into_iter().for_each(|effect| turn.effect(effect));
        } else {
            turn.take_back(seq);
        }
    }
}

/// Takes back what is open when an execution ends: its traces in history, and effects for what was dispatched.
/// Children go on unless the execution itself was cancelled.
pub(crate) fn close_open(ledger: &mut Ledger, turn: &mut TurnWriter, at_ms: i64, end: &End) {
    let open: Vec<(u32, Slot)> = ledger.open().collect();
    for (seq, slot) in open {
        match slot.kind {
            CommandKind::Activity => {
                let reason = terminal_reason(end).to_owned();
                turn.event(at_ms, Some(slot.event), EventBody::ActivityCancelRequested { reason });
                dispatched(turn, slot.event, Effect::CancelActivity { event: slot.event });
            }
            CommandKind::Timer => dispatched(turn, slot.event, Effect::CancelTimer { event: slot.event }),
            CommandKind::Child if matches!(end, End::Cancelled { .. }) => {
                let reason = PARENT_CANCELLED.to_owned();
                let body = EventBody::SubOrchestrationCancelRequested { reason: reason.clone() };
                turn.event(at_ms, Some(slot.event), body);
                if let Some(instance) = ledger.cancel(seq) {
                    dispatched(turn, slot.event, Effect::CancelChild { instance, reason });
                }
            }
            _ => {}
        }
    }
}

/// Adds the effect when an earlier turn dispatched its target; what this turn commanded was never dispatched.
fn dispatched(turn: &mut TurnWriter, target: EventId, effect: Effect) {
    if turn.was_dispatched(target) {
        turn.effect(effect);
    }
}

fn terminal_reason(end: &End) -> &'static str {
    match end {
        End::Completed { .. } => "orchestration_terminal_completed",
        End::Failed { .. } => "orchestration_terminal_failed",
        End::Cancelled { .. } => "orchestration_terminal_cancelled",
        End::ContinuedAsNew { .. } => "orchestration_terminal_continued_as_new",
    }
}
