//! Which class an error of the database belongs to: one table, by SQLSTATE first and by text last.
//!
//! The cause chain is searched for the server's answer, then for an I/O error, then for texts that poolers and
//! servers send without a code. It never decides what to do about a class.

use std::{error::Error as StdError, io, time::Duration};

use tokio_postgres::error::{DbError, Severity};

use crate::error::{Error, ErrorKind};

/// What an error means for the session it happened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    /// What the caller branches on.
    pub(crate) kind: ErrorKind,
    /// The session must not be used again.
    pub(crate) session_lost: bool,
    /// The server said no and said it finished: the statement certainly had no effect.
    pub(crate) definite: bool,
}

/// SQLSTATE (or its first two letters) to kind and whether the session is lost. The first match counts.
const BY_STATE: &[(&str, ErrorKind, bool)] = &[
    ("53300", ErrorKind::Capacity, true),
    ("40001", ErrorKind::Conflict, false),
    ("40P01", ErrorKind::Conflict, false),
    ("55P03", ErrorKind::Conflict, false),
    // Plans and named statements that the server does not know (any more) need a fresh session.
    ("26000", ErrorKind::Conflict, true),
    ("42P05", ErrorKind::Conflict, true),
    ("57014", ErrorKind::Timeout, true),
    ("25P03", ErrorKind::Unavailable, true),
    ("25P04", ErrorKind::Unavailable, true),
    ("25006", ErrorKind::Unavailable, true),
    ("40003", ErrorKind::Unavailable, true),
    ("57P01", ErrorKind::Unavailable, true),
    ("57P02", ErrorKind::Unavailable, true),
    ("57P03", ErrorKind::Unavailable, true),
    ("57P04", ErrorKind::Unavailable, true),
    ("57P05", ErrorKind::Unavailable, true),
    ("08", ErrorKind::Unavailable, true),
];

/// Texts, in lower case, of answers without a telling code.
const BY_TEXT: &[(&str, ErrorKind)] = &[
    ("too many connections", ErrorKind::Capacity),
    ("too many clients", ErrorKind::Capacity),
    ("connection limit", ErrorKind::Capacity),
    ("remaining connection slots", ErrorKind::Capacity),
    ("reserved for roles with the superuser", ErrorKind::Capacity),
    ("max_client_conn", ErrorKind::Capacity),
    ("terminating connection", ErrorKind::Unavailable),
    ("failed to connect to upstream", ErrorKind::Unavailable),
    ("server closed the connection", ErrorKind::Unavailable),
    ("connection reset", ErrorKind::Unavailable),
    ("connection refused", ErrorKind::Unavailable),
    ("connection timed out", ErrorKind::Unavailable),
    ("broken pipe", ErrorKind::Unavailable),
    ("query read timeout", ErrorKind::Unavailable),
    ("no such host", ErrorKind::Unavailable),
    ("failed to lookup address", ErrorKind::Unavailable),
    ("host is unreachable", ErrorKind::Unavailable),
];

/// When to ask a full server again: sessions come free as others finish, not within milliseconds.
const CAPACITY_HINT: Duration = Duration::from_secs(1);

/// The class of an error of the driver.
pub(crate) fn classify(error: &tokio_postgres::Error) -> Class {
    if let Some(answer) = error.as_db_error() {
        return of_answer(answer);
    }
    if error.is_closed() || chain_has_io(error) {
        return Class { kind: ErrorKind::Unavailable, session_lost: true, definite: false };
    }
    match of_text(&chain_text(error)) {
        Some(kind) => Class { kind, session_lost: true, definite: false },
        // The driver refused on its own: wrong parameter types, an answer of the wrong shape.
        None => Class { kind: ErrorKind::Query, session_lost: false, definite: false },
    }
}

/// The error of the engine for an error of the driver; `context` says what was being done.
pub(crate) fn engine_error(error: tokio_postgres::Error, context: impl Into<String>) -> Error {
    let kind = classify(&error).kind;
    let engine_error = Error::new(kind, context).caused_by(error);
    if kind == ErrorKind::Capacity { engine_error.retry_after(CAPACITY_HINT) } else { engine_error }
}

fn of_answer(answer: &DbError) -> Class {
    let ended = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    let state = answer.code().code();
    let message = answer.message().to_lowercase();
    if state == "0A000" && message.contains("cached plan") {
        return Class { kind: ErrorKind::Conflict, session_lost: true, definite: true };
    }
    // A refusal for lack of room comes with any code: poolers send 08P01. Only a refused session is judged by text;
    // a statement's own error may quote anything.
    let by_text = if ended { of_text(&message) } else { None };
    if by_text == Some(ErrorKind::Capacity) {
        return Class { kind: ErrorKind::Capacity, session_lost: true, definite: false };
    }
    for (prefix, kind, lost) in BY_STATE {
        if state.starts_with(prefix) {
            let definite = !ended && *kind != ErrorKind::Unavailable;
            return Class { kind: *kind, session_lost: *lost || ended, definite };
        }
    }
    Class { kind: by_text.unwrap_or(ErrorKind::Query), session_lost: ended, definite: !ended }
}

fn of_text(text: &str) -> Option<ErrorKind> {
    BY_TEXT.iter().find(|(part, _)| text.contains(part)).map(|(_, kind)| *kind)
}

fn chain_has_io(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<io::Error>() {
            return true;
        }
        next = error.source();
    }
    false
}

fn chain_text(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        text.push_str(&error.to_string().to_lowercase());
        text.push('\n');
        next = error.source();
    }
    text
}
