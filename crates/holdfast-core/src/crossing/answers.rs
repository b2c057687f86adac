//! What JavaScript answers: one JSON text with the turns and activities that are done. Payloads pass as they are.

use holdfast_replay::{FrameId, Payload, Reply};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};

/// One batch of answers.
#[derive(Debug, Default)]
pub struct Answers {
    /// Turns.
    pub turns: Vec<Reply>,
    /// Turns that JavaScript cannot answer: they go back and are replayed.
    pub abandoned: Vec<FrameId>,
    /// Turns of orchestrations that JavaScript does not have.
    pub unregistered: Vec<FrameId>,
    /// Activities.
    pub activities: Vec<ActivityAnswer>,
    /// Heartbeats of activities that run on.
    pub beats: Vec<BeatAnswer>,
    /// Answers that break the rules of the crossing. Each costs its own turn or activity, and no other.
    pub broken: Vec<Broken>,
}

/// An answer that cannot be understood.
#[derive(Debug)]
pub struct Broken {
    /// Whose answer it is, as far as it says so.
    pub whose: Whose,
    /// What is wrong with it.
    pub error: Error,
}

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The turn of this frame.
    Turn(FrameId),
    /// The activity with this handle.
    Activity(u32),
    /// Nobody knows: whatever JavaScript has may be unanswered for ever.
    Unknown,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Texts<'a> {
    #[serde(borrow)]
    turns: Vec<&'a RawValue>,
    #[serde(borrow)]
    activities: Vec<&'a RawValue>,
    #[serde(borrow)]
    beats: Vec<&'a RawValue>,
}

/// What all answers have, and the whole of one that says nothing about the outcome.
#[derive(Deserialize)]
struct Handle {
    h: u32,
    #[serde(default)]
    abandon: bool,
    #[serde(default)]
    unregistered: bool,
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
    #[serde(default)]
    unregistered: bool,
}

/// A heartbeat of one activity.
#[derive(Debug, Deserialize)]
pub struct BeatAnswer {
    /// Handle of the job.
    pub h: u32,
    /// What it tells.
    pub details: Payload,
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
    /// There is no function of its name: nothing was started.
    Unregistered,
}

impl Answers {
    /// Reads one batch, each answer for itself.
    pub fn parse(text: &str) -> Self {
        let mut answers = Self::default();
        let texts: Texts<'_> = match serde_json::from_str(text) {
            Ok(texts) => texts,
            Err(error) => {
                answers.broken.push(Broken { whose: Whose::Unknown, error: unreadable(error) });
                return answers;
            }
        };
        for text in texts.turns {
            match serde_json::from_str(text.get()) {
                Ok(reply) => answers.turns.push(reply),
                Err(error) => match handle(text) {
                    Some(Handle { h, abandon: true, .. }) => answers.abandoned.push(FrameId(h)),
                    Some(Handle { h, unregistered: true, .. }) => answers.unregistered.push(FrameId(h)),
                    _ => answers.broken.push(broken(text, error, |h| Whose::Turn(FrameId(h)))),
                },
            }
        }
        for text in texts.activities {
            match serde_json::from_str(text.get()) {
                Ok(answer) => answers.activities.push(answer),
                Err(error) => answers.broken.push(broken(text, error, Whose::Activity)),
            }
        }
        // A heartbeat that cannot be read is one that is missing.
        answers.beats = texts.beats.iter().filter_map(|text| serde_json::from_str(text.get()).ok()).collect();
        answers
    }
}

fn handle(text: &RawValue) -> Option<Handle> {
    serde_json::from_str(text.get()).ok()
}

fn broken(text: &RawValue, error: serde_json::Error, whose: impl FnOnce(u32) -> Whose) -> Broken {
    Broken { whose: handle(text).map_or(Whose::Unknown, |handle| whose(handle.h)), error: unreadable(error) }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "an answer of JavaScript cannot be read").caused_by(error)
}

impl ActivityAnswer {
    /// How the activity ended.
    pub fn result(self) -> ActivityResult {
        match (self.ok, self.err) {
            (Some(result), _) => ActivityResult::Completed(result),
            (None, Some(error)) => ActivityResult::Failed(error),
            (None, None) if self.unregistered => ActivityResult::Unregistered,
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
        let answers = Answers::parse(r#"{"activities":[{"h":1,"ok":null},{"h":2,"err":{"a":1e2}},{"h":3}]}"#);
        let results: Vec<ActivityResult> =
            answers.activities.into_iter().map(ActivityAnswer::result).collect();
        assert!(matches!(&results[0], ActivityResult::Completed(payload) if payload.as_str() == "null"));
        assert!(matches!(&results[1], ActivityResult::Failed(payload) if payload.as_str() == r#"{"a":1e2}"#));
        assert!(matches!(&results[2], ActivityResult::Abandoned));
    }
    #[test]
    fn an_answer_that_breaks_the_rules_costs_no_other() {
        let answers = Answers::parse(
            r#"{"turns":[{"h":4,"n":0,"c":[{"fly":{}}],"o":"waiting"},{"h":5,"n":0,"c":[],"o":"waiting"},7],
                "activities":[{"h":1,"ok":null},{"h":"x"},{"h":2,"ok":1,"ok":2}]}"#,
        );
        assert_eq!(answers.turns.len(), 1);
        assert_eq!(answers.activities.len(), 1);
        let whose: Vec<Whose> = answers.broken.iter().map(|broken| broken.whose).collect();
        assert_eq!(whose, [Whose::Turn(FrameId(4)), Whose::Unknown, Whose::Unknown, Whose::Activity(2)]);
        assert_eq!(Answers::parse("{").broken[0].whose, Whose::Unknown);
    }

    #[test]
    fn a_turn_without_an_answer_is_abandoned_and_not_broken() {
        let answers = Answers::parse(
            r#"{"turns":[{"h":4,"abandon":true},{"h":5,"n":0,"c":[],"o":"waiting"},{"h":6,"unregistered":true}]}"#,
        );
        assert_eq!((answers.abandoned, answers.unregistered), (vec![FrameId(4)], vec![FrameId(6)]));
        assert_eq!((answers.turns.len(), answers.broken.len()), (1, 0));
    }
}
