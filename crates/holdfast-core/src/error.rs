//! The one error type of the engine. Branch on [`ErrorKind`]; the text is for people.
//!
//! `code()` is the stable public string, `is_retryable()` is a function of the kind, and the source chain is kept.

use std::{error::Error as StdError, fmt, time::Duration};

/// What went wrong, as a caller branches on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The database cannot be reached, or a session was lost.
    Unavailable,
    /// The server has no session left to give.
    Capacity,
    /// The server has no session left for the one that must be its own.
    DirectSessionCapacity,
    /// The pool's own bound is reached.
    Saturated,
    /// The circuit breaker is open.
    CircuitOpen,
    /// A transaction lost against another and can be run again.
    Conflict,
    /// A time limit ran out.
    Timeout,
    /// A statement was refused by the server.
    Query,
    /// The lease is not held any more.
    Fenced,
    /// The outcome of a commit is not known.
    CommitUnknown,
    /// Stored data cannot be understood.
    Corrupt,
    /// An argument breaks a rule.
    Invalid,
    /// An option breaks a rule.
    InvalidOption,
    /// A connection URL cannot be used.
    Url,
    /// A connection URL leads to a provider's direct port where its pooled one must be used.
    DirectUrl,
    /// The schema does not fit this version.
    Schema,
    /// The object was closed.
    Closed,
    /// An instance with this id exists with another name or input.
    InstanceExists,
    /// There is no such instance.
    NotFound,
    /// The instance, or one of its descendants, has not ended.
    StillRunning,
    /// A rule of this crate was broken.
    Internal,
}

impl ErrorKind {
    /// The stable public code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "UNAVAILABLE",
            Self::Capacity => "CAPACITY",
            Self::DirectSessionCapacity => "DIRECT_SESSION_CAPACITY",
            Self::Saturated => "SATURATED",
            Self::CircuitOpen => "CIRCUIT_OPEN",
            Self::Conflict => "CONFLICT",
            Self::Timeout => "TIMEOUT",
            Self::Query => "QUERY",
            Self::Fenced => "FENCED",
            Self::CommitUnknown => "COMMIT_UNKNOWN",
            Self::Corrupt => "CORRUPT",
            Self::Invalid => "INVALID_ARGUMENT",
            Self::InvalidOption => "INVALID_OPTION",
            Self::Url => "INVALID_URL",
            Self::DirectUrl => "DIRECT_DATABASE_URL",
            Self::Schema => "SCHEMA",
            Self::Closed => "CLOSED",
            Self::InstanceExists => "INSTANCE_EXISTS",
            Self::NotFound => "NOT_FOUND",
            Self::StillRunning => "STILL_RUNNING",
            Self::Internal => "INTERNAL",
        }
    }

    /// Whether the same call may succeed later, unchanged.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Unavailable
                | Self::Capacity
                | Self::DirectSessionCapacity
                | Self::Saturated
                | Self::CircuitOpen
                | Self::Conflict
                | Self::Timeout
                | Self::CommitUnknown
        )
    }
}

/// An error of the engine: its kind, what was being done to what, and the cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: String,
    retry_after: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A new error; `context` says what was being done to what, without a full stop.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), retry_after: None, source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error, said to be about `what`.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.context = format!("{what}: {}", self.context);
        self
    }

    /// The same error with a hint when to try again.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// When to try again, if that is known.
    pub fn retry_hint(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The text with every cause behind it, for a person.
    pub fn full_text(&self) -> String {
        self.text_of(|part| part)
    }

    /// The same without what the server quotes from the data, for events: those who read them may not read the data.
    pub fn text_without_data(&self) -> String {
        // How the driver joins the parts of a server's answer.
        self.text_of(|part| part.split("\nDETAIL: ").next().unwrap_or(part))
    }

    fn text_of(&self, shorten: impl Fn(&str) -> &str) -> String {
        let mut text = shorten(&self.context).to_owned();
        let mut cause = self.source();
        while let Some(error) = cause {
            let whole = error.to_string();
            let part = shorten(&whole);
            if !text.contains(part) {
                text.push_str(": ");
                text.push_str(part);
            }
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn StdError + 'static))
    }
}
