//! Events: what happened that somebody may have to act on, kept for a listener until it is taken.
//!
//! Invariants: emitting never waits and never fails; what is kept is bounded by number and, for each name, by a share of
//! it; what is left out is counted in the event that stands for it. Without a listener nothing is kept. Every event also
//! goes to `tracing`. It decides nothing and calls no listener but for its bell.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};

/// Events kept for a listener that is busy: beyond it the oldest goes.
const KEPT: usize = 256;

/// Events of one name kept at a time: the next one is counted in the last, so a storm of one name hides no other.
const KEPT_OF_ONE_NAME: usize = 16;

/// How much somebody should care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The state of the engine changed.
    Info,
    /// Somebody may act.
    Warn,
    /// Something cannot go on.
    Error,
}

impl Level {
    /// The word that JavaScript sees.
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// A stable word in kebab case.
    pub name: &'static str,
    /// How much somebody should care.
    pub level: Level,
    /// For people.
    pub message: String,
    /// When, in ms since 1970 by the clock of this process.
    pub at_ms: u64,
    /// How many this one stands for; above 1 when its kind came faster than it was taken.
    pub count: u64,
    /// What belongs to this name, as docs/events.md says.
    pub fields: Map<String, Value>,
}

impl Event {
    fn new(name: &'static str, level: Level, message: String, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { name, level, message, at_ms, count: 1, fields }
    }

    /// As one object: the fields, and the common ones over them.
    pub fn to_json(&self) -> Value {
        let mut object = self.fields.clone();
        object.insert("name".to_owned(), self.name.into());
        object.insert("level".to_owned(), self.level.word().into());
        object.insert("message".to_owned(), self.message.as_str().into());
        object.insert("at".to_owned(), self.at_ms.into());
        object.insert("count".to_owned(), self.count.into());
        Value::Object(object)
    }

    fn trace(&self) {
        let fields = (!self.fields.is_empty()).then(|| Value::Object(self.fields.clone()).to_string());
        let fields = fields.as_deref();
        match self.level {
            Level::Info => tracing::info!(event = self.name, fields, "{}", self.message),
            Level::Warn => tracing::warn!(event = self.name, fields, "{}", self.message),
            Level::Error => tracing::error!(event = self.name, fields, "{}", self.message),
        }
    }
}

/// Told that there is something to take; called from any thread, must not wait.
pub type Bell = Arc<dyn Fn() + Send + Sync>;

/// The events of one provider.
#[derive(Default)]
pub struct Events {
    listening: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: VecDeque<Event>,
    bell: Option<Bell>,
    /// The bell rang and nothing was taken since.
    rung: bool,
    dropped: u64,
}

impl Events {
    /// Something happened. `fields` is a JSON object, or null for none.
    ///
    /// ```
    /// use holdfast_core::telemetry::{Events, Level};
    ///
    /// let events = Events::default();
    /// events.emit("lease-lost", Level::Warn, "a lease ran out", serde_json::json!({ "instance": "order-17" }));
    /// ```
    pub fn emit(&self, name: &'static str, level: Level, message: impl Into<String>, fields: Value) {
        let event = Event::new(name, level, message.into(), fields);
        event.trace();
        self.keep(event);
    }

    /// From here on events are kept, and the bell rings when there are some; it replaces the bell before.
    pub fn listen(&self, bell: Bell) {
        let mut state = self.state();
        state.bell = Some(bell);
        state.rung = false;
        self.listening.store(true, Ordering::Release);
    }

    /// Nothing is kept any more, and what was kept goes.
    pub fn unlisten(&self) {
        let old = {
            let mut state = self.state();
            self.listening.store(false, Ordering::Release);
            std::mem::take(&mut *state)
        };
        // A bell may do more than forget when it goes: not under the lock.
        drop(old);
    }

    /// What was kept since the last call, the oldest first.
    pub fn take(&self) -> Vec<Event> {
        let (kept, dropped) = {
            let mut state = self.state();
            state.rung = false;
            (std::mem::take(&mut state.kept), std::mem::take(&mut state.dropped))
        };
        let mut events = Vec::from(kept);
        if dropped > 0 {
            let message =
                format!("{dropped} events were dropped, because they came faster than they were heard");
            let lost =
                Event::new("events-dropped", Level::Warn, message, serde_json::json!({ "dropped": dropped }));
            events.insert(0, lost);
        }
        events
    }

    /// The same as one JSON array.
    pub fn take_json(&self) -> String {
        Value::Array(self.take().iter().map(Event::to_json).collect()).to_string()
    }

