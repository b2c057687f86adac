//! Bounds of one execution, each with its reason. What goes over ends the execution with a clear error.

use crate::{ErrorPayload, ReplyCommand};

/// Longest name, key, or id that code gives, in bytes; the same as the sdk's.
pub const MAX_NAME_BYTES: usize = 512;

/// Longest id of an instance, in bytes: that of a child without one of its own holds its parent's. Keys of an index entry
/// together stay below PostgreSQL's 2704 bytes.
pub const MAX_ID_BYTES: usize = 1_024;

/// Most bytes that an automatic child id adds to its parent's: the marker, an execution number, an event id.
const MAX_CHILD_SUFFIX_BYTES: usize = "::sub::9223372036854775807_4294967295".len();

/// Bounds that differ from runtime to runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most events of one execution before a turn: a cold replay of very many takes tens of seconds.
    pub history_events: usize,
    /// Most bytes of history before a turn: a cold activation is one text, and JavaScript's strings end at 512 MiB.
    pub history_bytes: usize,
    /// Most commands that one turn may give: each is an event and mostly a row, written in one transaction.
    pub fan_out: usize,
    /// Most messages that nobody has read before a turn: they go along in one text when the execution continues as new.
    pub mailbox: usize,
}

impl Default for Limits {
    /// A million events, 256 MiB, 100 000 commands, 100 000 messages.
    fn default() -> Self {
        Self {
            history_events: 1_000_000,
            history_bytes: 256 * 1_024 * 1_024,
            fan_out: 100_000,
            mailbox: 100_000,
        }
    }
}

/// How far an execution is before a turn.
pub(crate) struct Size<'a> {
    pub(crate) instance: &'a str,
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    /// Messages that nobody has read.
    pub(crate) unread: usize,
}

/// Longest time that a cancelled execution has to clean up, in ms: enough for a few steps with retries, and an operator
/// who cancels sees the end within minutes. After it the execution ends whatever its code waits for.
pub const MAX_CLEANUP_MS: i64 = 5 * 60 * 1_000;

/// Most facts that a cancelled execution is given after the request: code that swallows every error must not run on.
pub const MAX_CLEANUP_FACTS: u32 = 10_000;

/// What an execution before a turn, and the commands of the turn, go over, if anything.
pub(crate) fn exceeded(limits: &Limits, size: &Size<'_>, commands: &[ReplyCommand]) -> Option<ErrorPayload> {
    let Size { instance, events, bytes, unread } = *size;
    let Limits { history_events, history_bytes, fan_out, mailbox } = *limits;
    let text = if events > history_events {
        format!(
            "the history has {events} events, more than historyEventLimit ({history_events}): continue as new earlier"
        )
    } else if bytes > history_bytes {
        format!(
            "the history has {bytes} bytes, more than historyByteLimit ({history_bytes}): continue as new earlier"
        )
    } else if unread > mailbox {
        format!(
            "{unread} messages were not read, more than mailboxLimit ({mailbox}): read them, or send fewer"
        )
    } else if commands.len() > fan_out {
        format!(
            "one turn gave {} commands, more than fanOutLimit ({fan_out}): await some before giving more",
            commands.len()
        )
    } else if instance.len() + MAX_CHILD_SUFFIX_BYTES > MAX_ID_BYTES && commands.iter().any(makes_an_id) {
        let head: String = instance.chars().take(40).collect();
        format!(
            "the id of a child of {head:?}… has more bytes than the limit of {MAX_ID_BYTES}: give the child an id"
        )
    } else {
        let addressed = commands.iter().filter_map(address).map(|id| (id, MAX_ID_BYTES));
        let named = commands.iter().flat_map(names).map(|name| (name, MAX_NAME_BYTES));
        let (name, limit) = addressed.chain(named).find(|(name, limit)| name.len() > *limit)?;
        let head: String = name.chars().take(40).collect();
        format!("the name {head:?}… has {} bytes, the limit is {limit}", name.len())
    };
    Some(ErrorPayload::new("LimitError", "LIMIT_EXCEEDED", text))
}

/// A child without an id gets one made from its parent's.
fn makes_an_id(command: &ReplyCommand) -> bool {
    matches!(command, ReplyCommand::Child { instance: None, .. })
}

/// The id of an instance that exists, whoever gave it.
fn address(command: &ReplyCommand) -> Option<&str> {
    match command {
        ReplyCommand::ReadValue { instance, .. } => Some(instance),
        _ => None,
    }
}

/// The names and ids that code gives in a command.
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
        ReplyCommand::ReadValue { key, .. } => vec![key],
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

    fn exceeds(instance: &str, commands: &[ReplyCommand]) -> Option<ErrorPayload> {
        exceeded(&Limits::default(), &Size { instance, events: 1, bytes: 1, unread: 0 }, commands)
    }

    fn child(instance: Option<&str>) -> ReplyCommand {
        let instance = instance.map(str::to_owned);
        ReplyCommand::Child { step: 0, name: "c".to_owned(), version: None, instance, input: Payload::null() }
    }

    #[test]
    fn automatic_ids_do_not_grow_without_end() {
        let fits = "p".repeat(MAX_ID_BYTES - MAX_CHILD_SUFFIX_BYTES);
        assert_eq!(exceeds(&fits, &[child(None)]), None);
        let over = fits + "p";
        let error = exceeds(&over, &[child(None)]).expect("one byte too long");
        assert_eq!(error.code.as_deref(), Some("LIMIT_EXCEEDED"));
        assert!(error.message.contains("give the child an id"), "{}", error.message);
        assert_eq!(exceeds(&over, &[child(Some("short"))]), None);
    }

    #[test]
    fn names_are_shorter_than_the_ids_of_children() {
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        let error = exceeds("i", &[child(Some(&long))]).expect("one byte too long");
        assert!(error.message.contains("the limit is 512"), "{}", error.message);
        let read = |instance: String| ReplyCommand::ReadValue { step: 0, instance, key: "k".to_owned() };
        assert_eq!(exceeds("i", &[read(long)]), None, "a child may be called so");
        let error = exceeds("i", &[read("n".repeat(MAX_ID_BYTES + 1))]).expect("one byte too long");
        assert!(error.message.contains("the limit is 1024"), "{}", error.message);
    }

    #[test]
    fn each_limit_is_told_with_the_name_of_its_option() {
        let limits = Limits { history_events: 10, history_bytes: 100, fan_out: 1, mailbox: 5 };
        let told = |events, bytes, unread, commands: usize| {
            let commands: Vec<_> = (0..commands).map(|_| child(Some("c"))).collect();
            let size = Size { instance: "i", events, bytes, unread };
            exceeded(&limits, &size, &commands).map(|error| error.message)
        };
        assert_eq!(told(10, 100, 5, 1), None);
        let has =
            |text: Option<String>, option: &str| assert!(text.expect("over").contains(option), "{option}");
        has(told(11, 1, 0, 0), "historyEventLimit (10)");
        has(told(1, 101, 0, 0), "historyByteLimit (100)");
        has(told(1, 1, 6, 0), "mailboxLimit (5)");
        has(told(1, 1, 0, 2), "fanOutLimit (1)");
    }
}
