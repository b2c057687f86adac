//! The hints of one provider: what happens here wakes the runtimes and waiters of this process, and those of others by a
//! hint; what a hub hears wakes those of this one.
//!
//! A hint is never the truth. While a hub listens, polls are rarer; whenever it begins to, everything is looked at once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::json;
use tokio::runtime::Handle;

use crate::{
    notify::{
        Wakes,
        hub::{HubState, Subscriber},
        hubs::{HubLease, Hubs, Opening},
        local::{LocalSlots, leaves},
        proof::Proof,
        sender::{Hint, HintSender},
    },
    pool::Pool,
    store::{
        Statements, Store,
        commit::{ActivityOutcome, CommitItem},
        notify::channel,
    },
    telemetry::{Counters, Events, Level, unit},
};

/// Whether a runtime listens for work of other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListenerMode {
    /// Each process has a listener.
    #[default]
    Each,
    /// One process of all has one; the others poll.
    Elected,
    /// None here.
    Off,
}

/// The hints of one provider.
pub struct Hints {
    wakes: Arc<Wakes>,
    events: Arc<Events>,
    counters: Arc<Counters>,
    sender: HintSender,
    opening: Opening,
    channel: String,
    /// What it sends is marked with it.
    id: u64,
    hubs: Arc<Hubs>,
    listening: AtomicBool,
    state: Mutex<State>,
    /// Held while a hub is leased and given back; no callback of a hub takes it.
    lease: Mutex<Option<HubLease>>,
}

#[derive(Default)]
struct State {
    users: BTreeMap<u64, Use>,
    next_ticket: u64,
    local: Vec<Weak<dyn LocalSlots>>,
    proof: Proof,
    hub: Option<HubState>,
}

/// Who wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Runtime(ListenerMode),
    Waiters,
}

impl Hints {
    /// Starts the sender on the current tokio runtime, where hubs will run as well.
    pub fn start(
        pool: &Arc<Pool>,
        statements: &Arc<Statements>,
        store: &Arc<dyn Store>,
        wakes: &Arc<Wakes>,
        (counters, events): (&Arc<Counters>, &Arc<Events>),
    ) -> Arc<Self> {
        let channel = channel(statements.schema());
        // Exact also as a number of JavaScript.
        let id = (unit() * 2_f64.powi(53)) as u64;
        Arc::new(Self {
            wakes: Arc::clone(wakes),
            events: Arc::clone(events),
            counters: Arc::clone(counters),
            sender: HintSender::start(store, counters, (channel.clone(), id)),
            opening: Opening {
                way: pool.direct(),
                statements: Arc::clone(statements),
                runtime: Handle::current(),
            },
            channel,
            id,
            hubs: Arc::clone(Hubs::of_process()),
            listening: AtomicBool::new(false),
            state: Mutex::default(),
            lease: Mutex::default(),
        })
    }

    /// These items were committed: wakes the runtimes that are here, and sends a hint when others may have something to do.
    pub(crate) fn committed(&self, items: &[CommitItem]) {
        self.wakes.work();
        let ended = items.iter().filter_map(|item| match item {
            CommitItem::Turn(turn) if turn.end.is_some() || turn.park.is_some() => Some(&turn.instance),
            CommitItem::Activity(activity) => match &activity.outcome {
                ActivityOutcome::StandaloneEnded(_) => Some(&activity.key.instance),
                _ => None,
            },
            _ => None,
        });
        let ended: Vec<&String> = ended.collect();
        let local: Vec<Arc<dyn LocalSlots>> = self.lock().local.iter().filter_map(Weak::upgrade).collect();
        let local: Vec<&dyn LocalSlots> = local.iter().map(|slots| &**slots).collect();
        let work = leaves(items, &local);
        if work || !ended.is_empty() {
            self.sender.add(|hint| {
                hint.work |= work;
                for instance in ended {
                    hint.add_ended(instance);
                }
            });
        }
    }

    /// Hints inside this process.
    pub(crate) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// Work became free that anybody may take: recovered, or given back.
    pub fn released(&self) {
        self.wakes.work();
        self.tell_released();
    }

    /// The same, for other processes only.
    pub fn tell_released(&self) {
        self.sender.add(|hint| hint.work = true);
    }

    /// A hub hears what other processes do.
    pub fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    /// How the hub stands; `None` without one.
    pub fn hub_state(&self) -> Option<HubState> {
        self.lock().hub.clone()
    }

    /// The channel of this provider's schema.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// A runtime begins.
    pub fn join(self: &Arc<Self>, mode: ListenerMode) -> HintUser {
        self.enter(Use::Runtime(mode))
    }

    /// What a runtime of this process can take needs no hint, until it is dropped.
    pub fn offer(&self, slots: &Arc<dyn LocalSlots>) {
        let mut state = self.lock();
        state.local.retain(|slots| slots.strong_count() > 0);
        state.local.push(Arc::downgrade(slots));
    }

    /// Somebody waits for the ends of instances.
    pub(super) fn join_waiters(self: &Arc<Self>) -> HintUser {
        self.enter(Use::Waiters)
    }

    fn enter(self: &Arc<Self>, user: Use) -> HintUser {
        let ticket = {
            let mut state = self.lock();
            state.next_ticket += 1;
            let ticket = state.next_ticket;
            state.users.insert(ticket, user);
            ticket
        };
        self.adjust();
        HintUser { hints: Arc::clone(self), ticket }
    }

    /// Gives up the hub; nobody hears any more.
    pub fn close(&self) {
        self.lock().users.clear();
        self.give_up_lease();
    }

