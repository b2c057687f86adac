//! Bounds of one execution, each with its reason. What goes over ends the execution with a clear error.

use crate::{ErrorPayload, ReplyCommand};

/// Longest name or instance id, in bytes: keys of an index entry together stay below PostgreSQL's 2704 bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Most commands that one turn may give: each is an event and mostly a row, written in one transaction.
pub const MAX_TURN_COMMANDS: usize = 100_000;

/// Most events of one execution before a turn: above it a cold replay takes tens of seconds. Continue as new instead.
pub const MAX_HISTORY_EVENTS: u32 = 1_000_000;

/// Most bytes of history before a turn: a cold activation is one text, and JavaScript's strings end at 512 MiB.
pub const MAX_HISTORY_BYTES: usize = 256 * 1_024 * 1_024;

/// What `commands` and the history before them go over, if anything.
pub(crate) fn exceeded(events: u32, bytes: usize, commands: &[ReplyCommand]) -> Option<ErrorPayload> {
    let text = if events > MAX_HISTORY_EVENTS {
        format!("the history has {events} events, the limit is {MAX_HISTORY_EVENTS}: continue as new earlier")
    } else if bytes > MAX_HISTORY_BYTES {
        format!("the history has {bytes} bytes, the limit is {MAX_HISTORY_BYTES}: continue as new earlier")
    } else if commands.len() > MAX_TURN_COMMANDS {
        format!("one turn gave {} commands, the limit is {MAX_TURN_COMMANDS}", commands.len())
    } else {
        let name = commands.iter().flat_map(names).find(|name| name.len() > MAX_NAME_BYTES)?;
        let head: String = name.chars().take(40).collect();
        format!("the name {head:?}… has {} bytes, the limit is {MAX_NAME_BYTES}", name.len())
    };
    Some(ErrorPayload::new("LimitError", "LIMIT_EXCEEDED", text))
}

/// The names and ids in a command.
fn names(command: &ReplyCommand) -> Vec<&str> {
    match command {
        ReplyCommand::Activity { name, tag, session, .. } => {
            [Some(name), tag.as_ref(), session.as_ref()].into_iter().flatten().map(String::as_str).collect()
        }
        ReplyCommand::WaitEvent { name, .. } | ReplyCommand::Dequeue { name, .. } => vec![name],
        ReplyCommand::Child { name, version, instance, .. } => {
            [Some(name), version.as_ref(), instance.as_ref()]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect()
        }
        ReplyCommand::Detached { name, version, instance, .. } => {
            [Some(name), version.as_ref(), Some(instance)].into_iter().flatten().map(String::as_str).collect()
        }
        ReplyCommand::Timer { .. } | ReplyCommand::Cancel { .. } | ReplyCommand::Status { .. } => Vec::new(),
    }
}
