//! How an event becomes a row and comes back.
//!
//! `{"Kind":data}` of a row is exactly the JSON of an [`EventBody`], so a row needs no second description of the
//! variants. Payloads pass as raw text: what was written comes back byte for byte. Nothing here looks into a payload.

use std::io;

use crate::{CorruptHistory, Event, EventBody, event::StoredEvent};

/// Bytes of a row beside kind and data: id, source, time and the row's own head.
const ROW_OVERHEAD: usize = 48;

impl StoredEvent {
    /// The row of an event.
    pub fn encode(event: &Event) -> Self {
        let text = serde_json::to_string(&event.body).expect("an event always has a JSON form");
        // The text is `{"Kind":data}`; a kind is an identifier and holds no quote.
        let kind_end = text[2..].find('"').expect("externally tagged") + 2;
        Self {
            id: event.id,
            kind: text[2..kind_end].to_owned(),
            source: event.source,
            at_ms: event.at_ms,
            data: text[kind_end + 2..text.len() - 1].to_owned(),
        }
    }

    /// The event of a row.
    pub fn decode(self) -> Result<Event, CorruptHistory> {
        let corrupt = |text: String| CorruptHistory { position: self.id.0, text };
        if self.kind.is_empty() || !self.kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(corrupt(format!("unknown kind {:?}", self.kind)));
        }
        let text = format!("{{\"{}\":{}}}", self.kind, self.data);
        let body = serde_json::from_str(&text)
            .map_err(|error| corrupt(format!("data of kind {} cannot be read: {error}", self.kind)))?;
        Ok(Event { id: self.id, at_ms: self.at_ms, source: self.source, body })
    }
}

/// About the bytes that a row of this body takes.
pub(crate) fn stored_bytes(body: &EventBody) -> usize {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, body).expect("an event always has a JSON form");
    counter.0 + ROW_OVERHEAD
}

/// Counts what is written to it.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
