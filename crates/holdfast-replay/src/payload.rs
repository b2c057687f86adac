//! A payload: JSON text exactly as user code produced it.
//!
//! It is never parsed and written again on the way, so number spelling, key order, escapes and lone surrogates survive.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// JSON text, carried as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(Box<RawValue>);

impl Payload {
    /// The payload `null`, which stands for an absent value.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Takes text that is claimed to be JSON; `None` when it is not.
    pub fn from_text(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(Self)
    }

    /// A JSON string holding `text`.
    pub fn string(text: &str) -> Self {
        let quoted = serde_json::to_string(text).expect("a string always has a JSON form");
        Self(RawValue::from_string(quoted).expect("serde_json wrote it"))
    }

    /// Writes `value` as JSON; for values the engine itself makes (errors, markers).
    pub fn of<T: Serialize>(value: &T) -> Self {
        let text = serde_json::to_string(value).expect("the engine's own values have a JSON form");
        Self(RawValue::from_string(text).expect("serde_json wrote it"))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The JSON text, without a copy.
    pub fn into_text(self) -> String {
        Box::<str>::from(self.0).into_string()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Payload {}
