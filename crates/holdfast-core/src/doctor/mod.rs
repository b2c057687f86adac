//! A check of a deployment: what is wrong with it, or soon will be, and what to do.
//!
//! It looks and judges; it never changes a row, never makes a schema, and shows no credentials.

mod examine;
mod facts;
mod judge;

pub use self::examine::examine;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Works, and somebody should look at it.
    Warning,
    /// Does not work.
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Stable name.
    pub id: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub text: String,
    /// What to do; empty when there is nothing to do.
    pub advice: String,
}

impl Finding {
    fn ok(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, level: Level::Ok, text: text.into(), advice: String::new() }
    }

    fn warning(id: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { id, level: Level::Warning, text: text.into(), advice: advice.into() }
    }

    fn error(id: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { id, level: Level::Error, text: text.into(), advice: advice.into() }
    }
}
