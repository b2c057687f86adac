//! Does the reply fit the history? Command i must equal recorded command i, and what is new must be new.
//!
//! Only reads; a reply that does not fit leaves the execution as it was. What is not compared, on purpose: a timer's
//! delay, a status text, the order of values that are dropped one after the other, a child's id and version, retry policies and time limits; those may change while an
//! execution runs.

use std::collections::BTreeSet;

use crate::{
    EventBody, EventId, Mismatch, Reply, ReplyCommand, ReplyOutcome,
    cursor::Recorded,
    describe::{describe_command, describe_outcome, describe_recorded},
    ledger::{CommandKind, Ledger},
    values::{READ_VALUE, read_input},
};

/// Where the execution stands when the reply comes.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    /// Recorded commands that the reply repeats: all of them when cold, none when warm.
    pub(crate) recorded: &'a [Recorded],
    /// Events of the recorded facts, when cold.
    pub(crate) fact_events: &'a [EventId],
    /// What became of every recorded command.
    pub(crate) ledger: &'a Ledger,
    /// Recorded facts.
    pub(crate) facts: u32,
    /// New facts that the code was given.
    pub(crate) given: u32,
    /// Events recorded.
    pub(crate) events: u32,
    /// The terminal event, when the execution has ended.
    pub(crate) terminal: Option<&'a EventBody>,
    /// The first turn was never answered, though its events are recorded.
    pub(crate) unrun: bool,
}

