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
    clock,
    notify::{
        HintUser, Wakes,
        ear::Ear,
        hub::HubState,
        hubs::{HubLease, Hubs, Opening},
        local::{LocalSlots, left_over},
        presence::{Presence, Question},
        proof::Proof,
        sender::HintSender,
        spread,
        user::{Claims, Use},
    },
    pool::Pool,
    store::{
        NodeKey, Statements, Store,
        commit::{ActivityOutcome, CommitItem},
        notify::{Place, channel},
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
    pub(super) wakes: Arc<Wakes>,
    pub(super) events: Arc<Events>,
    pub(super) counters: Arc<Counters>,
    sender: HintSender,
    pub(super) presence: Presence,
    opening: Opening,
    pub(super) channel: String,
    /// What it sends is marked with it.
    pub(super) id: u64,
    hubs: Arc<Hubs>,
    pub(super) listening: AtomicBool,
    state: Mutex<State>,
    /// Held while a hub is leased and given back; no callback of a hub takes it.
    pub(super) lease: Mutex<Option<HubLease>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) users: BTreeMap<u64, Use>,
    next_ticket: u64,
    local: Vec<Weak<dyn LocalSlots>>,
    pub(super) proof: Proof,
    pub(super) hub: Option<HubState>,
    /// Runtimes of other processes that listen, when that is known.
    others: Option<u64>,
    /// Another process began to listen since that was asked.
    heard: bool,
    /// The others know that this process listens.
    told: bool,
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
        Arc::new_cyclic(|hints| Self {
            wakes: Arc::clone(wakes),
            events: Arc::clone(events),
            counters: Arc::clone(counters),
            sender: HintSender::start(store, counters, (channel.clone(), id)),
            presence: Presence::start(pool, statements, Weak::clone(hints)),
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

    /// These items were committed: wakes the runtimes that are here when something is `ready` to be claimed, or a slot may be free
    /// for what waits, and sends a hint when others may have something to do.
    pub(crate) fn committed(&self, items: &[CommitItem], ready: bool) {
        if ready {
            self.wakes.work();
        } else {
            self.wakes.slots_are_free();
        }
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
        let work = if self.others_listen() { left_over(items, &local) } else { 0 };
        if work > 0 || !ended.is_empty() {
            self.sender.add(|hint| {
                hint.add_work(work);
                for instance in ended {
                    hint.add_ended(instance);
                }
            });
        }
    }

    /// A hint of another process comes in.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn hear(self: &Arc<Self>, payload: &str) {
        crate::notify::Subscriber::hint(&Ear(Arc::downgrade(self)), payload);
    }

    /// Hints inside this process.
    pub(crate) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// So much work became free that anybody may take: recovered, given back, or made due by hand.
    pub fn released(&self, work: u64) {
        self.wakes.work();
        self.tell_released(work);
    }

    /// The same, for other processes only.
    pub fn tell_released(&self, work: u64) {
        if work > 0 && self.others_listen() {
            self.sender.add(|hint| hint.add_work(u32::try_from(work).unwrap_or(u32::MAX)));
        }
    }

    /// Somebody elsewhere has so much work for others: wakes claimers of this process whose turn it is, the others later.
    pub(super) fn ring(&self, work: u32, first: u64) {
        let now = clock::now();
        let mut rung = false;
        let state = self.lock();
        for claims in state.runtimes() {
            let Some(bell) = claims.bell.upgrade() else { continue };
            rung = true;
            let delay = spread::delay(claims.place(), work, first);
            if delay.is_zero() { bell.ring() } else { bell.ring_at(now + delay) }
        }
        drop(state);
        if !rung {
            self.wakes.work();
        }
    }

    /// Another process began to listen.
    pub(super) fn somebody_listens(&self) {
        let mut state = self.lock();
        (state.others, state.heard) = (None, true);
        drop(state);
        self.presence.changed_elsewhere();
    }

    /// Whether a hint about work may reach anybody. Whoever does not listen itself cannot know.
    fn others_listen(&self) -> bool {
        !self.is_listening() || self.lock().others != Some(0)
    }

    /// What is to be said about this process, and asked; `None` when there is nothing, because it never listened.
    pub(super) fn question(&self) -> Option<Question> {
        let listens = self.is_listening();
        let mut state = self.lock();
        state.heard = false;
        let own: Vec<NodeKey> = state.runtimes().map(Claims::key).collect();
        (!own.is_empty() && (listens || state.told)).then_some(Question { own, listens })
    }

    /// Where the runtimes of this process stand.
    pub(super) fn placed(&self, question: &Question, places: &[(i64, Place)]) {
        let mut state = self.lock();
        let own: Vec<Place> = places.iter().map(|(_, place)| *place).collect();
        for claims in state.users.values_mut().filter_map(Use::claims_mut) {
            let epoch = claims.key().epoch;
            claims.place = places.iter().find(|(of, _)| *of == epoch).copied();
        }
        self.sender.stands(own.first().copied());
        let Some(others) = own.first().map(|place| place.others) else { return };
        // Somebody who began to listen while the answer was on its way is not in it.
        state.others = (!state.heard).then_some(others);
        let begins = question.listens && !state.told;
        state.told = question.listens;
        drop(state);
        if begins && others > 0 {
            self.sender.add(|hint| hint.listens = true);
        }
    }

    /// A hub hears what other processes do.
    pub fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    /// How the hub stands; `None` without one.
    pub fn hub_state(&self) -> Option<HubState> {
        self.lock().hub.clone()
    }

    /// Runtimes of other processes that listen as well; `None` when that is not known.
    pub fn others(&self) -> Option<u64> {
        self.lock().others
    }

    /// The channel of this provider's schema.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// A runtime begins.
    pub fn join(self: &Arc<Self>, mode: ListenerMode) -> HintUser {
        self.enter(Use::Runtime { mode, claims: None })
    }

    /// What a runtime of this process can take needs no hint, until it is dropped.
    pub fn offer(&self, slots: &Arc<dyn LocalSlots>) {
        let mut state = self.lock();
        state.local.retain(|slots| slots.strong_count() > 0);
        state.local.push(Arc::downgrade(slots));
    }

    /// Whether a turn of this instance is in progress in this process, or will begin here without a claim.
    pub fn is_under_way(&self, instance: &str) -> bool {
        let local: Vec<Arc<dyn LocalSlots>> = self.lock().local.iter().filter_map(Weak::upgrade).collect();
        local.iter().any(|slots| slots.is_under_way(instance))
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
        HintUser::new(self, ticket)
    }

    /// Gives up the hub; nobody hears any more.
    pub fn close(&self) {
        self.lock().users.clear();
        self.give_up_lease();
    }

    /// Leases a hub when somebody wants one and there is none, and gives it back when nobody does.
    pub(super) fn adjust(self: &Arc<Self>) {
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

    pub(super) fn tell(&self, state: &HubState) {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn runtimes(&self) -> impl Iterator<Item = &Claims> {
        self.users.values().filter_map(Use::claims)
    }

    /// How to listen: as the first runtime that does; waiters alone listen for themselves.
    fn wanted(&self) -> Option<ListenerMode> {
        let runtimes = self.users.values().filter_map(|user| match user {
            Use::Runtime { mode, .. } => Some(*mode),
            Use::Waiters => None,
        });
        let runtimes: Vec<ListenerMode> = runtimes.collect();
        if runtimes.is_empty() {
            return (!self.users.is_empty()).then_some(ListenerMode::Each);
        }
        runtimes.into_iter().find(|mode| *mode != ListenerMode::Off)
    }
}
