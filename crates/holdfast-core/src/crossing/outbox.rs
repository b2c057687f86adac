//! What JavaScript has not pulled yet: activations, activity jobs, abort signals, frames to forget.
//!
//! One crossing takes a whole batch as one JSON text. What is still here has not started, so a drain can give it back.
//!
//! length: what a batch is made of and how its text is written stand beside the queue it is taken from.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdfast_replay::{Activation, Fact, FrameId};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// An activity task as JavaScript sees it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct ActivityJob<'a> {
    pub h: u32,
    pub name: &'a str,
    pub input: &'a RawValue,
    pub instance: &'a str,
    pub execution: i64,
    pub event: i32,
    pub orchestration: Option<&'a str>,
    pub version: Option<&'a str>,
    pub attempt: i32,
    pub delivery: i32,
    pub max_attempts: u32,
    pub tag: Option<&'a str>,
    pub session: Option<&'a str>,
    pub worker_id: &'a str,
    /// From the start of its body.
    pub timeout_ms: Option<i64>,
    pub heartbeat_timeout_ms: Option<i64>,
    /// What an earlier delivery told last.
    pub heartbeat: Option<&'a RawValue>,
}

impl ActivityJob<'_> {
    /// Written once: nothing of its task is copied for it but into its text.
    pub fn written(&self) -> Job {
        let text = serde_json::to_string(self).expect("payloads are JSON and keys are strings");
        Job { h: self.h, text }
    }
}

/// An activity job that JavaScript has not pulled yet.
#[derive(Debug, Clone)]
pub struct Job {
    h: u32,
    /// JSON text.
    text: String,
}

/// Why a running activity is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AbortReason {
    /// Its task is gone: the orchestration does not want it any more, or it was cancelled or deleted by itself.
    Cancelled,
    /// Another node has the task or has ended it, or this node gives its leases up.
    Lost,
    /// The runtime stops.
    Shutdown,
    /// Its time limit ran out.
    Timeout,
}

/// An abort signal for a running activity.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub struct Abort {
    pub h: u32,
    pub reason: AbortReason,
}

/// What one crossing takes.
#[derive(Debug)]
pub struct Pulled {
    /// The batch, JSON text.
    pub text: String,
    /// The activities in it: their bodies start now.
    pub activities: Vec<u32>,
}

/// What had not started when the outbox was drained.
#[derive(Debug, Default)]
pub struct Unstarted {
    /// Frames of unstarted turns.
    pub turns: Vec<FrameId>,
    /// Handles of unstarted activities.
    pub activities: Vec<u32>,
}

#[derive(Debug, Default)]
struct State {
    turns: VecDeque<Activation>,
    activities: VecDeque<Job>,
    aborts: Vec<Abort>,
    evict: Vec<FrameId>,
    /// A frame to forget may have something running.
    is_urgent: bool,
    closed: bool,
    /// So many calls that hand answers out are under way: what they add is nobody's before they end.
    attended: usize,
    /// So many callers of [`Outbox::next`] wait. Without one a batch may be on its way, and what comes after it must not overtake it.
    waiting: usize,
}

impl State {
    /// Whether JavaScript is to hear of something soon.
    fn is_waited_for(&self) -> bool {
        let work = !(self.turns.is_empty() && self.activities.is_empty() && self.aborts.is_empty());
        work || self.is_urgent || self.evict.len() >= EVICT_ALONE
    }
}

/// What one batch carries.
#[derive(Debug)]
struct Batch {
    turns: Vec<Activation>,
    activities: Vec<Job>,
    aborts: Vec<Abort>,
    evict: Vec<FrameId>,
    /// About how long its text is.
    bytes: usize,
}

impl Batch {
    /// Its JSON text.
    fn text(&self) -> String {
        let proof = "payloads are JSON and keys are strings";
        let mut text = Vec::with_capacity(self.bytes + 128);
        text.extend_from_slice(b"{\"turns\":");
        serde_json::to_writer(&mut text, &self.turns).expect(proof);
        text.extend_from_slice(b",\"activities\":[");
        for (at, job) in self.activities.iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"" } else { b"," });
            text.extend_from_slice(job.text.as_bytes());
        }
        text.extend_from_slice(b"],\"aborts\":");
        serde_json::to_writer(&mut text, &self.aborts).expect(proof);
        text.extend_from_slice(b",\"evict\":");
        serde_json::to_writer(&mut text, &self.evict).expect(proof);
        text.push(b'}');
        String::from_utf8(text).expect("all of it was text")
    }
}

/// Says whether something may be started at this moment.
type Gate = Box<dyn Fn() -> bool + Send + Sync>;

