//! Live frames kept between turns: bounded by count and bytes, least recently used first out.
//!
//! A frame is used only when execution, history length and last fence are those that its last commit left behind;
//! otherwise it is dropped and the instance is replayed. It never talks to the database or to JavaScript.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use holdfast_replay::{Execution, FrameId};

use crate::{
    clock,
    store::{Fence, NodeKey, turn::ClaimedTurn},
};

/// What must be equal for a frame to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Execution of the instance.
    pub(crate) execution: i64,
    /// Events recorded.
    pub(crate) history_len: i32,
    /// Fence of the last settled turn.
    pub(crate) last_fence: Fence,
}

/// A live frame.
#[derive(Debug)]
pub(crate) struct LiveFrame {
    /// Its id in JavaScript.
    pub(crate) frame: FrameId,
    /// Its execution as Rust sees it.
    pub(crate) execution: Box<Execution>,
    /// What its last commit left behind.
    pub(crate) proof: Proof,
    /// The next turn, if it begins here before anybody claims the instance.
    pub(crate) next: Option<Box<Next>>,
}

/// A turn that may begin without a claim: its row has this fence and no owner, until somebody claims it.
#[derive(Debug)]
pub(crate) struct Next {
    /// As a claim would have brought it; `now_ms` is the database's time at `since`.
    pub(crate) claimed: ClaimedTurn,
    /// Who settled the last turn.
    pub(crate) node: NodeKey,
    /// The version that runs.
    pub(crate) version: String,
    /// When the last turn was settled.
    pub(crate) since: Instant,
}

#[derive(Debug)]
struct Entry {
    live: LiveFrame,
    bytes: usize,
    used: u64,
}

/// The frames of one runtime.
#[derive(Debug)]
pub(crate) struct FrameCache {
    max_frames: usize,
    max_bytes: usize,
    /// Of a hundred frames, how many are forgotten at once; only tests forget any.
    forgets_percent: u64,
    bytes: usize,
    tick: u64,
    frames: HashMap<String, Entry>,
    order: BTreeMap<u64, String>,
}

impl FrameCache {
    /// An empty cache.
    pub(crate) fn new(max_frames: usize, max_bytes: usize) -> Self {
        Self {
            max_frames,
            max_bytes,
            forgets_percent: 0,
            bytes: 0,
            tick: 0,
            frames: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// The same cache, forgetting some frames by chance.
    pub(crate) fn forgetting(self, forgets_percent: u64) -> Self {
        Self { forgets_percent, ..self }
    }

    /// Takes the frame of an instance out. `Err` is a frame that does not fit the proof and must be evicted.
    pub(crate) fn take(&mut self, instance: &str, proof: Proof) -> Result<Option<LiveFrame>, FrameId> {
        match self.remove(instance) {
            None => Ok(None),
            Some(live) if live.proof == proof => Ok(Some(live)),
            Some(live) => Err(live.frame),
        }
    }

    /// Takes the frame of an instance out whose next turn may begin here.
    pub(crate) fn take_next(&mut self, instance: &str, execution: i64) -> Option<LiveFrame> {
        let live = &self.frames.get(instance)?.live;
        let begins = live.next.is_some() && live.proof.execution == execution;
        if begins { self.remove(instance) } else { None }
    }

    /// Takes the frame of an instance out, whatever it proves.
    pub(crate) fn take_out(&mut self, instance: &str) -> Option<LiveFrame> {
        self.remove(instance)
    }

    /// Whether the last turn of this instance was settled here so short a time ago, and its next one may begin here.
    pub(crate) fn settled_within(&self, instance: &str, time: Duration) -> bool {
        let next = self.frames.get(instance).and_then(|entry| entry.live.next.as_ref());
        next.is_some_and(|next| clock::since(next.since) < time)
    }

    /// Whether a frame of this instance is kept.
    pub(crate) fn contains(&self, instance: &str) -> bool {
        self.frames.contains_key(instance)
    }

    /// Keeps a frame; returns the frames that had to go for it (itself, when it does not fit at all).
    pub(crate) fn put(&mut self, instance: String, live: LiveFrame) -> Vec<FrameId> {
        let mut evicted: Vec<FrameId> = self.remove(&instance).map(|old| old.frame).into_iter().collect();
        let bytes = live.execution.history_bytes();
        // Fences are spread well enough by a multiplication, and each turn has another.
        let chance = live.proof.last_fence.0.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if self.max_frames == 0 || bytes > self.max_bytes || chance % 100 < self.forgets_percent {
            evicted.push(live.frame);
            return evicted;
        }
        self.tick += 1;
        self.bytes += bytes;
        self.order.insert(self.tick, instance.clone());
        self.frames.insert(instance, Entry { live, bytes, used: self.tick });
        while self.frames.len() > self.max_frames || self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(entry) = self.frames.remove(&oldest) {
                self.bytes -= entry.bytes;
                evicted.push(entry.live.frame);
            }
        }
        evicted
    }

    /// Empties the cache.
    pub(crate) fn clear(&mut self) -> Vec<FrameId> {
        self.bytes = 0;
        let oldest_first = std::mem::take(&mut self.order).into_values();
        oldest_first
            .filter_map(|instance| self.frames.remove(&instance))
            .map(|entry| entry.live.frame)
            .collect()
    }

    fn remove(&mut self, instance: &str) -> Option<LiveFrame> {
        let entry = self.frames.remove(instance)?;
        self.order.remove(&entry.used);
        self.bytes -= entry.bytes;
        Some(entry.live)
    }
}
