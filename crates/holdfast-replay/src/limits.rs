//! Bounds of one execution, each with its reason. What goes over ends the execution with a clear error.

use crate::{ErrorPayload, ReplyCommand};

/// Longest name or instance id, in bytes: keys of an index entry together stay below PostgreSQL's 2704 bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Most bytes that an automatic child id adds to its parent's: the marker, an execution number, an event id.
const MAX_CHILD_SUFFIX_BYTES: usize = "::sub::9223372036854775807_4294967295".len();

/// Most commands that one turn may give: each is an event and mostly a row, written in one transaction.
pub const MAX_TURN_COMMANDS: usize = 100_000;

/// Most events of one execution before a turn: above it a cold replay takes tens of seconds. Continue as new instead.
pub const MAX_HISTORY_EVENTS: u32 = 1_000_000;

/// Most bytes of history before a turn: a cold activation is one text, and JavaScript's strings end at 512 MiB.
pub const MAX_HISTORY_BYTES: usize = 256 * 1_024 * 1_024;

/// Longest time that a cancelled execution has to clean up, in ms: enough for a few steps with retries, and an operator
/// who cancels sees the end within minutes. After it the execution ends whatever its code waits for.
pub const MAX_CLEANUP_MS: i64 = 5 * 60 * 1_000;

/// Most facts that a cancelled execution is given after the request: code that swallows every error must not run on.
pub const MAX_CLEANUP_FACTS: u32 = 10_000;

/// What `commands` of an instance and the history before them go over, if anything.
pub(crate) fn exceeded(
    instance: &str,
    events: u32,
    bytes: usize,
    commands: &[ReplyCommand],
) -> Option<ErrorPayload> {
    let text = if events > MAX_HISTORY_EVENTS {
        format!("the history has {events} events, the limit is {MAX_HISTORY_EVENTS}: continue as new earlier")
    } else if bytes > MAX_HISTORY_BYTES {
        format!("the history has {bytes} bytes, the limit is {MAX_HISTORY_BYTES}: continue as new earlier")
    } else if commands.len() > MAX_TURN_COMMANDS {
        format!("one turn gave {} commands, the limit is {MAX_TURN_COMMANDS}", commands.len())
    } else if instance.len() + MAX_CHILD_SUFFIX_BYTES > MAX_NAME_BYTES && commands.iter().any(makes_an_id) {
        let head: String = instance.chars().take(40).collect();
        format!(
            "the id of a child of {head:?}… has more bytes than the limit of {MAX_NAME_BYTES}: give the child an id"
        )
    } else {
        let name = commands.iter().flat_map(names).find(|name| name.len() > MAX_NAME_BYTES)?;
        let head: String = name.chars().take(40).collect();
        format!("the name {head:?}… has {} bytes, the limit is {MAX_NAME_BYTES}", name.len())
    };
    Some(ErrorPayload::new("LimitError", "LIMIT_EXCEEDED", text))
}

/// A child without an id gets one made from its parent's.
fn makes_an_id(command: &ReplyCommand) -> bool {
    matches!(command, ReplyCommand::Child { instance: None, .. })
}

/// The names and ids in a command.
fn names(command: &ReplyCommand) -> Vec<&str> {
    match command {
        ReplyCommand::Activity { name, tag, session, .. } => {
            [Some(name), tag.as_ref(), session.as_ref()].into_iter().flatten().map(String::as_str).collect()
        }
        ReplyCommand::WaitEvent { name, .. }
        | ReplyCommand::Dequeue { name, .. }
        | ReplyCommand::Local { name, .. } => vec![name],
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
        ReplyCommand::SetValue { key, .. } | ReplyCommand::ClearValue { key, .. } => vec![key],
        ReplyCommand::ReadValue { instance, key, .. } => vec![instance, key],
        ReplyCommand::Timer { .. }
        | ReplyCommand::Cancel { .. }
        | ReplyCommand::Status { .. }
        | ReplyCommand::ClearValues { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Payload;

    fn child(instance: Option<&str>) -> ReplyCommand {
        let instance = instance.map(str::to_owned);
        ReplyCommand::Child { step: 0, name: "c".to_owned(), version: None, instance, input: Payload::null() }
    }

    #[test]
    fn automatic_ids_do_not_grow_without_end() {
        let fits = "p".repeat(MAX_NAME_BYTES - MAX_CHILD_SUFFIX_BYTES);
        assert_eq!(exceeded(&fits, 1, 1, &[child(None)]), None);
        let over = fits + "p";
        let error = exceeded(&over, 1, 1, &[child(None)]).expect("one byte too long");
        assert_eq!(error.code.as_deref(), Some("LIMIT_EXCEEDED"));
        assert!(error.message.contains("give the child an id"), "{}", error.message);
        assert_eq!(exceeded(&over, 1, 1, &[child(Some("short"))]), None);
    }
}
