//! Turns in progress: from their claim until they are settled. Also keeps the live frames between turns.
//!
//! Invariant: at most one flight for each instance, so no instance runs twice in one process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, Instant},
};

use holdfast_replay::{Execution, FrameId};

use crate::{
    clock,
    lease::Adoption,
    limits,
    store::{ActivityKey, Fence, NodeKey, commit::BelatedActivity, turn::ClaimedTurn},
    turn::{FrameCache, LiveFrame, Proof, kept::KeptLeases},
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
    /// It runs under a lease.
    pub(crate) leased: bool,
    /// When it was handed over.
    pub(crate) since: Instant,
    /// Its frame.
    pub(crate) frame: FrameId,
    /// Since when its result is being committed.
    pub(crate) settles_since: Option<Instant>,
    /// Its execution; absent while its result is being committed.
    pub(crate) execution: Option<Box<Execution>>,
    /// Inbox rows that its commit deletes.
    pub(crate) consumed: Vec<i64>,
    /// Activities whose results it was given before they were committed, by scheduling event.
    pub(crate) results: Vec<i32>,
    /// They ran for a moment only.
    pub(crate) short: bool,
    /// Activities that get their rows with its commit.
    pub(crate) belated: Vec<BelatedActivity>,
    /// Those of them whose bodies run.
    pub(crate) moving: Vec<ActivityKey>,
    /// A commit of it was refused before.
    pub(crate) refused: bool,
    /// A lease that was claimed while this turn was being settled; it goes back once that is known.
    pub(crate) waiting: Option<Fence>,
}

impl Flight {
    /// A turn that begins now, under a lease.
    pub(crate) fn new(claimed: ClaimedTurn, node: NodeKey, version: String, frame: FrameId) -> Self {
        Self {
            claimed,
            node,
            version,
            isolated: false,
            leased: true,
            since: clock::now(),
            frame,
            settles_since: None,
            execution: None,
            consumed: Vec::new(),
            results: Vec::new(),
            short: false,
            belated: Vec::new(),
            moving: Vec::new(),
            refused: false,
            waiting: None,
        }
    }

    /// It began without a claim.
    pub(crate) fn is_local(&self) -> bool {
        !self.results.is_empty()
    }
}

/// All turns in progress and the live frames of one runtime.
#[derive(Debug)]
pub(crate) struct TurnTable {
    pub(super) flights: BTreeMap<String, Box<Flight>>,
    /// How many of them began without a claim.
    local: usize,
    /// How many of them were claimed alone.
    alone: usize,
    /// None of them settles for longer than since then.
    settling: Option<Instant>,
    /// Orchestrations of which every turn is claimed; they are registered, so there are few.
    claimed_always: BTreeSet<String>,
    frames: HashMap<FrameId, String>,
    pub(super) cache: FrameCache,
    next_frame: u32,
    /// Leases that go on between turns.
    pub(super) kept: KeptLeases,
}

impl TurnTable {
    pub(crate) fn new(cache: FrameCache, kept: KeptLeases) -> Self {
        Self {
            flights: BTreeMap::new(),
            local: 0,
            alone: 0,
            settling: None,
            claimed_always: BTreeSet::new(),
            frames: HashMap::new(),
            cache,
            next_frame: 1,
            kept,
        }
    }

    /// Turns in progress.
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// The result of a turn goes to the committer.
    pub(crate) fn settles(&mut self, instance: &str, now: Instant) {
        if let Some(flight) = self.flights.get_mut(instance) {
            flight.settles_since.get_or_insert(now);
            self.settling.get_or_insert(now);
        }
    }

    /// Turns in progress that hold a slot: all but one that was claimed alone, which runs beside them, and those whose commit
    /// takes long.
    pub(crate) fn holding(&mut self, now: Instant) -> usize {
        let slow = |since: Instant| now.saturating_duration_since(since) >= limits::SLOW_COMMIT;
        if !self.settling.is_some_and(slow) {
            return self.flights.len() - self.alone;
        }
        self.settling = self.flights().filter_map(|flight| flight.settles_since).min();
        let holds = |flight: &&Flight| !flight.isolated && !flight.settles_since.is_some_and(slow);
        self.flights().filter(holds).count()
    }

    /// How long until the next turn holds no slot any more because its commit takes long.
    pub(crate) fn until_slow(&self, now: Instant) -> Option<Duration> {
        let left = |since: Instant| (since + limits::SLOW_COMMIT).saturating_duration_since(now);
        let coming = self.flights().filter_map(|flight| flight.settles_since).map(left);
        coming.filter(|left| !left.is_zero()).min()
    }

