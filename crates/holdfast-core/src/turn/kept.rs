//! Leases that go on between turns: activities that a turn scheduled and this node runs have no row and run under it.
//!
//! It goes on for a moment only, because messages of others wait for its end. Then, or when a result went ahead to the inbox, an
//! activity goes back, or this node begins nothing any more, it is settled by a commit without events, which gives what still
//! runs its rows. A turn in progress ends it itself when it is committed. The table is told the time and does no I/O.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use holdfast_replay::FrameId;

use crate::{
    clock,
    store::{
        ActivityKey, Fence,
        commit::{BelatedActivity, TurnCommit},
        replay_version,
        turn::ClaimedTurn,
    },
    turn::{Flight, LiveFrame, Next, TurnTable},
};

/// A lease that goes on.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(super) execution: i64,
    fence: Fence,
    /// When its first turn began.
    since: Instant,
    /// The next turn; one that is in progress has it.
    pub(super) next: Option<Box<Next>>,
    /// Activities without a row whose results are not known to be recorded.
    pub(super) open: BTreeSet<i32>,
    /// Activities that went back: they get their rows.
    pub(super) back: Vec<BelatedActivity>,
    /// No turn keeps it any longer.
    pub(super) ends: bool,
}

impl Kept {
    /// The activities that have no row.
    fn keys(&self, instance: &str) -> Vec<ActivityKey> {
        self.open.iter().map(|event| key(instance, self.execution, *event)).collect()
    }
}

pub(super) fn key(instance: &str, execution: i64, event: i32) -> ActivityKey {
    ActivityKey { instance: instance.to_owned(), execution, event }
}

/// All of them, by instance.
#[derive(Debug)]
pub(crate) struct KeptLeases {
    /// How long each goes on.
    lasts: Duration,
    pub(super) leases: HashMap<String, Kept>,
    /// When each began that goes on for long enough some time.
    began: BTreeSet<(Instant, String)>,
}

