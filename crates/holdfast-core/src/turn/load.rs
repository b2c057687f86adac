//! From claimed rows to executions: messages for all of them, history only for those without a live frame.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use holdfast_replay::{
    CarryOver, Event, EventBody, Execution, Message, Payload, StartInfo, event::StoredEvent, limits::Limits,
};

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    store::{
        StoreSession,
        commit::{BelatedActivity, NewActivity},
        turn::ClaimedTurn,
    },
};

/// What was read for a set of claimed turns.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    messages: HashMap<String, Vec<Message>>,
    /// The first row of an inbox that makes no message, as an error of its instance.
    faults: HashMap<String, Error>,
    /// A history with a row that makes no event is an error of its own instance.
    history: HashMap<String, Result<Vec<StoredEvent>>>,
}

impl Loaded {
    /// Reads the due messages of `all`, the history of `cold` and the cancel requests of `parked`, then those of inboxes that
    /// are too long for one turn: a turn never goes on without a request that was accepted. Four statements at most.
    pub(super) async fn read(
        session: &dyn StoreSession,
        all: &[String],
        cold: &[(String, i64)],
        parked: &[String],
    ) -> Result<Self> {
        let inbox = session.inbox(all, limits::INBOX_PER_TURN, limits::INBOX_BYTES_PER_TURN);
        let history = async { if cold.is_empty() { Ok(Vec::new()) } else { session.history(cold).await } };
        let cancels =
            async { if parked.is_empty() { Ok(Vec::new()) } else { session.cancels(parked).await } };
        let (inbox, history, mut cancels) = futures_util::future::try_join3(inbox, history, cancels).await?;
        let long = long_inboxes(&inbox, parked);
        if !long.is_empty() {
            cancels.extend(session.cancels(&long).await?);
        }
        let mut loaded = Self::default();
        for (instance, message) in cancels {
            loaded.messages.entry(instance).or_default().push(message);
        }
        for (instance, message) in inbox {
            match message {
                Ok(message) => {
                    let messages = loaded.messages.entry(instance).or_default();
                    if messages.first().is_none_or(|first| first.id != message.id) {
                        messages.push(message);
                    }
                }
                Err(error) => {
                    loaded.faults.entry(instance).or_insert(error);
                }
            }
        }
        for (instance, event) in history {
            let events = loaded.history.entry(instance).or_insert_with(|| Ok(Vec::new()));
            match event {
                Ok(event) => {
                    if let Ok(events) = events {
                        events.push(event);
                    }
                }
                Err(error) => *events = Err(error),
            }
        }
        Ok(loaded)
    }

    /// Messages of one instance, once.
    pub(super) fn take_messages(&mut self, instance: &str) -> Vec<Message> {
        self.messages.remove(instance).unwrap_or_default()
    }

    /// Why the inbox of an instance cannot be read, once.
    pub(super) fn take_fault(&mut self, instance: &str) -> Option<Error> {
        self.faults.remove(instance)
    }

