//! The hubs of a process: leased by providers, bounded, closed when nobody needs them.
//!
//! Invariant: never more than the bound, a closing one included. The lock is never held across an await.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use once_cell::sync::Lazy;
use tokio::runtime::Handle;

use crate::{
    limits,
    notify::{
        hub::{Hub, HubKey, Subscriber, Wanted},
        places::{Answer, Places},
    },
    pool::DirectWay,
    store::Statements,
};

static HUBS: Lazy<Arc<Hubs>> = Lazy::new(|| Hubs::new(limits::HUB_IDLE));

/// All hubs of a process.
pub struct Hubs {
    state: Mutex<State>,
    tickets: AtomicU64,
}

struct State {
    places: Places<HubKey>,
    hubs: HashMap<HubKey, Arc<Hub>>,
}

/// What a hub is opened with.
pub struct Opening {
    /// The way to the database.
    pub way: DirectWay,
    /// The statements of the schema.
    pub statements: Arc<Statements>,
    /// Where its task runs.
    pub runtime: Handle,
}

impl Hubs {
    /// The hubs of this process.
    pub fn of_process() -> &'static Arc<Self> {
        &HUBS
    }

    /// Hubs apart from those of the process, closed when nobody leased them for `idle_for`.
    pub fn new(idle_for: Duration) -> Arc<Self> {
        let state = State { places: Places::new(limits::HUBS, idle_for), hubs: HashMap::new() };
        Arc::new(Self { state: Mutex::new(state), tickets: AtomicU64::new(0) })
    }

    /// A share of the hub for this channel, or `None` when there is no place: the caller polls and asks again later.
    pub fn lease(
        self: &Arc<Self>,
        opening: &Opening,
        channel: &str,
        leader: Option<&str>,
        subscriber: Arc<dyn Subscriber>,
    ) -> Option<HubLease> {
        let key = HubKey {
            place: opening.way.place(),
            channel: channel.to_owned(),
            leader: leader.map(str::to_owned),
        };
        let hub = {
            let mut state = self.state();
            match state.places.lease(&key, Instant::now()) {
                Answer::Share => {
                    let hub = Arc::clone(state.hubs.get(&key)?);
                    hub.wanted.send_replace(Wanted::Leased);
                    hub
                }
                Answer::Open => {
                    let hub = Arc::new(Hub::new(key, opening.way.clone(), Arc::clone(&opening.statements)));
                    state.hubs.insert(hub.key.clone(), Arc::clone(&hub));
                    let task = opening.runtime.spawn(Arc::clone(&hub).run(Arc::downgrade(self)));
                    *hub.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
                    hub
                }
                Answer::Full { close } => {
                    if let Some(hub) = close.and_then(|key| state.hubs.get(&key)) {
                        hub.wanted.send_replace(Wanted::Stopped);
                    }
                    return None;
                }
            }
        };
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        hub.subscribe(ticket, subscriber);
        Some(HubLease { hubs: Arc::clone(self), hub, ticket })
    }

    /// Hubs that are there, closing ones included.
    pub fn len(&self) -> usize {
        self.state().places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops every hub and waits for its end, each for a few seconds at most; what still hangs is given up.
    pub async fn close_all(&self) {
        let hubs: Vec<Arc<Hub>> = {
            let mut state = self.state();
            state.places.close_all();
            state.hubs.values().cloned().collect()
        };
        for hub in &hubs {
            hub.wanted.send_replace(Wanted::Stopped);
        }
        let deadline = tokio::time::Instant::now() + CLOSE_ALL;
        for hub in hubs {
            let task = hub.task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(mut task) = task
                && tokio::time::timeout_at(deadline, &mut task).await.is_err()
            {
                // Dropping the task frees its place.
                task.abort();
            }
        }
    }

    pub(super) fn retire(&self, key: &HubKey) -> bool {
        self.state().places.retire(key, Instant::now())
    }

    pub(super) fn gone(&self, key: &HubKey) {
        let mut state = self.state();
        state.places.gone(key);
        let hub = state.hubs.remove(key);
        drop(state);
        drop(hub);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long closing all hubs may take: a connect in flight, and a goodbye.
const CLOSE_ALL: Duration = Duration::from_secs(11);

/// A share of a hub; dropped, it is given back, and its subscriber is not called any more.
pub struct HubLease {
    hubs: Arc<Hubs>,
    hub: Arc<Hub>,
    ticket: u64,
}

impl HubLease {
    /// The channel that this hub alone hears: what is sent there proves that it does.
    pub fn own_channel(&self) -> &str {
        &self.hub.own_channel
    }

    /// It does not hear any more: its session is opened anew.
    pub fn is_deaf(&self) {
        self.hub.is_deaf();
    }
}

impl Drop for HubLease {
    fn drop(&mut self) {
        self.hub.unsubscribe(self.ticket);
        let mut state = self.hubs.state();
        // Under the lock, or a lease that comes meanwhile would be overwritten.
        if let Some(until) = state.places.release(&self.hub.key, Instant::now()) {
            let stopped = *self.hub.wanted.borrow() == Wanted::Stopped;
            if !stopped {
                self.hub.wanted.send_replace(Wanted::IdleUntil(until));
            }
        }
        drop(state);
    }
}