impl KeptLeases {
    /// None yet; each will go on for so long at most.
    pub(crate) fn lasting(lasts: Duration) -> Self {
        Self { lasts, leases: HashMap::new(), began: BTreeSet::new() }
    }

    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }

    pub(crate) fn contains(&self, instance: &str) -> bool {
        self.leases.contains_key(instance)
    }

    /// Takes the next turn of an instance out, which begins; false when it does not begin under this lease.
    pub(crate) fn take_next(&mut self, instance: &str, execution: i64) -> Option<Box<Next>> {
        let kept = self.leases.get_mut(instance).filter(|kept| kept.execution == execution && !kept.ends)?;
        kept.next.take()
    }

    /// It did not begin.
    pub(crate) fn put_next(&mut self, instance: &str, next: Box<Next>) {
        if let Some(kept) = self.leases.get_mut(instance) {
            kept.next = Some(next);
        }
    }

    /// Ends one, whatever it is for.
    pub(crate) fn remove(&mut self, instance: &str) -> Option<(Fence, Vec<ActivityKey>)> {
        let kept = self.take(instance)?;
        Some((kept.fence, kept.keys(instance)))
    }

    /// The same, with all that is known of it.
    pub(super) fn take(&mut self, instance: &str) -> Option<Kept> {
        let (instance, kept) = self.leases.remove_entry(instance)?;
        self.began.remove(&(kept.since, instance));
        Some(kept)
    }

    /// The instance of a lease.
    pub(crate) fn by_fence(&self, fence: Fence) -> Option<&str> {
        self.leases.iter().find(|(_, kept)| kept.fence == fence).map(|(instance, _)| instance.as_str())
    }

    pub(crate) fn fences(&self) -> impl Iterator<Item = Fence> {
        self.leases.values().map(|kept| kept.fence)
    }

    /// Ends all.
    pub(crate) fn clear(&mut self) -> Vec<Fence> {
        self.began.clear();
        self.leases.drain().map(|(_, kept)| kept.fence).collect()
    }

    /// Instances of which no turn is in progress.
    pub(crate) fn idle(&self) -> Vec<String> {
        let idle = self.leases.iter().filter(|(_, kept)| kept.next.is_some());
        idle.map(|(instance, _)| instance.clone()).collect()
    }

    /// The activities of `commit` and of turns before it that have no row when it is written.
    pub(super) fn open_after<'a>(&'a self, commit: &'a TurnCommit) -> impl Iterator<Item = i32> + 'a {
        let open = self.leases.get(&commit.instance).into_iter().flat_map(|kept| &kept.open);
        let over =
            |event: &i32| commit.results.contains(event) || commit.cancelled_activities.contains(event);
        open.copied().filter(move |event| !over(event))
    }

    /// When a lease began that goes on, and whether it is to end.
    pub(super) fn standing(&self, instance: &str) -> Option<(Instant, bool)> {
        self.leases.get(instance).map(|kept| (kept.since, kept.ends))
    }

    /// The turn of a flight was committed, with so many events up to it and at that time, and its lease goes on, for these
    /// activities beside those of turns before it. True: it is to end at once.
    pub(crate) fn keep(
        &mut self,
        flight: Flight,
        history_len: i32,
        now_ms: i64,
        events: &[i32],
        cancelled: &[i32],
    ) -> bool {
        let Flight { claimed, node, version, since, results, .. } = flight;
        let kept = self.leases.entry(claimed.instance.clone()).or_insert_with(|| {
            self.began.insert((since, claimed.instance.clone()));
            Kept {
                execution: claimed.execution,
                fence: claimed.fence,
                since,
                next: None,
                open: BTreeSet::new(),
                back: Vec::new(),
                ends: false,
            }
        });
        let over = |event: i32| results.contains(&event) || cancelled.contains(&event);
        kept.open.retain(|event| !over(*event));
        kept.back.retain(|row| !over(row.task.event));
        kept.open.extend(events);
        let claimed = ClaimedTurn {
            version: Some(version.clone()),
            history_len,
            replay_version: Some(replay_version::current()),
            start: None,
            now_ms,
            ..claimed
        };
        kept.next = Some(Box::new(Next { claimed, node, version, since: clock::now() }));
        kept.ends
    }

    /// An instance was leased here again when its turn was settled: its next turn begins under that lease.
    pub(crate) fn retake(&mut self, instance: &str, next: Box<Next>) {
        let since = clock::now();
        self.began.insert((since, instance.to_owned()));
        let kept = Kept {
            execution: next.claimed.execution,
            fence: next.claimed.fence,
            since,
            next: Some(next),
            open: BTreeSet::new(),
            back: Vec::new(),
            ends: false,
        };
        self.leases.insert(instance.to_owned(), kept);
    }

    /// How long until the next lease is to end.
    pub(super) fn until_over(&self, now: Instant) -> Option<Duration> {
        let (began, _) = self.began.first()?;
        Some((*began + self.lasts).saturating_duration_since(now))
    }

    /// Leases that go on for long enough: no turn keeps them any longer.
    pub(super) fn take_over(&mut self, now: Instant) -> Vec<String> {
        let mut over = Vec::new();
        while self.until_over(now).is_some_and(|left| left.is_zero()) {
            let Some((_, instance)) = self.began.pop_first() else { break };
            if let Some(kept) = self.leases.get_mut(&instance) {
                kept.ends = true;
                over.push(instance);
            }
        }
        over
    }
}

impl TurnTable {
    /// The live frame of an instance without a turn in progress, when its next turn may begin without a claim, and whether that
    /// is under a lease that goes on.
    pub(crate) fn take_next(&mut self, instance: &str, execution: i64) -> Option<(LiveFrame, bool)> {
        if self.flights.contains_key(instance) {
            return None;
        }
        if !self.kept.contains(instance) {
            return self.cache.take_next(instance, execution).map(|live| (live, false));
        }
        let next = self.cache.contains(instance).then(|| self.kept.take_next(instance, execution))??;
        let live = self.cache.take_out(instance)?;
        Some((LiveFrame { next: Some(next), ..live }, true))
    }

    /// The turn that was to follow does not begin.
    pub(crate) fn keep_next(&mut self, instance: &str, live: LiveFrame, leased: bool) -> Vec<FrameId> {
        let live = match live {
            LiveFrame { next: Some(next), .. } if leased => {
                self.kept.put_next(instance, next);
                LiveFrame { next: None, ..live }
            }
            live => live,
        };
        self.keep(instance.to_owned(), live)
    }

    /// The live frame of an instance, whatever it is kept for.
    pub(super) fn take_frame(&mut self, instance: &str) -> Option<LiveFrame> {
        self.cache.take_out(instance)
    }
}
