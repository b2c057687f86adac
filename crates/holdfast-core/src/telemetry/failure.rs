//! Errors that the engine itself records, in the shape that user code sees, and the class of a recorded error.

use holdfast_replay::{ErrorPayload, Payload};
use serde::Deserialize;

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

/// Whose fault a recorded error is, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The user's code threw it.
    Application,
    /// The engine could not do its part.
    Infrastructure,
    /// Code that is missing or does not fit.
    Configuration,
    /// Deliveries were used up.
    Poison,
}

impl FailureClass {
    /// The class of an error payload's text.
    pub fn of(text: &str) -> Self {
        #[derive(Default, Deserialize)]
        struct Head {
            #[serde(default)]
            name: String,
            #[serde(default)]
            code: String,
        }
        let head: Head = serde_json::from_str(text).unwrap_or_default();
        match (head.name.as_str(), head.code.as_str()) {
            ("PoisonError", "POISONED") => Self::Poison,
            ("NondeterminismError", _) => Self::Configuration,
            ("InfrastructureError" | "CorruptHistoryError" | "CorruptInputError", _) => Self::Infrastructure,
            _ => Self::Application,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_user_code_is_told_from_those_of_the_engine() {
        let class = |name, code| FailureClass::of(error_payload(name, code, "text").as_str());
        assert_eq!(class("TypeError", "E_CARD"), FailureClass::Application);
        assert_eq!(class("PoisonError", "POISONED"), FailureClass::Poison);
        assert_eq!(class("NondeterminismError", "NONDETERMINISM"), FailureClass::Configuration);
        assert_eq!(class("InfrastructureError", "QUERY"), FailureClass::Infrastructure);
        assert_eq!(FailureClass::of("not JSON"), FailureClass::Application);
    }
}
