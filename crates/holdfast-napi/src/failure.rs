//! Failures as data: what the TypeScript side turns into an error class.

use holdfast_core::error::{Error, Result};
use napi_derive::napi;

/// Why a call failed.
#[napi(object)]
pub struct JsFailure {
    /// Stable code.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// When to try again, in ms, if that is known.
    pub retry_after_ms: Option<f64>,
}

impl From<Error> for JsFailure {
    fn from(error: Error) -> Self {
        Self {
            code: error.kind().code().to_owned(),
            message: error.full_text(),
            retryable: error.kind().is_retryable(),
            retry_after_ms: error.retry_hint().map(|delay| delay.as_secs_f64() * 1000.0),
        }
    }
}

/// Outcome of a call that gives a text.
#[napi(object)]
pub struct JsTextOutcome {
    /// Present on success.
    pub value: Option<String>,
    /// Present on failure.
    pub failure: Option<JsFailure>,
}

impl From<Result<String>> for JsTextOutcome {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(value) => Self { value: Some(value), failure: None },
            Err(error) => Self { value: None, failure: Some(error.into()) },
        }
    }
}

/// Outcome of a call that gives nothing.
#[napi(object)]
pub struct JsOutcome {
    /// Present on failure.
    pub failure: Option<JsFailure>,
}

impl From<Result<()>> for JsOutcome {
    fn from(result: Result<()>) -> Self {
        Self { failure: result.err().map(JsFailure::from) }
    }
}
