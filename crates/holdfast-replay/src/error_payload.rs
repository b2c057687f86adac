//! The shape of an error as it crosses to JavaScript and into history.
//!
//! User code's own errors come in this shape as raw text and are never rebuilt here; this struct is for errors that
//! the engine makes (cancelled, timed out, poisoned, not deterministic).

use serde::{Deserialize, Serialize};

use crate::Payload;

/// An error in the shape that JavaScript gives and takes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ErrorPayload {
    /// Class name, such as `CancelledError`.
    pub name: String,
    /// What went wrong, for people.
    pub message: String,
    /// What went wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Stack text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Further JSON fields of the error, as one JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Payload>,
    /// The error that caused this one, in the same shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Payload>,
    /// False when trying again cannot help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl ErrorPayload {
    /// An error with a name, a code and a message.
    pub fn new(name: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            message: message.into(),
            code: Some(code.to_owned()),
            ..Self::default()
        }
    }

    /// The error of a cancelled execution; the reason may be empty.
    pub fn cancelled(reason: &str) -> Self {
        let message = if reason.is_empty() { "canceled".to_owned() } else { format!("canceled: {reason}") };
        Self::new("CancelledError", "CANCELLED", message)
    }

    /// Its JSON text.
    pub fn to_payload(&self) -> Payload {
        Payload::of(self)
    }
}