    /// Events of one instance, once.
    pub(super) fn take_history(&mut self, instance: &str) -> Result<Vec<StoredEvent>> {
        self.history.remove(instance).unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Events read.
    pub(super) fn history_rows(&self) -> usize {
        self.history.values().flatten().map(Vec::len).sum()
    }
}

/// Turns that go back because what they need is too much for one load together with those before them: cold turns, beyond the
/// first, with their histories, and turns whose start the claim left out.
pub(super) fn beyond_one_load(fresh: &[ClaimedTurn], cold: &[(String, i64)]) -> BTreeSet<String> {
    let cold: BTreeSet<&str> = cold.iter().map(|(instance, _)| instance.as_str()).collect();
    let mut events = 0;
    let mut beyond = BTreeSet::new();
    for claimed in fresh.iter().filter(|claimed| cold.contains(claimed.instance.as_str())) {
        let more = i64::from(claimed.history_len);
        if events > 0 && events + more > limits::REPLAYED_EVENTS_PER_CLAIM {
            beyond.insert(claimed.instance.clone());
        } else {
            events += more;
        }
    }
    beyond.extend(fresh.iter().filter(|claimed| claimed.unread).map(|claimed| claimed.instance.clone()));
    beyond
}

/// Instances beside the `parked` ones of which not all messages may have been read.
fn long_inboxes(inbox: &[(String, Result<Message>)], parked: &[String]) -> Vec<String> {
    let bytes =
        |message: &Result<Message>| message.as_ref().map_or(0, |message| message.body.payload_bytes());
    let is_long = |messages: &[(String, Result<Message>)]| {
        messages.len() as i64 >= limits::INBOX_PER_TURN
            || messages.iter().map(|(_, message)| bytes(message)).sum::<usize>() as i64
                >= limits::INBOX_BYTES_PER_TURN
    };
    let each = inbox.chunk_by(|(a, _), (b, _)| a == b);
    let long = each.filter(|messages| is_long(messages)).map(|messages| messages[0].0.clone());
    long.filter(|instance| !parked.contains(instance)).collect()
}

/// The execution of a claimed turn without a live frame, and the activities that may have run without a row. How long a history is whose lease was cut off, it tells itself.
pub(super) fn execution(
    claimed: &mut ClaimedTurn,
    version: &str,
    limits: Limits,
    stored: Result<Vec<StoredEvent>>,
    isolated: bool,
) -> Result<(Box<Execution>, Vec<BelatedActivity>)> {
    let (instance, stored) = (claimed.instance.clone(), stored?);
    if claimed.cut_off {
        let length = i32::try_from(stored.len()).unwrap_or(i32::MAX);
        claimed.history_len = claimed.history_len.max(length);
    }
    if claimed.history_len == 0 {
        let start = start_info(claimed, version)?;
        let begun = Execution::begin(instance, claimed.execution, start, claimed.now_ms);
        return Ok((Box::new(begun.bounded_by(limits)), Vec::new()));
    }
    if stored.len() as i64 != i64::from(claimed.history_len) {
        let text = format!(
            "history of {instance:?} has {} events where {} were recorded",
            stored.len(),
            claimed.history_len
        );
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    let decoded: Result<Vec<Event>, _> = stored.into_iter().map(StoredEvent::decode).collect();
    let corrupt =
        |error| Error::new(ErrorKind::Corrupt, format!("read history of {instance:?}")).caused_by(error);
    let events = decoded.map_err(corrupt)?;
    let belated = if claimed.cut_off { open_activities(&events, isolated) } else { Vec::new() };
    let replayed = Execution::replay(instance.clone(), claimed.execution, events).map_err(corrupt)?;
    Ok((Box::new(replayed.bounded_by(limits)), belated))
}

/// The activities without a result, as rows for those that have none: a delivery counts of each, as it may have run.
fn open_activities(events: &[Event], isolated: bool) -> Vec<BelatedActivity> {
    let mut open: BTreeMap<u32, BelatedActivity> = BTreeMap::new();
    for event in events {
        match (&event.body, event.source) {
            (
                EventBody::ActivityScheduled { name, input, tag, session, retry, timeout_ms, local: false },
                _,
            ) => {
                let task = NewActivity {
                    event: i32::try_from(event.id.0).unwrap_or(i32::MAX),
                    name: name.clone(),
                    input: input.as_str().to_owned(),
                    retry: retry.as_ref().map(|policy| Payload::of(policy).into_text()),
                    timeout_ms: timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                    tag: tag.clone(),
                    session: session.clone(),
                    lease_ms: None,
                };
                let row = BelatedActivity {
                    task,
                    attempt: 1,
                    deliveries: 1,
                    delay_ms: 0,
                    heartbeat: None,
                    isolated,
                };
                open.insert(event.id.0, row);
            }
            (_, Some(source)) => drop(open.remove(&source.0)),
            _ => {}
        }
    }
    open.into_values().collect()
}

fn start_info(claimed: &ClaimedTurn, version: &str) -> Result<StartInfo> {
    let corrupt =
        |what: &str| Error::new(ErrorKind::Corrupt, format!("{what} of {:?} is not JSON", claimed.instance));
    let start = claimed
        .start
        .as_ref()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a first turn was claimed without its start"))?;
    let input = Payload::from_text(start.input.clone()).ok_or_else(|| corrupt("the input"))?;
    let carried: CarryOver = match &start.carried {
        Some(text) => {
            serde_json::from_str(text).map_err(|error| corrupt("what is carried over").caused_by(error))?
        }
        None => CarryOver::default(),
    };
    Ok(StartInfo {
        name: claimed.name.clone(),
        version: version.to_owned(),
        input,
        parent: claimed.parent.clone(),
        seed: seed(claimed),
        carried: carried.messages,
        custom_status: start.custom_status.clone(),
        values: carried.values,
    })
}

/// A seed that no other execution has: the fence is never used twice. It is recorded in the first event.
fn seed(claimed: &ClaimedTurn) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&claimed.instance, claimed.execution, claimed.fence.0, claimed.now_ms).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Fence;

    fn claimed(instance: &str, history_len: i32) -> ClaimedTurn {
        ClaimedTurn {
            instance: instance.to_owned(),
            fence: Fence(1),
            deliveries: 1,
            poisoned: false,
            name: "n".to_owned(),
            version: None,
            execution: 1,
            history_len,
            parked: false,
            cut_off: false,
            replay_version: None,
            last_fence: Fence(0),
            start: None,
            unread: false,
            parent: None,
            now_ms: 0,
        }
    }

    fn beyond(lengths: &[i32], cold: &[usize]) -> Vec<String> {
        let turns: Vec<ClaimedTurn> =
            lengths.iter().enumerate().map(|(at, length)| claimed(&format!("i{at}"), *length)).collect();
        let cold: Vec<(String, i64)> = cold.iter().map(|at| (format!("i{at}"), 1)).collect();
        beyond_one_load(&turns, &cold).into_iter().collect()
    }

    #[test]
    fn the_first_history_is_read_however_long_and_small_ones_fill_the_load() {
        assert_eq!(beyond(&[500_000, 10, 20], &[0, 1, 2]), ["i1", "i2"]);
        assert_eq!(beyond(&[60_000, 60_000, 40_000], &[0, 1, 2]), ["i1"]);
        assert_eq!(beyond(&[60_000, 60_000, 40_000], &[1, 2]), [""; 0], "a live frame reads no history");
    }

    #[test]
    fn a_turn_whose_start_was_left_out_goes_back() {
        let turns = [claimed("read", 0), ClaimedTurn { unread: true, ..claimed("left out", 0) }];
        assert_eq!(beyond_one_load(&turns, &[]), BTreeSet::from(["left out".to_owned()]));
    }
}