    /// How long ago the last turn was handed over that is in progress.
    pub(crate) fn youngest(&self, now: Instant) -> Option<Duration> {
        self.flights().map(|flight| now.saturating_duration_since(flight.since)).min()
    }

    /// Whether a turn that was claimed alone is in progress.
    pub(crate) fn isolated(&self) -> bool {
        self.alone > 0
    }

    /// A claim of an instance whose turn is still in progress here.
    pub(crate) fn adopt(&mut self, claimed: &ClaimedTurn, node: &NodeKey) -> Option<Adoption> {
        let flight = self.flights.get_mut(&claimed.instance)?;
        // What an instance that was deleted and started again had begun is not what this one begins.
        let same = flight.claimed.name == claimed.name && flight.claimed.start == claimed.start;
        // Activities that run under the lease that is over are not this one's.
        let kept = self.kept.contains(&claimed.instance);
        if flight.execution.is_none() || !same || kept || proof(&flight.claimed) != proof(claimed) {
            return Some(Adoption::Waits { ended: flight.waiting.replace(claimed.fence) });
        }
        let ended = std::mem::replace(&mut flight.claimed.fence, claimed.fence);
        flight.node = node.clone();
        Some(Adoption::GoesOn { ended })
    }

    /// The live frame that fits a claim. A frame that does not fit is returned as evicted.
    pub(crate) fn take_live(&mut self, claimed: &ClaimedTurn) -> Result<Option<LiveFrame>, FrameId> {
        self.cache.take(&claimed.instance, proof(claimed))
    }

    /// Turns in progress that were claimed.
    pub(crate) fn claimed(&self) -> usize {
        self.flights.len().saturating_sub(self.local)
    }

    /// From here on no turn of this orchestration begins without a claim.
    pub(crate) fn claim_always(&mut self, name: &str) {
        self.claimed_always.insert(name.to_owned());
    }

    /// Whether turns of this orchestration may begin without a claim.
    pub(crate) fn may_begin(&self, name: &str) -> bool {
        !self.claimed_always.contains(name)
    }

    /// A frame id that was not used before in this runtime.
    pub(crate) fn new_frame(&mut self) -> FrameId {
        let frame = FrameId(self.next_frame);
        self.next_frame = self.next_frame.wrapping_add(1).max(1);
        frame
    }

    pub(crate) fn insert(&mut self, flight: Flight) {
        self.frames.insert(flight.frame, flight.claimed.instance.clone());
        self.local += usize::from(flight.is_local());
        self.alone += usize::from(flight.isolated);
        if let Some(old) = self.flights.insert(flight.claimed.instance.clone(), Box::new(flight)) {
            self.local -= usize::from(old.is_local());
            self.alone -= usize::from(old.isolated);
        }
    }

    /// The flight whose frame answers.
    pub(crate) fn by_frame(&mut self, frame: FrameId) -> Option<&mut Flight> {
        let instance = self.frames.get(&frame)?;
        self.flights.get_mut(instance).map(|flight| &mut **flight)
    }

    /// Whether its turns run here: one is in progress, or its frame is kept.
    pub(crate) fn knows(&self, instance: &str) -> bool {
        self.flights.contains_key(instance) || self.cache.contains(instance) || self.kept.contains(instance)
    }

    /// Whether a turn is in progress, or the last one ended a moment ago.
    pub(crate) fn is_under_way(&self, instance: &str) -> bool {
        self.flights.contains_key(instance)
            || self.kept.contains(instance)
            || self.cache.settled_within(instance, limits::UNDER_WAY)
    }

    /// The flight of an instance.
    pub(super) fn flight_mut(&mut self, instance: &str) -> Option<&mut Flight> {
        self.flights.get_mut(instance).map(|flight| &mut **flight)
    }

    /// The flight under this lease.
    pub(crate) fn by_fence(&self, fence: Fence) -> Option<&Flight> {
        self.flights().find(|flight| flight.claimed.fence == fence)
    }

    /// The flight of an instance.
    pub(crate) fn by_instance(&self, instance: &str) -> Option<&Flight> {
        self.flights.get(instance).map(|flight| &**flight)
    }

    /// The execution is back from making its activation and waits for the answer.
    pub(crate) fn give_execution(&mut self, instance: &str, execution: Box<Execution>) {
        if let Some(flight) = self.flights.get_mut(instance) {
            flight.execution = Some(execution);
        }
    }

    /// Frames whose answer is awaited, with their instances.
    pub(crate) fn awaited(&self) -> Vec<(FrameId, String)> {
        let awaited = self.flights.values().filter(|flight| flight.execution.is_some());
        awaited.map(|flight| (flight.frame, flight.claimed.instance.clone())).collect()
    }

