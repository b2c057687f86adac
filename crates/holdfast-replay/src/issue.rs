//! Issuing: a new command becomes an event, a slot in the ledger, and the effect that carries it out.
//!
//! In a turn that ends the execution, activities, timers and children are recorded but not dispatched; detached
//! starts, the custom status and kept values always take effect.

use crate::{
    Effect, EventBody, EventId, Execution, Payload, ReplyCommand,
    cancel::{cancel_effect, cancel_event},
    ledger::CommandKind,
    turn::TurnWriter,
    values::{READ_VALUE, read_input},
};

impl Execution {
    /// Records one new command; `dispatch` is false in a turn that ends the execution.
    pub(crate) fn write_command(&mut self, turn: &mut TurnWriter, command: ReplyCommand, dispatch: bool) {
        if let ReplyCommand::Cancel { seq, .. } = command {
            return self.write_cancel(turn, seq);
        }
        let event = turn.next_id();
        let kind = CommandKind::of_reply(&command);
        let (body, effect) = self.issue(event, command);
        let seq = self.books.command(event, kind, &body);
        turn.event(self.now_ms, None, body);
        match effect {
            Some(
                effect @ (Effect::StartDetached { .. }
                | Effect::SetStatus { .. }
                | Effect::SetValue { .. }
                | Effect::ClearValue { .. }
                | Effect::ClearValues),
            ) => turn.effect(effect),
            Some(effect) if dispatch => turn.effect_of(seq, effect),
            _ => {}
        }
    }

    fn write_cancel(&mut self, turn: &mut TurnWriter, target: u32) {
        let slot = *self.books.ledger.get(target).expect("checked before the turn is written");
        let event = turn.event(self.now_ms, Some(slot.event), cancel_event(slot.kind));
        let child = self.books.cancel(event, target);
        if !turn.was_dispatched(slot.event) {
            turn.take_back(target);
        } else if slot.is_open()
            && let Some(effect) = cancel_effect(slot, child)
        {
            turn.effect(effect);
        }
    }

    /// The event of a new command and the effect that carries it out.
    fn issue(&self, event: EventId, command: ReplyCommand) -> (EventBody, Option<Effect>) {
        match command {
            ReplyCommand::Activity { name, input, tag, session, retry, timeout_ms, .. } => (
                EventBody::ActivityScheduled {
                    name: name.clone(),
                    input: input.clone(),
                    tag: tag.clone(),
                    session: session.clone(),
                    retry: retry.clone(),
                    timeout_ms,
                    local: false,
                },
                Some(Effect::ScheduleActivity { event, name, input, tag, session, retry, timeout_ms }),
            ),
            ReplyCommand::Timer { delay_ms, .. } => {
                let delay_ms = i64::try_from(delay_ms).unwrap_or(i64::MAX);
                let fire_at_ms = self.now_ms.saturating_add(delay_ms);
                (EventBody::TimerCreated { fire_at_ms }, Some(Effect::CreateTimer { event, fire_at_ms }))
            }
            ReplyCommand::WaitEvent { name, .. } => (EventBody::ExternalSubscribed { name }, None),
            ReplyCommand::Dequeue { name, .. } => (EventBody::QueueSubscribed { name }, None),
            ReplyCommand::Child { name, version, instance, input, .. } => {
                let instance = instance.unwrap_or_else(|| self.child_id(event));
                (
                    EventBody::SubOrchestrationScheduled {
                        name: name.clone(),
                        version: version.clone(),
                        instance: instance.clone(),
                        input: input.clone(),
                    },
                    Some(Effect::StartChild { event, instance, name, version, input }),
                )
            }
            ReplyCommand::Detached { name, version, instance, input, .. } => (
                EventBody::OrchestrationChained {
                    name: name.clone(),
                    version: version.clone(),
                    instance: instance.clone(),
                    input: input.clone(),
                },
                Some(Effect::StartDetached { instance, name, version, input }),
            ),
            ReplyCommand::Status { status, .. } => (
                EventBody::CustomStatusUpdated { status: status.clone() },
                Some(Effect::SetStatus { status }),
            ),
            other => Self::issue_other(event, other),
        }
    }

    /// The same for values and local steps.
    fn issue_other(event: EventId, command: ReplyCommand) -> (EventBody, Option<Effect>) {
        match command {
            ReplyCommand::SetValue { key, value, at, .. } => (
                EventBody::KeyValueSet { key: key.clone(), value: value.clone(), last_updated_at_ms: at },
                Some(Effect::SetValue { key, value, at_ms: at }),
            ),
            ReplyCommand::ClearValue { key, .. } => {
                (EventBody::KeyValueCleared { key: key.clone() }, Some(Effect::ClearValue { key }))
            }
            ReplyCommand::ClearValues { .. } => (EventBody::KeyValuesCleared {}, Some(Effect::ClearValues)),
            ReplyCommand::ReadValue { instance, key, .. } => (
                EventBody::ActivityScheduled {
                    name: READ_VALUE.to_owned(),
                    input: read_input(&instance, &key),
                    tag: None,
                    session: None,
                    retry: None,
                    timeout_ms: None,
                    local: false,
                },
                Some(Effect::ReadValue { event, instance, key }),
            ),
            ReplyCommand::Local { name, .. } => (
                EventBody::ActivityScheduled {
                    name,
                    input: Payload::null(),
                    tag: None,
                    session: None,
                    retry: None,
                    timeout_ms: None,
                    local: true,
                },
                None,
            ),
            _ => unreachable!("a cancel is written by write_cancel, the others by issue"),
        }
    }

    /// The id of a child that was given none. The execution is part of it from the second on, because event ids
    /// start anew with each.
    fn child_id(&self, event: EventId) -> String {
        if self.execution <= 1 {
            format!("{}::sub::{}", self.instance, event.0)
        } else {
            format!("{}::sub::{}_{}", self.instance, self.execution, event.0)
        }
    }
}
