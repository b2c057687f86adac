//! How events lie in the rows of a history: packed, as many of a turn in one row as it holds, and unpacked again.
//!
//! Kinds stand side by side, `kind@source` or only the kind, and so do the texts of the events with [`BETWEEN`] between them,
//! byte for byte as they were given. Nothing here looks into a text. What an unpacked row says is believed only where its parts
//! agree; a row that makes no events is its instance's own trouble.

use std::{borrow::Cow, fmt::Write as _};

use holdfast_replay::{EventId, event::StoredEvent};

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    pool::Row,
    store::{message::event_number, row::column},
};

/// Between the texts of two events: JSON has it escaped in strings and nowhere else.
const BETWEEN: char = '\u{1e}';

/// Some events of one turn, as a row has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packed<'a> {
    /// Id of the first; the others follow.
    pub(super) event_id: i32,
    /// How many.
    pub(super) events: i32,
    /// Their time.
    pub(super) at_ms: i64,
    /// Their kinds and sources.
    pub(super) kinds: Cow<'a, str>,
    /// Their texts.
    pub(super) data: Cow<'a, str>,
}

/// The rows of what a turn appends.
pub(super) fn pack(mut events: &[StoredEvent]) -> impl Iterator<Item = Packed<'_>> {
    std::iter::from_fn(move || {
        let first = events.first()?;
        let (row, rest) = events.split_at(fitting(first, events));
        events = rest;
        Some(packed(first, row))
    })
}

/// How many of the events, of which the first is given, go in one row.
fn fitting(first: &StoredEvent, events: &[StoredEvent]) -> usize {
    let mut bytes = 0;
    let mut fits = |(event, id): (&StoredEvent, u32)| {
        bytes += word_bytes(event) + event.data.len() + 2;
        bytes <= limits::HISTORY_ROW_BYTES
            && event.id.0 == id
            && event.at_ms == first.at_ms
            && !event.data.contains(BETWEEN)
    };
    events.iter().zip(first.id.0..).map_while(|pair| fits(pair).then_some(())).count().max(1)
}

fn packed<'a>(first: &'a StoredEvent, row: &'a [StoredEvent]) -> Packed<'a> {
    let events = i32::try_from(row.len()).expect("a row has few events");
    let (kinds, data) = match row {
        [one] if one.source.is_none() => (Cow::Borrowed(one.kind.as_str()), Cow::Borrowed(one.data.as_str())),
        [one] => (Cow::Owned(kinds_of(row)), Cow::Borrowed(one.data.as_str())),
        _ => (Cow::Owned(kinds_of(row)), Cow::Owned(texts_of(row))),
    };
    Packed { event_id: event_number(first.id), events, at_ms: first.at_ms, kinds, data }
}

/// Longest `@source`.
const SOURCE_BYTES: usize = 11;

fn word_bytes(event: &StoredEvent) -> usize {
    event.kind.len() + event.source.map_or(0, |_| SOURCE_BYTES)
}

fn kinds_of(row: &[StoredEvent]) -> String {
    let mut kinds = String::with_capacity(row.iter().map(|event| word_bytes(event) + 1).sum());
    for event in row {
        if !kinds.is_empty() {
            kinds.push(' ');
        }
        kinds.push_str(&event.kind);
        if let Some(source) = event.source {
            write!(kinds, "@{}", source.0).expect("writing to a string");
        }
    }
    kinds
}

fn texts_of(row: &[StoredEvent]) -> String {
    let mut texts = String::with_capacity(row.iter().map(|event| event.data.len() + 1).sum());
    for (place, event) in row.iter().enumerate() {
        if place > 0 {
            texts.push(BETWEEN);
        }
        texts.push_str(&event.data);
    }
    texts
}

/// The events of a row.
pub(super) fn unpack(row: &Row) -> Result<Vec<StoredEvent>> {
    let packed = Packed {
        event_id: column(row, "event_id")?,
        events: column(row, "events")?,
        at_ms: column(row, "at_ms")?,
        kinds: Cow::Borrowed(column(row, "kinds")?),
        data: Cow::Borrowed(column(row, "data")?),
    };
    let corrupt = || {
        let text = format!("the row of {} events from {} cannot be read", packed.events, packed.event_id);
        Error::new(ErrorKind::Corrupt, text)
    };
    unpacked(&packed).ok_or_else(corrupt)
}

/// The events; none when the parts do not agree.
fn unpacked(packed: &Packed<'_>) -> Option<Vec<StoredEvent>> {
    let first = u32::try_from(packed.event_id).ok()?;
    let count = u32::try_from(packed.events).ok()?;
    let mut kinds = packed.kinds.split(' ');
    let mut texts = packed.data.splitn(count as usize, BETWEEN);
    let mut events = Vec::new();
    for place in 0..count {
        let (kind, source) = kind_and_source(kinds.next()?)?;
        let id = EventId(first.checked_add(place)?);
        let (kind, data) = (kind.to_owned(), texts.next()?.to_owned());
        events.push(StoredEvent { id, kind, source, at_ms: packed.at_ms, data });
    }
    kinds.next().is_none().then_some(events)
}