/// The outbox of one runtime.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    ready: Notify,
    /// Asked at the last moment before work is handed out; none is always open.
    gate: Option<Gate>,
}

/// A batch ends at about this many bytes of JSON: past it one crossing blocks the JavaScript loop for too long.
const BATCH_BYTES: usize = 64 * 1024;

/// Frames to forget ride with other work; a quiet runtime lets go of memory once this many have gathered.
const EVICT_ALONE: usize = 64;

impl Outbox {
    /// An outbox that hands out work only while its gate is open. Abort signals always pass.
    pub fn guarded(gate: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { gate: Some(Box::new(gate)), ..Self::default() }
    }

    /// The gate may be open again.
    pub fn nudge(&self) {
        self.ready.notify_one();
    }

    /// Adds turns and activities at once, so that one crossing can take them together.
    pub fn push(&self, turns: Vec<Activation>, activities: Vec<Job>) {
        if turns.is_empty() && activities.is_empty() {
            return;
        }
        let mut state = self.lock();
        state.turns.extend(turns);
        state.activities.extend(activities);
        self.tell(state);
    }

    /// Tells a running activity to stop.
    pub fn abort(&self, h: u32, reason: AbortReason) {
        let mut state = self.lock();
        state.aborts.push(Abort { h, reason });
        self.tell(state);
    }

    /// Frames to forget; they ride with the next batch.
    pub fn evict(&self, frames: impl IntoIterator<Item = FrameId>) {
        let mut state = self.lock();
        state.evict.extend(frames);
        if state.evict.len() >= EVICT_ALONE {
            self.tell(state);
        }
    }

    /// Forgets a frame whose turn is not wanted any more, with its activation if that has not started. JavaScript hears of it
    /// at once: a step of it may be running.
    pub fn forget(&self, frame: FrameId) {
        let mut state = self.lock();
        state.turns.retain(|activation| activation.frame != frame);
        state.evict.push(frame);
        state.is_urgent = true;
        self.tell(state);
    }

    /// The next batch of at most `max` turns and activities; `None` once the outbox is closed. The caller waits from the call on,
    /// not only from the first poll. Dropping the future loses nothing.
    pub fn next(self: &Arc<Self>, max: usize) -> impl Future<Output = Option<Pulled>> + Send + use<> {
        let mut waiting = Waiting::begin(self);
        async move {
            loop {
                if let Some(ended) = waiting.try_end(max.max(1)) {
                    return ended;
                }
                waiting.outbox.ready.notified().await;
            }
        }
    }

    /// Does something that may add work, of which JavaScript hears nothing before it is done; then takes at most `max` turns and
    /// activities of what is there, while somebody waits for them in [`Outbox::next`].
    pub fn after(&self, max: usize, work: impl FnOnce()) -> Option<Pulled> {
        self.lock().attended += 1;
        let _attending = Attending(self);
        work();
        let mut state = self.lock();
        if max == 0 || state.closed || state.waiting == 0 { None } else { self.pull(&mut state, max) }
    }

    /// Something was added.
    fn tell(&self, state: MutexGuard<'_, State>) {
        let attended = state.attended > 0;
        drop(state);
        if !attended {
            self.ready.notify_one();
        }
    }

    fn pull(&self, state: &mut State, max: usize) -> Option<Pulled> {
        let open = self.gate.as_ref().is_none_or(|gate| gate());
        let batch = take(state, if open { max } else { 0 })?;
        let activities = batch.activities.iter().map(|job| job.h).collect();
        Some(Pulled { text: batch.text(), activities })
    }

    /// What has not started, left where it is.
    pub fn unstarted(&self) -> Unstarted {
        let state = self.lock();
        Unstarted {
            turns: state.turns.iter().map(|activation| activation.frame).collect(),
            activities: state.activities.iter().map(|job| job.h).collect(),
        }
    }

    /// Takes back everything that has not started.
    pub fn drain(&self) -> Unstarted {
        let mut state = self.lock();
        Unstarted {
            turns: state.turns.drain(..).map(|activation| activation.frame).collect(),
            activities: state.activities.drain(..).map(|job| job.h).collect(),
        }
    }

    /// Takes one activity back, if it has not started.
    pub fn withdraw(&self, h: u32) -> bool {
        let mut state = self.lock();
        let before = state.activities.len();
        state.activities.retain(|job| job.h != h);
        state.activities.len() < before
    }

    /// No more batches: JavaScript's pull loop ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits for a batch, until it is taken for him.
struct Waiting {
    outbox: Arc<Outbox>,
    over: bool,
}

impl Waiting {
    fn begin(outbox: &Arc<Outbox>) -> Self {
        outbox.lock().waiting += 1;
        Self { outbox: Arc::clone(outbox), over: false }
    }

