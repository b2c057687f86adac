//! A hub: one session that listens for a whole process, opened again whenever it is lost.
//!
//! Invariants: one session at most, and its place is given back only when that is gone; a stop waits for a connect in
//! flight, is idempotent, and nobody is called after it; a subscriber that panics stops no other. It never decides what a
//! hint means.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};

use crate::{
    error::{ErrorKind, Result},
    limits,
    notify::{backoff::Reconnect, hubs::Hubs},
    pool::{DirectPlace, DirectWay, Notification, Session, SessionPurpose},
    store::{Statements, notify},
    telemetry::unit,
};

/// What makes two callers ask for the same hub.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubKey {
    /// The database.
    pub place: DirectPlace,
    /// The channel.
    pub channel: String,
    /// Present when only one session of all processes may listen.
    pub leader: Option<String>,
}

/// How a hub stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubState {
    /// Its session is being opened.
    Connecting,
    /// It hears.
    Listening,
    /// Another session was elected.
    Standby,
    /// It has no session.
    Down {
        /// Why.
        cause: String,
        /// When it connects again.
        retry_in: Duration,
    },
}

impl HubState {
    /// The word that JavaScript sees.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Listening => "listening",
            Self::Standby => "standby",
            Self::Down { .. } => "down",
        }
    }
}

/// Hears what a hub hears. Calls are short and never wait.
pub trait Subscriber: Send + Sync {
    /// The present state at once, then every change.
    fn state(&self, state: &HubState);
    /// A hint on the channel.
    fn hint(&self, payload: &str);
    /// A hint that this process sent to itself came back.
    fn proof(&self);
    /// The session did not say goodbye in time; its place stays taken for a while.
    fn close_failed(&self);
}

/// What its task is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Leased,
    /// Nobody leases it; closed at this time.
    IdleUntil(Instant),
    Stopped,
}

/// One hub.
pub(super) struct Hub {
    pub(super) key: HubKey,
    /// Heard by this hub alone.
    pub(super) own_channel: String,
    way: DirectWay,
    statements: Arc<Statements>,
    pub(super) wanted: watch::Sender<Wanted>,
    deaf: Notify,
    audience: Mutex<Audience>,
    pub(super) task: Mutex<Option<JoinHandle<()>>>,
}

struct Audience {
    state: HubState,
    subscribers: Vec<(u64, Arc<dyn Subscriber>)>,
}

enum Opened {
    Hears(Session, mpsc::Receiver<Notification>),
    Standby,
}

impl Hub {
    pub(super) fn new(key: HubKey, way: DirectWay, statements: Arc<Statements>) -> Self {
        let own_channel =
            format!("holdfast.own.{}.{:013x}", std::process::id(), (unit() * 2_f64.powi(52)) as u64);
        let audience = Audience { state: HubState::Connecting, subscribers: Vec::new() };
        Self {
            key,
            own_channel,
            way,
            statements,
            wanted: watch::Sender::new(Wanted::Leased),
            deaf: Notify::new(),
            audience: Mutex::new(audience),
            task: Mutex::default(),
        }
    }

    /// From here on the subscriber is told, the present state first.
    pub(super) fn subscribe(&self, ticket: u64, subscriber: Arc<dyn Subscriber>) {
        let mut audience = self.audience();
        call(|| subscriber.state(&audience.state));
        audience.subscribers.push((ticket, subscriber));
    }

    pub(super) fn unsubscribe(&self, ticket: u64) {
        self.audience().subscribers.retain(|(other, _)| *other != ticket);
    }

    /// Its session does not hear any more, whatever the connection says.
    pub(super) fn is_deaf(&self) {
        self.deaf.notify_one();
    }

