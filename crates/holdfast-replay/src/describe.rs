//! Commands and outcomes in words, the same words for what history holds and for what the code gave.

use crate::{
    EventBody, Payload, ReplyCommand, ReplyOutcome,
    cursor::Recorded,
    values::{READ_VALUE, read_input},
};

/// Longest part of a payload that is shown: enough to recognise it, short enough for a log line.
const SHOWN_CHARS: usize = 120;

/// A recorded command in words.
pub(crate) fn describe_recorded(recorded: &Recorded) -> String {
    let what = match &recorded.body {
        EventBody::ActivityScheduled { name, local: true, .. } => local(name),
        EventBody::ActivityScheduled { name, input, tag, session, .. } => {
            activity(name, input, tag.as_deref(), session.as_deref())
        }
        EventBody::TimerCreated { .. } => "a timer".to_owned(),
        EventBody::ExternalSubscribed { name } => format!("a wait for event {name:?}"),
        EventBody::QueueSubscribed { name } => format!("a wait for queue {name:?}"),
        EventBody::SubOrchestrationScheduled { name, input, .. } => child(name, input),
        EventBody::OrchestrationChained { name, instance, input, .. } => detached(name, instance, input),
        EventBody::CustomStatusUpdated { .. } => "a custom status".to_owned(),
        EventBody::KeyValueSet { key, value, .. } => value_set(key, value),
        EventBody::KeyValueCleared { key } => format!("a clear of value {key:?}"),
        EventBody::KeyValuesCleared {} => "a clear of all values".to_owned(),
        _ => cancel(recorded.target),
    };
    format!("{what} at step {}", recorded.step)
}

/// A command in words.
pub(crate) fn describe_command(command: &ReplyCommand) -> String {
    let what = match command {
        ReplyCommand::Activity { name, input, tag, session, .. } => {
            activity(name, input, tag.as_deref(), session.as_deref())
        }
        ReplyCommand::Timer { .. } => "a timer".to_owned(),
        ReplyCommand::WaitEvent { name, .. } => format!("a wait for event {name:?}"),
        ReplyCommand::Dequeue { name, .. } => format!("a wait for queue {name:?}"),
        ReplyCommand::Child { name, input, .. } => child(name, input),
        ReplyCommand::Detached { name, instance, input, .. } => detached(name, instance, input),
        ReplyCommand::Status { .. } => "a custom status".to_owned(),
        ReplyCommand::SetValue { key, value, .. } => value_set(key, value),
        ReplyCommand::ClearValue { key, .. } => format!("a clear of value {key:?}"),
        ReplyCommand::ClearValues { .. } => "a clear of all values".to_owned(),
        ReplyCommand::Local { name, .. } => local(name),
        ReplyCommand::ReadValue { instance, key, .. } => {
            activity(READ_VALUE, &read_input(instance, key), None, None)
        }
        ReplyCommand::Cancel { seq, .. } => cancel(Some(*seq)),
    };
    format!("{what} at step {}", command.step())
}

/// An outcome in words.
pub(crate) fn describe_outcome(outcome: &ReplyOutcome) -> String {
    match outcome {
        ReplyOutcome::Waiting => "it is waiting".to_owned(),
        ReplyOutcome::Completed { output } => format!("it completed with {}", shown(output)),
        ReplyOutcome::Failed { error } => format!("it failed with {}", shown(error)),
        ReplyOutcome::Continued { .. } => "it continues as new".to_owned(),
        ReplyOutcome::Foreign { message } => format!("it waits for something else: {message}"),
        ReplyOutcome::Diverged => "it has not given the command that the next fact answers".to_owned(),
    }
}

fn activity(name: &str, input: &Payload, tag: Option<&str>, session: Option<&str>) -> String {
    let tag = tag.map(|tag| format!(" with tag {tag:?}")).unwrap_or_default();
    let session = session.map(|session| format!(" on session {session:?}")).unwrap_or_default();
    format!("activity {name:?}{tag}{session} with input {}", shown(input))
}

fn local(name: &str) -> String {
    format!("local step {name:?}")
}

fn child(name: &str, input: &Payload) -> String {
    format!("sub-orchestration {name:?} with input {}", shown(input))
}

fn detached(name: &str, instance: &str, input: &Payload) -> String {
    format!("detached orchestration {name:?} as {instance:?} with input {}", shown(input))
}

fn cancel(target: Option<u32>) -> String {
    match target {
        Some(seq) => format!("a cancel of command {seq}"),
        None => "a cancel".to_owned(),
    }
}

fn value_set(key: &str, value: &str) -> String {
    format!("value {key:?} set to {:?}", head(value))
}

fn shown(payload: &Payload) -> String {
    head(payload.as_str())
}

fn head(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
