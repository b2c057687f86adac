//! Turns in progress: from their claim until they are settled. Also keeps the live frames between turns.
//!
//! Invariant: at most one flight for each instance, so no instance runs twice in one process.

use std::collections::HashMap;

use holdfast_replay::{Execution, FrameId};

use crate::{
    store::{Fence, NodeKey, turn::ClaimedTurn},
    turn::{FrameCache, LiveFrame, Proof},
};

/// One turn in progress.
#[derive(Debug)]
pub(crate) struct Flight {
    /// As claimed; the fence changes when the turn is adopted under a new lease.
    pub(crate) claimed: ClaimedTurn,
    /// Node and epoch that hold the lease.
    pub(crate) node: NodeKey,
    /// The version that runs.
    pub(crate) version: String,
    /// Claimed alone.
    pub(crate) isolated: bool,
    /// Its frame.
    pub(crate) frame: FrameId,
    /// Its execution; absent while its result is being committed.
    pub(crate) execution: Option<Execution>,
    /// Inbox rows that its commit deletes.
    pub(crate) consumed: Vec<i64>,
    /// A commit of it was refused before.
    pub(crate) refused: bool,
}

/// All turns in progress and the live frames of one runtime.
#[derive(Debug)]
pub(crate) struct TurnTable {
    flights: HashMap<String, Flight>,
    frames: HashMap<FrameId, String>,
    cache: FrameCache,
    next_frame: u32,
}

impl TurnTable {
    pub(crate) fn new(cache: FrameCache) -> Self {
        Self { flights: HashMap::new(), frames: HashMap::new(), cache, next_frame: 1 }
    }

    /// Turns in progress.
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Whether a turn that was claimed alone is in progress.
    pub(crate) fn isolated(&self) -> bool {
        self.flights.values().any(|flight| flight.isolated)
    }

    /// A turn of this instance that is still running here goes on under the new fence.
    pub(crate) fn adopt(&mut self, claimed: &ClaimedTurn, node: &NodeKey) -> Option<Fence> {
        let flight = self.flights.get_mut(&claimed.instance)?;
        let old = flight.claimed.fence;
        flight.claimed.fence = claimed.fence;
        flight.node = node.clone();
        Some(old)
    }

    /// The live frame that fits a claim. A frame that does not fit is returned as evicted.
    pub(crate) fn take_live(&mut self, claimed: &ClaimedTurn) -> Result<Option<LiveFrame>, FrameId> {
        let proof = Proof {
            execution: claimed.execution,
            history_len: claimed.history_len,
            last_fence: claimed.last_fence,
        };
        self.cache.take(&claimed.instance, proof)
    }

    /// A frame id that was not used before in this runtime.
    pub(crate) fn new_frame(&mut self) -> FrameId {
        let frame = FrameId(self.next_frame);
        self.next_frame = self.next_frame.wrapping_add(1).max(1);
        frame
    }

    pub(crate) fn insert(&mut self, flight: Flight) {
        self.frames.insert(flight.frame, flight.claimed.instance.clone());
        self.flights.insert(flight.claimed.instance.clone(), flight);
    }

    /// The flight whose frame answers.
    pub(crate) fn by_frame(&mut self, frame: FrameId) -> Option<&mut Flight> {
        let instance = self.frames.get(&frame)?;
        self.flights.get_mut(instance)
    }

    /// The execution is back from making its activation and waits for the answer.
    pub(crate) fn give_execution(&mut self, instance: &str, execution: Execution) {
        if let Some(flight) = self.flights.get_mut(instance) {
            flight.execution = Some(execution);
        }
    }

    /// Instances in progress.
    pub(crate) fn instances(&self) -> Vec<String> {
        self.flights.keys().cloned().collect()
    }

    pub(crate) fn remove(&mut self, instance: &str) -> Option<Flight> {
        let flight = self.flights.remove(instance)?;
        self.frames.remove(&flight.frame);
        Some(flight)
    }

    /// Keeps a frame after its turn was settled; returns the frames that had to go.
    pub(crate) fn keep(&mut self, instance: String, live: LiveFrame) -> Vec<FrameId> {
        self.cache.put(instance, live)
    }

    /// Drops every live frame.
    pub(crate) fn drop_live(&mut self) -> Vec<FrameId> {
        self.cache.clear()
    }
}