    /// All turns in progress.
    pub(crate) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.flights.values().map(|flight| &**flight)
    }

    /// Instances in progress.
    pub(crate) fn instances(&self) -> Vec<String> {
        self.flights.keys().cloned().collect()
    }

    pub(crate) fn remove(&mut self, instance: &str) -> Option<Flight> {
        let flight = self.flights.remove(instance)?;
        self.frames.remove(&flight.frame);
        self.local -= usize::from(flight.is_local());
        self.alone -= usize::from(flight.isolated);
        Some(*flight)
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

/// What must be equal for two claims to be about the same state of an instance.
fn proof(claimed: &ClaimedTurn) -> Proof {
    Proof { execution: claimed.execution, history_len: claimed.history_len, last_fence: claimed.last_fence }
}

#[cfg(test)]
mod tests {
    use holdfast_replay::{Payload, StartInfo};

    use super::*;

    fn claimed(fence: i64, history_len: i32) -> ClaimedTurn {
        ClaimedTurn {
            instance: "i".to_owned(),
            fence: Fence(fence),
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

    fn node() -> NodeKey {
        NodeKey { id: "node".to_owned(), epoch: 1 }
    }

    fn table(running: bool) -> TurnTable {
        let start = StartInfo {
            name: "n".to_owned(),
            version: "1.0.0".to_owned(),
            input: Payload::null(),
            parent: None,
            seed: 0,
            carried: Vec::new(),
            values: Vec::new(),
            custom_status: None,
        };
        let mut table = TurnTable::new(FrameCache::new(1, 1), KeptLeases::lasting(Duration::ZERO));
        let frame = table.new_frame();
        table.insert(Flight {
            execution: running.then(|| Box::new(Execution::begin("i".to_owned(), 1, start, 0))),
            ..Flight::new(claimed(1, 0), node(), "1.0.0".to_owned(), frame)
        });
        table
    }

    #[test]
    fn a_running_turn_goes_on_under_the_new_lease() {
        let mut table = table(true);
        assert_eq!(table.adopt(&claimed(2, 0), &node()), Some(Adoption::GoesOn { ended: Fence(1) }));
        assert_eq!(table.remove("i").map(|flight| flight.claimed.fence), Some(Fence(2)));
    }

    #[test]
    fn a_lease_claimed_while_the_turn_is_being_settled_waits_and_is_not_forgotten() {
        let mut table = table(false);
        assert_eq!(table.adopt(&claimed(2, 3), &node()), Some(Adoption::Waits { ended: None }));
        assert_eq!(table.adopt(&claimed(3, 3), &node()), Some(Adoption::Waits { ended: Some(Fence(2)) }));
        let flight = table.remove("i").expect("in progress");
        assert_eq!((flight.claimed.fence, flight.waiting), (Fence(1), Some(Fence(3))));
    }

    #[test]
    fn a_running_turn_is_not_adopted_when_another_node_committed_meanwhile() {
        let mut table = table(true);
        assert_eq!(table.adopt(&claimed(2, 5), &node()), Some(Adoption::Waits { ended: None }));
    }

    #[test]
    fn a_turn_whose_commit_takes_long_holds_no_slot() {
        let mut table = table(false);
        let now = Instant::now();
        let slow = now + limits::SLOW_COMMIT;
        assert_eq!((table.holding(slow), table.until_slow(slow)), (1, None), "it runs");
        table.settles("i", now);
        table.settles("i", slow);
        assert_eq!((table.holding(now), table.until_slow(now)), (1, Some(limits::SLOW_COMMIT)));
        assert_eq!((table.holding(slow), table.until_slow(slow), table.len()), (0, None, 1));
        table.remove("i");
        assert_eq!((table.holding(slow), table.until_slow(now)), (0, None));
    }

    #[test]
    fn a_turn_that_was_claimed_alone_runs_beside_the_slots() {
        let mut table = table(true);
        let flight = table.remove("i").expect("in progress");
        table.insert(Flight { isolated: true, ..flight });
        assert_eq!((table.len(), table.holding(Instant::now()), table.isolated()), (1, 0, true));
        table.remove("i");
        assert_eq!((table.holding(Instant::now()), table.isolated()), (0, false));
    }

    #[test]
    fn an_instance_that_is_not_in_progress_is_fresh() {
        let mut table = table(true);
        table.remove("i");
        assert_eq!(table.adopt(&claimed(2, 0), &node()), None);
    }
}