impl Standing<'_> {
    /// The new commands of a reply that fits.
    pub(crate) fn check(&self, reply: &mut Reply) -> Result<Vec<ReplyCommand>, Mismatch> {
        self.check_form(reply)?;
        order_clears(self.recorded, &mut reply.commands);
        for (recorded, command) in self.recorded.iter().zip(&reply.commands) {
            if recorded.step != command.step() || !same(recorded, command) {
                return Err(Mismatch {
                    position: recorded.event.0,
                    expected: describe_recorded(recorded),
                    found: describe_command(command),
                });
            }
        }
        let new = reply.commands.len().min(self.recorded.len());
        if matches!(reply.outcome, ReplyOutcome::Foreign { .. }) {
            // Such code is stopped wherever it is, and its commands may come at any time; the message about the
            // foreign wait helps more than one about what follows from it.
            let new = reply.commands.split_off(new);
            return Ok(if self.check_new(&new).is_ok() { new } else { Vec::new() });
        }
        self.check_missing(reply)?;
        self.check_end(reply)?;
        let new = reply.commands.split_off(new);
        self.check_new(&new)?;
        Ok(new)
    }

    /// Steps rise and nothing was applied that was not given.
    fn check_form(&self, reply: &Reply) -> Result<(), Mismatch> {
        let given = self.facts + self.given;
        let total = given + to_u32(reply.locals.len());
        self.check_locals(reply, given)?;
        if reply.applied > total {
            let found = format!("an answer after {} facts", reply.applied);
            return Err(self.malformed(format!("{total} facts"), found));
        }
        if matches!(reply.outcome, ReplyOutcome::Waiting) && reply.applied < total {
            let found = format!("a wait after {} of them", reply.applied);
            return Err(self.malformed(format!("{total} facts"), found));
        }
        let mut step = 0;
        for command in &reply.commands {
            if command.step() < step || command.step() > reply.applied {
                let expected = format!("a command at a step from {step} to {}", reply.applied);
                return Err(self.malformed(expected, describe_command(command)));
            }
            step = command.step();
        }
        Ok(())
    }

    /// Results of local steps come after the activation's facts, each for a new local step that was given before it.
    fn check_locals(&self, reply: &Reply, given: u32) -> Result<(), Mismatch> {
        let mut answered = BTreeSet::new();
        for (index, local) in reply.locals.iter().enumerate() {
            let step = given + to_u32(index);
            let command = reply.commands.get(self.place_of(local.seq).unwrap_or(usize::MAX));
            let fits = matches!(command, Some(ReplyCommand::Local { step: at, .. }) if *at <= step);
            if !fits || !answered.insert(local.seq) || reply.applied < given + to_u32(reply.locals.len()) {
                let found = format!("a result of command {}", local.seq);
                return Err(self.malformed("results of new local steps behind all facts".to_owned(), found));
            }
        }
        Ok(())
    }

    /// Where the reply has the command `seq`, if it is a new one.
    fn place_of(&self, seq: u32) -> Option<usize> {
        let new = seq.checked_sub(self.ledger.len())? as usize;
        Some(self.recorded.len() + new)
    }

    /// Every recorded command was given again.
    fn check_missing(&self, reply: &Reply) -> Result<(), Mismatch> {
        if let Some(missing) = self.recorded.get(reply.commands.len()) {
            return Err(Mismatch {
                position: missing.event.0,
                expected: describe_recorded(missing),
                found: format!("no such command: {}", describe_outcome(&reply.outcome)),
            });
        }
        if matches!(reply.outcome, ReplyOutcome::Diverged) {
            let expected = "an answer to a command that the code has not given".to_owned();
            return Err(Mismatch {
                position: self.position_after(reply.applied),
                expected,
                found: "no such command".to_owned(),
            });
        }
        Ok(())
    }

    /// The code ends where history says, or after it.
    fn check_end(&self, reply: &Reply) -> Result<(), Mismatch> {
        if let Some(terminal) = self.terminal {
            if !same_end(terminal, &reply.outcome) {
                let expected = format!("the end {}", kind_name(terminal));
                let found = format!("another end: {}", describe_outcome(&reply.outcome));
                return Err(Mismatch { position: self.events, expected, found });
            }
        } else if self.events > 0
            && !self.unrun
            && reply.applied <= self.facts
            && !matches!(reply.outcome, ReplyOutcome::Waiting)
        {
            return Err(Mismatch {
                position: self.position_after(reply.applied),
                expected: "an execution that goes on".to_owned(),
                found: format!("an early end: {}", describe_outcome(&reply.outcome)),
            });
        }
        Ok(())
    }

    /// New commands come after what is recorded, and cancel only what was given before them.
    fn check_new(&self, new: &[ReplyCommand]) -> Result<(), Mismatch> {
        let first = self.ledger.len();
        let recorded_steps = if self.events > 0 && !self.unrun { self.facts + 1 } else { 0 };
        for (index, command) in new.iter().enumerate() {
            if command.step() < recorded_steps || self.terminal.is_some() {
                return Err(Mismatch {
                    position: self.position_after(command.step()),
                    expected: "no further command".to_owned(),
                    found: describe_command(command),
                });
            }
            if let ReplyCommand::Cancel { seq, .. } = command {
                let kind = match seq.checked_sub(first) {
                    None => self.ledger.get(*seq).map(|slot| slot.kind),
                    Some(offset) => new[..index].get(offset as usize).map(CommandKind::of_reply),
                };
                if !kind.is_some_and(CommandKind::is_cancellable) {
                    let expected = "a cancel of an earlier activity, timer, wait or child".to_owned();
                    return Err(self.malformed(expected, describe_command(command)));
                }
            }
        }
        Ok(())
    }

    /// The event that follows the commands given after `step` facts.
    fn position_after(&self, step: u32) -> u32 {
        let recorded = self.fact_events.get(step as usize).map(|event| event.0);
        recorded.unwrap_or(self.events + 1)
    }

    fn malformed(&self, expected: String, found: String) -> Mismatch {
        Mismatch { position: self.events + 1, expected, found }
    }
}