fn kind_and_source(word: &str) -> Option<(&str, Option<EventId>)> {
    match word.split_once('@') {
        None => Some((word, None)),
        Some((kind, source)) => Some((kind, Some(EventId(source.parse().ok()?)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_700_000_000_000;

    fn event(id: u32, kind: &str, source: Option<u32>, data: &str) -> StoredEvent {
        let (kind, data) = (kind.to_owned(), data.to_owned());
        StoredEvent { id: EventId(id), kind, source: source.map(EventId), at_ms: AT, data }
    }

    fn row<'a>(event_id: i32, events: i32, kinds: &'a str, data: &'a str) -> Packed<'a> {
        Packed { event_id, events, at_ms: AT, kinds: kinds.into(), data: data.into() }
    }

    /// The rows of some events, after a look that the events come back from them.
    fn rows(events: &[StoredEvent]) -> Vec<Packed<'_>> {
        let rows: Vec<_> = pack(events).collect();
        let back: Vec<_> = rows.iter().flat_map(|row| unpacked(row).expect("events")).collect();
        assert_eq!(back, events);
        rows
    }

    #[test]
    fn the_events_of_a_turn_are_one_row() {
        let turn = [
            event(3, "ActivityCompleted", Some(2), r#"{"result":"\u001e \ud800"}"#),
            event(4, "ActivityScheduled", None, r#"{"name":"a b@c","input":1e400}"#),
            event(5, "TimerCancelled", Some(1), "{}"),
        ];
        let data = concat!(
            r#"{"result":"\u001e \ud800"}"#,
            "\u{1e}",
            r#"{"name":"a b@c","input":1e400}"#,
            "\u{1e}{}"
        );
        assert_eq!(rows(&turn), [row(3, 3, "ActivityCompleted@2 ActivityScheduled TimerCancelled@1", data)]);
        assert_eq!(rows(&[]), []);
    }

    #[test]
    fn an_event_alone_is_not_copied() {
        let alone = [event(7, "TimerFired", None, "{}")];
        let [row] = &rows(&alone)[..] else { panic!("one row") };
        assert!(matches!((&row.kinds, &row.data), (Cow::Borrowed("TimerFired"), Cow::Borrowed("{}"))));
    }

    #[test]
    fn a_row_ends_before_it_is_too_large() {
        let counts = |lengths: &[usize]| -> Vec<i32> {
            let of =
                |(place, length): (usize, &usize)| event(place as u32 + 1, "K", None, &"x".repeat(*length));
            rows(&lengths.iter().enumerate().map(of).collect::<Vec<_>>())
                .iter()
                .map(|row| row.events)
                .collect()
        };
        let half = limits::HISTORY_ROW_BYTES / 2 - 3;
        assert_eq!(counts(&[half, half, half]), [2, 1]);
        assert_eq!(counts(&[half, half + 1, half]), [1, 1, 1]);
        assert_eq!(counts(&[1, 10_000_000, 1, 1]), [1, 1, 2]);
        assert!(counts(&[2; 1000]).iter().all(|count| *count <= 400));
    }

    #[test]
    fn what_does_not_lie_together_has_rows_of_its_own() {
        let mut turn = [1, 2, 3, 5].map(|id| event(id, "K", None, "{}"));
        turn[1].at_ms += 1;
        turn[2].at_ms += 1;
        assert_eq!(rows(&turn).iter().map(|row| row.event_id).collect::<Vec<_>>(), [1, 2, 5]);
        let odd = ["\u{1e}", "{}", "a\u{1e}b", "{}"];
        let odd: Vec<_> = odd.iter().zip(1..).map(|(data, id)| event(id, "K", None, data)).collect();
        assert_eq!(rows(&odd).iter().map(|row| row.events).collect::<Vec<_>>(), [1, 1, 1, 1]);
    }

    #[test]
    fn a_row_whose_parts_do_not_agree_makes_no_events() {
        let good = row(1, 2, "A@1 B", "{}\u{1e}{}");
        assert_eq!(unpacked(&good).expect("events").len(), 2);
        for broken in [
            row(1, 2, "A", "{}\u{1e}{}"),
            row(1, 2, "A B C", "{}\u{1e}{}"),
            row(1, 2, "A B", "{}"),
            row(1, 0, "A", "{}"),
            row(1, i32::MAX, "A B", "{}\u{1e}{}"),
            row(1, -1, "A", "{}"),
            row(-1, 1, "A", "{}"),
            row(1, 1, "A@-1", "{}"),
            row(1, 1, "A@", "{}"),
            row(1, 1, "A@4294967296", "{}"),
        ] {
            assert_eq!(unpacked(&broken), None, "{broken:?}");
        }
    }
}