    fn keep(&self, event: Event) {
        if !self.listening.load(Ordering::Acquire) {
            return;
        }
        let bell = {
            let mut state = self.state();
            state.keep(event);
            if state.rung {
                return;
            }
            state.rung = true;
            state.bell.clone()
        };
        if let Some(bell) = bell {
            bell();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, event: Event) {
        let same = self.kept.iter().filter(|kept| kept.name == event.name).count();
        if same >= KEPT_OF_ONE_NAME
            && let Some(last) = self.kept.iter_mut().rev().find(|kept| kept.name == event.name)
        {
            let count = last.count + event.count;
            *last = Event { count, ..event };
            return;
        }
        if self.kept.len() == KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.dropped += oldest.count;
        }
        self.kept.push_back(event);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("kept", &self.state().kept.len()).finish_non_exhaustive()
    }
}

/// Several providers that share what happens, as they share a pool.
#[derive(Debug, Default)]
pub struct Audience(Mutex<Vec<Weak<Events>>>);

impl Audience {
    /// One more hears what happens from here on, until it is dropped.
    pub fn join(&self, events: &Arc<Events>) {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(events));
    }

    /// Something happened to all of them.
    pub fn emit(&self, name: &'static str, level: Level, message: impl Into<String>, fields: Value) {
        let event = Event::new(name, level, message.into(), fields);
        event.trace();
        let members: Vec<Arc<Events>> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
        for member in members {
            member.keep(event.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;

    use super::*;

    fn heard() -> (Events, Arc<AtomicUsize>) {
        let events = Events::default();
        let rings = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rings);
        events.listen(Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        (events, rings)
    }

    #[test]
    fn without_a_listener_nothing_is_kept() {
        let events = Events::default();
        events.emit("lease-lost", Level::Warn, "lost", Value::Null);
        assert!(events.take().is_empty());
        let (events, _) = heard();
        events.emit("lease-lost", Level::Warn, "lost", Value::Null);
        events.unlisten();
        assert!(events.take().is_empty());
    }

    #[test]
    fn the_bell_rings_once_until_something_is_taken() {
        let (events, rings) = heard();
        for _ in 0..3 {
            events.emit("a-name", Level::Info, "text", json!({ "instance": "i" }));
        }
        assert_eq!(rings.load(Ordering::Relaxed), 1);
        assert_eq!(events.take().len(), 3);
        events.emit("a-name", Level::Info, "text", Value::Null);
        assert_eq!(rings.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_storm_of_one_name_is_counted_and_hides_no_other() {
        let (events, _) = heard();
        events.emit("rare", Level::Info, "before", Value::Null);
        for at in 0..10_000 {
            events.emit("storm", Level::Warn, format!("number {at}"), json!({ "at": at }));
        }
        events.emit("rare", Level::Info, "after", Value::Null);
        let taken = events.take();
        assert_eq!(taken.len(), KEPT_OF_ONE_NAME + 2);
        assert_eq!(taken.iter().filter(|event| event.name == "rare").count(), 2);
        let storm: u64 = taken.iter().filter(|event| event.name == "storm").map(|event| event.count).sum();
        assert_eq!(storm, 10_000);
        assert_eq!(taken[KEPT_OF_ONE_NAME].message, "number 9999");
    }

    #[test]
    fn beyond_the_bound_the_oldest_go_and_are_counted() {
        const NAMES: [&str; 17] =
            ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"];
        let (events, _) = heard();
        for name in NAMES {
            for _ in 0..KEPT_OF_ONE_NAME {
                events.emit(name, Level::Info, "text", Value::Null);
            }
        }
        let taken = events.take();
        assert_eq!((taken.len(), taken[0].name), (KEPT + 1, "events-dropped"));
        assert_eq!(taken[0].fields["dropped"], 16);
        assert_eq!(taken[1].name, "b");
    }

    #[test]
    fn the_common_fields_win_over_an_events_own() {
        let event = Event::new("a-name", Level::Error, "text".to_owned(), json!({ "name": "x", "id": 7 }));
        let json = event.to_json();
        assert_eq!(
            (&json["name"], &json["level"], &json["id"]),
            (&json!("a-name"), &json!("error"), &json!(7))
        );
    }

    #[test]
    fn an_audience_tells_every_member_that_is_left() {
        let (first, second) = (Arc::new(heard().0), Arc::new(heard().0));
        let audience = Audience::default();
        audience.join(&first);
        audience.join(&second);
        drop(second);
        audience.emit("a-name", Level::Info, "text", Value::Null);
        assert_eq!(first.take().len(), 1);
    }
}