/// Values that are dropped one after the other may be dropped in any order: each run of clears is put in the recorded
/// order. Nothing refers to a clear by its number, so this changes nothing else.
fn order_clears(recorded: &[Recorded], commands: &mut [ReplyCommand]) {
    let mut at = 0;
    while at < commands.len().min(recorded.len()) {
        let end =
            at + recorded[at..].iter().zip(&commands[at..]).take_while(|pair| both_clear(*pair)).count();
        for (place, wanted) in recorded.iter().enumerate().take(end).skip(at) {
            let found = (place..end).find(|candidate| same(wanted, &commands[*candidate])).unwrap_or(place);
            commands.swap(place, found);
        }
        at = end.max(at + 1);
    }
}

fn both_clear((recorded, command): (&Recorded, &ReplyCommand)) -> bool {
    matches!(recorded.body, EventBody::KeyValueCleared { .. })
        && matches!(command, ReplyCommand::ClearValue { .. })
        && recorded.step == command.step()
}

fn to_u32(length: usize) -> u32 {
    u32::try_from(length).expect("a reply is one bounded text")
}

/// Kind and compared fields are equal.
fn same(recorded: &Recorded, command: &ReplyCommand) -> bool {
    match (&recorded.body, command) {
        (
            EventBody::ActivityScheduled { name, input, tag, session, local: false, .. },
            ReplyCommand::Activity { name: name2, input: input2, tag: tag2, session: session2, .. },
        ) => name == name2 && input == input2 && tag == tag2 && session == session2,
        (EventBody::TimerCreated { .. }, ReplyCommand::Timer { .. })
        | (EventBody::CustomStatusUpdated { .. }, ReplyCommand::Status { .. }) => true,
        (EventBody::ExternalSubscribed { name }, ReplyCommand::WaitEvent { name: name2, .. })
        | (EventBody::QueueSubscribed { name }, ReplyCommand::Dequeue { name: name2, .. }) => name == name2,
        (
            EventBody::SubOrchestrationScheduled { name, input, .. },
            ReplyCommand::Child { name: name2, input: input2, .. },
        ) => name == name2 && input == input2,
        (
            EventBody::OrchestrationChained { name, instance, input, .. },
            ReplyCommand::Detached { name: name2, instance: instance2, input: input2, .. },
        ) => name == name2 && instance == instance2 && input == input2,
        (
            EventBody::KeyValueSet { key, value, .. },
            ReplyCommand::SetValue { key: key2, value: value2, .. },
        ) => key == key2 && value == value2,
        (EventBody::KeyValueCleared { key }, ReplyCommand::ClearValue { key: key2, .. }) => key == key2,
        (EventBody::ActivityScheduled { name, local: true, .. }, ReplyCommand::Local { name: name2, .. }) => {
            name == name2
        }
        (EventBody::KeyValuesCleared {}, ReplyCommand::ClearValues { .. }) => true,
        (EventBody::ActivityScheduled { name, input, .. }, ReplyCommand::ReadValue { instance, key, .. }) => {
            name == READ_VALUE && *input == read_input(instance, key)
        }
        (_, ReplyCommand::Cancel { seq, .. }) => recorded.target == Some(*seq),
        _ => false,
    }
}

/// The recorded end and the code's are the same.
fn same_end(terminal: &EventBody, outcome: &ReplyOutcome) -> bool {
    match (terminal, outcome) {
        (EventBody::OrchestrationCompleted { output }, ReplyOutcome::Completed { output: output2 }) => {
            output == output2
        }
        // Stack texts differ from machine to machine, so an error is not compared.
        (EventBody::OrchestrationFailed { .. }, ReplyOutcome::Failed { .. }) => true,
        (
            EventBody::OrchestrationContinuedAsNew { input, .. },
            ReplyOutcome::Continued { input: input2, .. },
        ) => input == input2,
        _ => false,
    }
}

fn kind_name(terminal: &EventBody) -> &'static str {
    match terminal {
        EventBody::OrchestrationCompleted { .. } => "OrchestrationCompleted",
        EventBody::OrchestrationContinuedAsNew { .. } => "OrchestrationContinuedAsNew",
        _ => "OrchestrationFailed",
    }
}