    /// Leases a hub when somebody wants one and there is none, and gives it back when nobody does.
    fn adjust(self: &Arc<Self>) {
        let Some(mode) = self.lock().wanted() else { return self.give_up_lease() };
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        if lease.is_some() {
            return;
        }
        if self.opening.way.is_pooled() {
            self.refuse("the only known URL leads through a transaction pooler; give the option directUrl");
            return;
        }
        let leader = (mode == ListenerMode::Elected).then(|| format!("holdfast.leader.{}", self.channel));
        let ear = Arc::new(Ear(Arc::downgrade(self)));
        *lease = self.hubs.lease(&self.opening, &self.channel, leader.as_deref(), ear);
        if lease.is_none() {
            self.refuse("this process has as many hubs as it may have");
        }
    }

    fn give_up_lease(&self) {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(lease);
        let mut state = self.lock();
        state.hub = None;
        state.proof = Proof::default();
        self.listening.store(false, Ordering::Release);
    }

    /// There is no hub to be had: told once, until there is one.
    fn refuse(&self, cause: &str) {
        let down = HubState::Down { cause: cause.to_owned(), retry_in: std::time::Duration::ZERO };
        if self.lock().hub.replace(down.clone()).as_ref() != Some(&down) {
            self.tell(&down);
        }
    }

    fn tell(&self, state: &HubState) {
        let (level, text) = match state {
            HubState::Down { cause, .. } => {
                (Level::Warn, format!("hints of other processes are not heard: {cause}"))
            }
            _ => (Level::Info, format!("the hub for hints of other processes is {}", state.word())),
        };
        self.events.emit("hub-state", level, text, self.fields(state));
    }

    /// How the hub stands, as the event says it; `None` without one.
    pub fn state_json(&self) -> Option<String> {
        self.hub_state().map(|state| self.fields(&state).to_string())
    }

    fn fields(&self, state: &HubState) -> serde_json::Value {
        let (cause, delay) = match state {
            HubState::Down { cause, retry_in } => {
                let delay =
                    (!retry_in.is_zero()).then(|| u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX));
                (Some(cause), delay)
            }
            _ => (None, None),
        };
        json!({ "state": state.word(), "channel": self.channel, "cause": cause, "delayMs": delay })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How to listen: as the first runtime that does; waiters alone listen for themselves.
    fn wanted(&self) -> Option<ListenerMode> {
        let runtimes = self.users.values().filter_map(|user| match user {
            Use::Runtime(mode) => Some(*mode),
            Use::Waiters => None,
        });
        let runtimes: Vec<ListenerMode> = runtimes.collect();
        if runtimes.is_empty() {
            return (!self.users.is_empty()).then_some(ListenerMode::Each);
        }
        runtimes.into_iter().find(|mode| *mode != ListenerMode::Off)
    }
}

/// Somebody who wants to hear hints, until it is dropped.
pub struct HintUser {
    hints: Arc<Hints>,
    ticket: u64,
}

impl HintUser {
    /// A heartbeat is about to be sent: the channel to which it sends a hint, when a hub is to be proved alive.
    pub fn begin_proof(&self) -> Option<String> {
        self.hints.adjust();
        if !self.hints.is_listening() {
            return None;
        }
        let channel = self.lease().as_ref()?.own_channel().to_owned();
        self.hints.lock().proof.sent(self.ticket);
        Some(channel)
    }

    /// It was sent, or not.
    pub fn end_proof(&self, sent: bool) {
        let deaf = {
            let mut state = self.hints.lock();
            if !sent {
                state.proof.not_sent(self.ticket);
            }
            sent && state.proof.is_deaf(self.ticket)
        };
        if deaf {
            self.hints.lock().proof.heard();
            if let Some(lease) = &*self.lease() {
                lease.is_deaf();
            }
        }
    }

    /// Looks for a hub, if there is none yet.
    pub(super) fn adjust(&self) {
        self.hints.adjust();
    }

    fn lease(&self) -> MutexGuard<'_, Option<HubLease>> {
        self.hints.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HintUser {
    fn drop(&mut self) {
        self.hints.lock().users.remove(&self.ticket);
        self.hints.adjust();
    }
}

/// What a provider does about what a hub hears.
struct Ear(Weak<Hints>);

impl Subscriber for Ear {
    fn state(&self, state: &HubState) {
        let Some(hints) = self.0.upgrade() else { return };
        let listening = *state == HubState::Listening;
        let before = hints.listening.swap(listening, Ordering::AcqRel);
        {
            let mut kept = hints.lock();
            kept.hub = Some(state.clone());
            kept.proof.heard();
        }
        hints.tell(state);
        if before != listening {
            // What happened while nobody listened; and polls are as often as they must be from here on.
            hints.wakes.work();
            hints.wakes.all_may_have_ended();
        }
    }

    fn hint(&self, payload: &str) {
        let Some(hints) = self.0.upgrade() else { return };
        hints.lock().proof.heard();
        let hint: Hint = serde_json::from_str(payload).unwrap_or_else(|_| Hint::anything());
        if hint.sender == hints.id {
            return;
        }
        hints.counters.hints_heard.add(1);
        if hint.work {
            hints.wakes.work();
        }
        if hint.all {
            hints.wakes.all_may_have_ended();
        }
        for instance in &hint.ended {
            hints.wakes.ended_elsewhere(instance);
        }
    }

    fn proof(&self) {
        if let Some(hints) = self.0.upgrade() {
            hints.lock().proof.heard();
            hints.counters.hub_proofs.add(1);
        }
    }

    fn close_failed(&self) {
        if let Some(hints) = self.0.upgrade() {
            let text = "the session of a hub did not end in time; its place stays taken for a while";
            hints.events.emit("hub-close-failed", Level::Warn, text, json!({ "channel": hints.channel }));
        }
    }
}