    /// Runs until it is stopped, or idle for long enough.
    pub(super) async fn run(self: Arc<Self>, hubs: Weak<Hubs>) {
        let place = Occupied { hubs: &hubs, key: &self.key };
        let mut reconnect = Reconnect::default();
        let mut unwanted = Box::pin(self.until_unwanted(&hubs));
        loop {
            self.tell(&HubState::Connecting);
            let pause = match self.open().await {
                Ok(Opened::Hears(session, notifications)) => {
                    reconnect.reset();
                    self.tell(&HubState::Listening);
                    let cause = tokio::select! {
                        biased;
                        () = &mut unwanted => {
                            self.close(session).await;
                            break;
                        }
                        cause = self.hear(notifications) => cause,
                    };
                    drop(session);
                    self.down(cause.to_owned(), reconnect.next(false, unit()))
                }
                Ok(Opened::Standby) => {
                    self.tell(&HubState::Standby);
                    limits::HUB_ELECTION_RETRY
                }
                Err(error) => {
                    let delay = reconnect.next(error.kind() == ErrorKind::Capacity, unit());
                    self.down(error.full_text(), delay)
                }
            };
            tokio::select! {
                biased;
                () = &mut unwanted => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        drop(place);
    }

    fn down(&self, cause: String, retry_in: Duration) -> Duration {
        self.tell(&HubState::Down { cause, retry_in });
        retry_in
    }

    async fn open(&self) -> Result<Opened> {
        let session = self.way.open(SessionPurpose::Listener).await?;
        let Some(notifications) = session.take_notifications() else { return Ok(Opened::Standby) };
        match self.begin(&session).await {
            Ok(true) => Ok(Opened::Hears(session, notifications)),
            Ok(false) => {
                session.close().await;
                Ok(Opened::Standby)
            }
            Err(error) => {
                session.close().await;
                Err(error)
            }
        }
    }

    async fn begin(&self, session: &Session) -> Result<bool> {
        if let Some(leader) = &self.key.leader
            && !notify::lead(session, &self.statements, leader).await?
        {
            return Ok(false);
        }
        notify::listen(session, &self.own_channel).await?;
        notify::listen(session, &self.key.channel).await?;
        Ok(true)
    }

    /// Hands on what it hears; returns why it does not hear any more.
    async fn hear(&self, mut notifications: mpsc::Receiver<Notification>) -> &'static str {
        loop {
            tokio::select! {
                heard = notifications.recv() => match heard {
                    Some(heard) if heard.channel() == self.own_channel => self.each(|subscriber| subscriber.proof()),
                    Some(heard) => self.each(|subscriber| subscriber.hint(heard.payload())),
                    None => return "the connection was lost",
                },
                () = self.deaf.notified() => return "two hints to this process itself did not come back",
            }
        }
    }

    /// A goodbye that does not come through leaves a session that the server may still have for a while. Only an answer
    /// shows that it does: what is written into a dead network is not refused.
    async fn close(&self, session: Session) {
        let heard = tokio::time::timeout(limits::HUB_GOODBYE, notify::unlisten(&session)).await;
        let gone = match heard {
            Ok(Ok(())) => session.close().await,
            // The connection is lost already, and the session with it.
            Ok(Err(_)) => true,
            Err(_) => false,
        };
        if !gone {
            self.each(|subscriber| subscriber.close_failed());
            tokio::time::sleep(limits::HUB_CLOSE_FAILED).await;
        }
    }

    async fn until_unwanted(&self, hubs: &Weak<Hubs>) {
        let mut wanted = self.wanted.subscribe();
        loop {
            let now = *wanted.borrow_and_update();
            match now {
                Wanted::Stopped => return,
                Wanted::IdleUntil(time) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(time.into()) => {
                            if hubs.upgrade().is_none_or(|hubs| hubs.retire(&self.key)) {
                                return;
                            }
                        }
                        _ = wanted.changed() => {}
                    }
                }
                // The hub itself keeps the sender.
                Wanted::Leased => drop(wanted.changed().await),
            }
        }
    }

    fn tell(&self, state: &HubState) {
        let subscribers = {
            let mut audience = self.audience();
            audience.state.clone_from(state);
            audience.subscribers.clone()
        };
        for (_, subscriber) in subscribers {
            call(|| subscriber.state(state));
        }
    }

    fn each(&self, tell: impl Fn(&dyn Subscriber)) {
        let subscribers = self.audience().subscribers.clone();
        for (_, subscriber) in subscribers {
            call(|| tell(&*subscriber));
        }
    }

    fn audience(&self) -> MutexGuard<'_, Audience> {
        self.audience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscriber that panics is logged by the hook and stops no other.
fn call(tell: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(tell));
}

/// The place of a hub, given back however its task ends.
struct Occupied<'a> {
    hubs: &'a Weak<Hubs>,
    key: &'a HubKey,
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        if let Some(hubs) = self.hubs.upgrade() {
            hubs.gone(self.key);
        }
    }
}
