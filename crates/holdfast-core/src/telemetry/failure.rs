//! Errors that the engine itself records, in the shape that user code sees.

use holdfast_replay::{ErrorPayload, Payload};

/// An error of the engine as a payload.
pub fn error_payload(name: &str, code: &str, message: &str) -> Payload {
    ErrorPayload {
        name: name.to_owned(),
        message: message.to_owned(),
        code: Some(code.to_owned()),
        ..ErrorPayload::default()
    }
    .to_payload()
}