    /// What the waiting ends with, if it does now. From then on nobody waits here: what comes later must not overtake it.
    fn try_end(&mut self, max: usize) -> Option<Option<Pulled>> {
        let outbox = Arc::clone(&self.outbox);
        let mut state = outbox.lock();
        let closed = state.closed && state.aborts.is_empty();
        let pulled = if closed || state.attended > 0 { None } else { outbox.pull(&mut state, max) };
        if !closed && pulled.is_none() {
            return None;
        }
        state.waiting -= 1;
        self.over = true;
        drop(state);
        if closed {
            // Every caller is to hear of the end, and one notice wakes one of them.
            outbox.ready.notify_one();
        }
        Some(pulled)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over {
            self.outbox.lock().waiting -= 1;
        }
    }
}

/// Somebody takes what is there; what is left then is the next caller's.
struct Attending<'a>(&'a Outbox);

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.attended -= 1;
        if state.is_waited_for() {
            self.0.tell(state);
        }
    }
}

/// A batch of at most `max` turns and activities; with none only abort signals and frames to forget.
fn take(state: &mut State, max: usize) -> Option<Batch> {
    let work = max > 0 && !(state.turns.is_empty() && state.activities.is_empty());
    let quiet = !work && state.aborts.is_empty();
    if quiet && state.evict.len() < EVICT_ALONE && !state.is_urgent {
        return None;
    }
    state.is_urgent = false;
    let mut batch = Batch {
        turns: Vec::new(),
        activities: Vec::new(),
        aborts: std::mem::take(&mut state.aborts),
        evict: std::mem::take(&mut state.evict),
        bytes: 0,
    };
    let mut left = max;
    while left > 0 && batch.bytes < BATCH_BYTES {
        let Some(activation) = state.turns.pop_front() else { break };
        batch.bytes += weigh(&activation);
        left -= 1;
        batch.turns.push(activation);
    }
    while left > 0 && batch.bytes < BATCH_BYTES {
        let Some(job) = state.activities.pop_front() else { break };
        batch.bytes += job.text.len();
        left -= 1;
        batch.activities.push(job);
    }
    Some(batch)
}

fn weigh(activation: &Activation) -> usize {
    let start = activation.start.as_ref().map_or(0, |start| start.input.as_str().len());
    // A fact's envelope is about 40 bytes.
    start + activation.facts.iter().map(|fact| 40 + payload_length(fact)).sum::<usize>()
}

