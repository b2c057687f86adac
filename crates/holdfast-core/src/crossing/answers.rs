//! What JavaScript answers: one JSON text with the turns and activities that are done. Payloads pass as they are.

use holdfast_replay::{Payload, Reply};
use serde::{Deserialize, Deserializer};

use crate::error::{Error, ErrorKind, Result};

/// One batch of answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Turns.
    pub turns: Vec<Reply>,
    /// Activities.
    pub activities: Vec<ActivityAnswer>,
}

/// The answer of one activity.
#[derive(Debug, Deserialize)]
pub struct ActivityAnswer {
    /// Handle of the job.
    pub h: u32,
    #[serde(default, deserialize_with = "present")]
    ok: Option<Payload>,
    #[serde(default, deserialize_with = "present")]
    err: Option<Payload>,
}

/// How one activity ended.
#[derive(Debug)]
pub enum ActivityResult {
    /// It returned.
    Completed(Payload),
    /// It threw.
    Failed(Payload),
    /// It was stopped and says nothing about its outcome: the task is handed back.
    Abandoned,
}

impl Answers {
    /// Reads one batch.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::new(ErrorKind::Invalid, "read a batch of answers").caused_by(error))
    }
}

impl ActivityAnswer {
    /// How the activity ended.
    pub fn result(self) -> ActivityResult {
        match (self.ok, self.err) {
            (Some(result), _) => ActivityResult::Completed(result),
            (None, Some(error)) => ActivityResult::Failed(error),
            (None, None) => ActivityResult::Abandoned,
        }
    }
}

/// Tells a payload that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Payload>, D::Error> {
    Payload::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_result_is_a_result() {
        let answers = Answers::parse(r#"{"activities":[{"h":1,"ok":null},{"h":2,"err":{"a":1e2}},{"h":3}]}"#)
            .expect("valid");
        let results: Vec<ActivityResult> =
            answers.activities.into_iter().map(ActivityAnswer::result).collect();
        assert!(matches!(&results[0], ActivityResult::Completed(payload) if payload.as_str() == "null"));
        assert!(matches!(&results[1], ActivityResult::Failed(payload) if payload.as_str() == r#"{"a":1e2}"#));
        assert!(matches!(&results[2], ActivityResult::Abandoned));
    }
}
