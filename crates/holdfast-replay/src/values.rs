//! Values: what the code of an instance keeps under keys, as its events tell it.
//!
//! The next execution of the instance starts from them. The number of keys and their length are checked where the code
//! sets them; here they are only kept, in key order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{EventBody, KeptValue, Payload};

/// The activity name under which a read of another instance's value is recorded; users cannot register it.
pub(crate) const READ_VALUE: &str = "__holdfast:get-value";

/// The recorded input of such a read.
pub(crate) fn read_input(instance: &str, key: &str) -> Payload {
    #[derive(Serialize)]
    struct Input<'a> {
        instance: &'a str,
        key: &'a str,
    }
    Payload::of(&Input { instance, key })
}

/// The values of an execution.
#[derive(Debug, Default)]
pub(crate) struct Values {
    by_key: BTreeMap<String, (String, i64)>,
}

impl Values {
    /// Values that the predecessor left.
    pub(crate) fn carried(values: &[KeptValue]) -> Self {
        let entry = |kept: &KeptValue| (kept.key.clone(), (kept.value.clone(), kept.at_ms));
        Self { by_key: values.iter().map(entry).collect() }
    }

    /// Enters an event; those of other kinds change nothing.
    pub(crate) fn event(&mut self, body: &EventBody) {
        match body {
            EventBody::KeyValueSet { key, value, last_updated_at_ms } => {
                self.by_key.insert(key.clone(), (value.clone(), *last_updated_at_ms));
            }
            EventBody::KeyValueCleared { key } => {
                self.by_key.remove(key);
            }
            EventBody::KeyValuesCleared {} => self.by_key.clear(),
            _ => {}
        }
    }

    /// All values, by key.
    pub(crate) fn all(&self) -> Vec<KeptValue> {
        let kept = |(key, (value, at_ms)): (&String, &(String, i64))| KeptValue {
            key: key.clone(),
            value: value.clone(),
            at_ms: *at_ms,
        };
        self.by_key.iter().map(kept).collect()
    }
}