fn payload_length(fact: &Fact) -> usize {
    match fact {
        Fact::Done { value: payload, .. }
        | Fact::Fail { error: payload, .. }
        | Fact::Event { data: payload, .. }
        | Fact::Queue { data: payload, .. } => payload.as_str().len(),
        Fact::Cancel { reason, .. } => reason.len(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use holdfast_replay::Payload;

    use super::*;

    /// A job of which only the handle and the input matter.
    fn job(h: u32, input: &str) -> Job {
        ActivityJob {
            h,
            name: "a \"name\"",
            input: serde_json::from_str(input).expect("JSON"),
            instance: "i",
            execution: 1,
            event: 2,
            orchestration: None,
            version: Some("1.0.0"),
            attempt: 1,
            delivery: 1,
            max_attempts: 1,
            tag: None,
            session: None,
            worker_id: "w",
            timeout_ms: None,
            heartbeat_timeout_ms: None,
            heartbeat: None,
        }
        .written()
    }

    #[tokio::test]
    async fn a_batch_is_one_json_text_with_inputs_as_they_are() {
        let outbox = Arc::new(Outbox::default());
        outbox.push(vec![turn(1, 1), turn(2, 1)], vec![job(3, "[1.50, \"\\u0000\"]"), job(4, "null")]);
        outbox.abort(5, AbortReason::Timeout);
        outbox.evict([FrameId(6)]);
        let pulled = outbox.next(64).await.expect("a batch");
        assert_eq!(pulled.activities, [3, 4]);
        assert!(pulled.text.contains("[1.50, \"\\u0000\"]"), "{}", pulled.text);
        let batch: serde_json::Value = serde_json::from_str(&pulled.text).expect("JSON");
        let handles = |of: &str| {
            batch[of].as_array().expect("a list").iter().map(|one| one["h"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            (handles("turns"), handles("activities"), handles("aborts")),
            (vec![1.into(), 2.into()], vec![3.into(), 4.into()], vec![5.into()])
        );
        assert_eq!(batch["evict"], serde_json::json!([6]));
        assert_eq!(batch["activities"][0]["name"], "a \"name\"");
        assert_eq!(
            (&batch["activities"][0]["maxAttempts"], &batch["activities"][0]["tag"]),
            (&1.into(), &serde_json::Value::Null)
        );
    }

    fn turn(frame: u32, length: usize) -> Activation {
        let value = Payload::of(&"x".repeat(length));
        let facts = vec![Fact::Done { at: 0, seq: 0, value }];
        Activation { frame: FrameId(frame), start: None, applied: 0, facts, replayed: 0, unleased: false }
    }

    #[tokio::test]
    async fn a_closed_gate_lets_only_abort_signals_out() {
        let outbox = Arc::new(Outbox::guarded(|| false));
        outbox.push(vec![turn(1, 1)], Vec::new());
        outbox.abort(7, AbortReason::Lost);
        let batch = outbox.next(64).await.expect("a batch").text;
        assert!(batch.contains(r#""turns":[]"#) && batch.contains(r#""reason":"lost""#), "{batch}");
        assert_eq!(outbox.drain().turns, [FrameId(1)], "it has not started");
    }

    #[tokio::test]
    async fn what_a_call_leaves_is_pulled_by_who_waits() {
        let outbox = Arc::new(Outbox::default());
        let waiting = Arc::clone(&outbox);
        let waiting = tokio::spawn(async move { waiting.next(64).await });
        tokio::task::yield_now().await;
        let taken = outbox.after(1, || {
            outbox.push(vec![turn(1, 1), turn(2, 1)], Vec::new());
            assert!(outbox.next(1).now_or_never().is_none(), "nobody has it before the call is done");
        });
        assert!(taken.expect("a batch").text.contains("{\"h\":1,"));
        let left = waiting.await.expect("no panic").expect("a batch").text;
        assert!(left.contains("{\"h\":2,") && !left.contains("{\"h\":1,"), "{left}");
        let next = outbox.next(1);
        let mut next = std::pin::pin!(next);
        assert!((&mut next).now_or_never().is_none());
        assert!(outbox.after(1, || ()).is_none(), "nothing came");
        assert!(outbox.after(0, || outbox.abort(7, AbortReason::Lost)).is_none(), "nothing was wanted");
        assert!(outbox.next(1).await.expect("a batch").text.contains(r#""reason":"lost""#));
    }

    #[tokio::test]
    async fn who_asks_waits_from_the_call_on() {
        let outbox = Arc::new(Outbox::default());
        let next = outbox.next(1);
        let add = || outbox.push(vec![turn(1, 1), turn(2, 1)], Vec::new());
        assert!(
            outbox.after(1, add).expect("a batch").text.contains("{\"h\":1,"),
            "nothing has polled it yet"
        );
        assert!(next.await.expect("a batch").text.contains("{\"h\":2,"));
        drop(outbox.next(1));
        assert!(outbox.after(1, || outbox.abort(7, AbortReason::Lost)).is_none(), "nobody waits any more");
    }

    #[tokio::test]
    async fn nothing_overtakes_a_batch_that_is_on_its_way() {
        let outbox = Arc::new(Outbox::default());
        outbox.push(vec![turn(1, 1)], Vec::new());
        outbox.next(64).await.expect("a batch");
        let abort = || outbox.abort(7, AbortReason::Cancelled);
        assert!(outbox.after(64, abort).is_none(), "it may be for what is in the batch before");
        assert!(outbox.next(64).await.expect("a batch").text.contains(r#""reason":"cancelled""#));
    }

    #[tokio::test]
    async fn what_a_call_adds_before_it_panics_is_pulled_by_who_waits() {
        let outbox = Arc::new(Outbox::default());
        let work = || {
            outbox.push(vec![turn(1, 1)], Vec::new());
            panic!("on purpose");
        };
        let call = std::panic::AssertUnwindSafe(|| outbox.after(1, work));
        assert!(std::panic::catch_unwind(call).is_err());
        assert!(outbox.next(1).await.expect("a batch").text.contains("{\"h\":1,"));
    }

    #[tokio::test]
    async fn a_batch_ends_with_the_item_that_makes_it_large() {
        let outbox = Arc::new(Outbox::default());
        outbox.push(
            (1..=4).map(|frame| turn(frame, if frame == 4 { 1 } else { BATCH_BYTES })).collect(),
            Vec::new(),
        );
        for frame in 1..=4 {
            let batch = outbox.next(64).await.expect("a batch");
            assert!(batch.text.contains(&format!("{{\"h\":{frame},")), "frame {frame} comes alone");
            assert_eq!(batch.text.matches("\"h\":").count(), 1, "one turn in a batch");
        }
    }
}
