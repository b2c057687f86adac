//! The port of the store on the model: every call is a message to the world, which says when it arrives, what it waits for,
//! and when, or whether, its answer comes back.
//! length: one short method for each operation of the port.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use holdfast_replay::{Message, event::StoredEvent};
use tokio::sync::{Notify, oneshot};

use super::{
    claims::{Taking, Wanted},
    model::{Model, NodeRow},
    promises::is_done,
    reads::Looking,
};
use crate::{
    chance,
    error::{Error, ErrorKind, Result},
    limits,
    pool::CallerClass,
    store::{
        ActivityKey, Answer, Fence, NodeKey, Store, StoreSession,
        activity::{Beat, ClaimedActivity, Lane, Terms},
        commit::{CommitItem, CommitOutcome},
        coverage::Ability,
        look::{Due, LookRequest},
        node::{Along, Heartbeat, HeartbeatTimes, NodeTimes, Swept},
        turn::{ClaimRequest, ClaimedTurn, Open, RenewRequest},
    },
};

/// Hands an answer, or the error in its place, to who waits.
pub(super) type Deliver = Box<dyn FnOnce(Option<ErrorKind>) + Send>;

/// Carries a call out; told when its statement began.
pub(super) type Work = Box<dyn FnOnce(&mut Model, i64) -> Deliver + Send>;

/// A call on its way.
pub(super) struct Call {
    pub(super) what: &'static str,
    /// It waits for the row locks of these instances.
    pub(super) waits_for: Vec<String>,
    /// The client's time limit.
    pub(super) limit: Duration,
    /// Sent on this generation of connections.
    pub(super) generation: u64,
    /// Carries it out.
    pub(super) work: Work,
    /// The answer when it is not carried out at all.
    pub(super) refuse: Arc<dyn Fn(ErrorKind) + Send + Sync>,
    /// A hint to other processes.
    pub(super) hint: Option<String>,
}

/// What a process and the world share.
#[derive(Default)]
pub(super) struct Wire {
    calls: Mutex<Vec<Call>>,
    /// The process has sent something: the world is to look.
    pub(super) sent: Notify,
    /// The database cannot be reached.
    pub(super) down: AtomicBool,
    /// Rises when every connection is lost.
    pub(super) generation: AtomicU64,
    troubled: AtomicBool,
}

impl Wire {
    pub(super) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.calls))
    }

    fn unavailable(&self) -> Error {
        self.troubled.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::Unavailable, "the simulated database cannot be reached")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store of one simulated process.
pub(super) struct SimStore(pub(super) Arc<Wire>);

impl SimStore {
    async fn open(&self) -> Result<Box<dyn StoreSession>> {
        if self.0.down.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1 + chance::bits() % 200)).await;
            return Err(self.0.unavailable());
        }
        let session: Box<dyn StoreSession> = Box::new(SimSession {
            wire: Arc::clone(&self.0),
            generation: self.0.generation.load(Ordering::Relaxed),
            broken: AtomicBool::new(false),
        });
        Ok(session)
    }
}

impl Store for SimStore {
    fn acquire(&self, _class: CallerClass) -> Answer<'_, Box<dyn StoreSession>> {
        Box::pin(self.open())
    }

    fn open_liveness(&self) -> Answer<'_, Box<dyn StoreSession>> {
        Box::pin(self.open())
    }

    fn was_troubled(&self) -> bool {
        self.0.troubled.load(Ordering::Relaxed)
    }
}

struct SimSession {
    wire: Arc<Wire>,
    generation: u64,
    broken: AtomicBool,
}

/// A call whose answer nobody waited for leaves a session that cannot be used.
struct InFlight<'a>(&'a AtomicBool, bool);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A client's limit of an ordinary statement.
const QUERY_LIMIT: Duration = Duration::from_secs(30);

impl SimSession {
    fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Model, i64) -> Result<T> + Send + 'static,
    ) -> Answer<'_, T> {
        self.send(what, QUERY_LIMIT, Vec::new(), None, work)
    }

    fn patient<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Model, i64) -> Result<T> + Send + 'static,
    ) -> Answer<'_, T> {
        self.send(what, limits::CLAIM_LIMIT, Vec::new(), None, work)
    }

    fn send<T: Send + 'static>(
        &self,
        what: &'static str,
        limit: Duration,
        waits_for: Vec<String>,
        hint: Option<String>,
        work: impl FnOnce(&mut Model, i64) -> Result<T> + Send + 'static,
    ) -> Answer<'_, T> {
        let (sender, receiver) = oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let tell = Arc::new(move |outcome: Result<T>| {
            // Whoever asked may have gone.
            let _ = lock(&sender).take().map(|sender| sender.send(outcome));
        });
        let refuse = Arc::clone(&tell);
        let call = Call {
            what,
            waits_for,
            limit,
            generation: self.generation,
            hint,
            work: Box::new(move |model, started| {
                let outcome = work(model, started);
                Box::new(move |failed| tell(failed.map_or(outcome, |kind| Err(Error::new(kind, what)))))
            }),
            refuse: Arc::new(move |kind| refuse(Err(Error::new(kind, what)))),
        };
        if self.is_broken() {
            let error = self.wire.unavailable();
            return async move { Err(error) }.boxed();
        }
        lock(&self.wire.calls).push(call);
        self.wire.sent.notify_one();
        async move {
            let mut flight = InFlight(&self.broken, false);
            let outcome = receiver.await.unwrap_or_else(|_| Err(self.wire.unavailable()));
            flight.1 = !matches!(&outcome, Err(error) if breaks(error.kind()));
            outcome
        }
        .boxed()
    }
}

/// After these a session is not used again.
fn breaks(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::CommitUnknown | ErrorKind::Timeout)
}

impl StoreSession for SimSession {
    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.generation != self.wire.generation.load(Ordering::Relaxed)
    }

    fn look<'a>(&'a self, request: &'a LookRequest<'a>) -> Answer<'a, Due> {
        let wanted = Looking::of(request);
        self.patient("look", move |model, started| Ok(model.look(started, &wanted)))
    }

    fn claim_turns<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        handlers: &'a [String],
    ) -> Answer<'a, Vec<ClaimedTurn>> {
        let (wanted, names, handlers) = (Wanted::of(request), names.to_vec(), handlers.to_vec());
        self.patient("claim turns", move |model, started| {
            Ok(model.claim_turns(started, &wanted, &names, &handlers))
        })
    }

    fn claim_activities<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        takes: &'a Terms<'a>,
        lane: Lane,
    ) -> Answer<'a, Vec<ClaimedActivity>> {
        let (wanted, names) = (Wanted::of(request), names.to_vec());
        let taking = Taking::of(takes, lane);
        self.patient("claim activities", move |model, started| {
            Ok(model.claim_activities(started, &wanted, &names, &taking))
        })
    }

    fn inbox<'a>(
        &'a self,
        instances: &'a [String],
        limit: i64,
        _bytes: i64,
    ) -> Answer<'a, Vec<(String, Result<Message>)>> {
        let instances = instances.to_vec();
        self.patient("read inboxes", move |model, started| Ok(model.inbox(started, &instances, limit)))
    }

    fn history<'a>(&'a self, keys: &'a [(String, i64)]) -> Answer<'a, Vec<(String, Result<StoredEvent>)>> {
        let keys = keys.to_vec();
        self.patient("read histories", move |model, _| Ok(model.read_history(&keys)))
    }

    fn cancels<'a>(&'a self, instances: &'a [String]) -> Answer<'a, Vec<(String, Message)>> {
        let instances = instances.to_vec();
        self.patient("read cancels", move |model, _| Ok(model.cancels(&instances)))
    }

    fn open<'a>(&'a self, instance: &'a str, execution: i64) -> Answer<'a, Open> {
        let instance = instance.to_owned();
        self.patient("list what is open", move |model, _| Ok(model.open(&instance, execution)))
    }

    fn commit<'a>(&'a self, items: &'a [CommitItem], again: bool) -> Answer<'a, Vec<CommitOutcome>> {
        let items = items.to_vec();
        let mut touched: Vec<String> =
            items.iter().flat_map(|item| item.instances()).map(str::to_owned).collect();
        touched.sort();
        touched.dedup();
        self.send("commit", QUERY_LIMIT, touched, None, move |model, _| {
            let settled = if again { model.settled_before(&items) } else { Vec::new() };
            let outcomes = model.commit(&items, again)?;
            for index in settled {
                if !is_done(&outcomes[index]) {
                    let (what, instances) = (items[index].what(), items[index].instances());
                    let text = format!(
                        "the {what} of {instances:?} was settled and is told as {:?}",
                        outcomes[index]
                    );
                    model.wrong.push(("I18", text));
                }
            }
            Ok(outcomes)
        })
    }

    fn locked<'a>(&'a self, instances: &'a [&'a str]) -> Answer<'a, HashSet<String>> {
        let instances: Vec<String> = instances.iter().map(|id| (*id).to_owned()).collect();
        self.call("list locked rows", move |model, _| {
            Ok(instances.into_iter().filter(|id| model.locked.contains(id)).collect())
        })
    }

    fn renew_turns<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>> {
        let (node, fences, times) = (node.clone(), fences.to_vec(), *request);
        self.call("renew turns", move |model, _| Ok(model.renew(true, &node, &fences, times)))
    }

    fn renew_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>> {
        let (node, fences, times) = (node.clone(), fences.to_vec(), *request);
        self.call("renew activities", move |model, _| Ok(model.renew(false, &node, &fences, times)))
    }

    fn release_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], delay_ms: i64) -> Answer<'a, u64> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("release turns", move |model, _| Ok(model.release(true, &node, &fences, delay_ms)))
    }

    fn release_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        delay_ms: i64,
    ) -> Answer<'a, u64> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("release activities", move |model, _| Ok(model.release(false, &node, &fences, delay_ms)))
    }

    fn abandon_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], at_once: bool) -> Answer<'a, u64> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("abandon turns", move |model, _| Ok(model.abandon(true, &node, &fences, at_once)))
    }

    fn cut_off_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, u64> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("cut off turns", move |model, _| Ok(model.cut_off(&node, &fences)))
    }

    fn abandon_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        at_once: bool,
    ) -> Answer<'a, u64> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("abandon activities", move |model, _| Ok(model.abandon(false, &node, &fences, at_once)))
    }

    fn gone_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("list gone turns", move |model, _| Ok(model.gone(true, &node, &fences)))
    }

    fn gone_activities<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>> {
        let (node, fences) = (node.clone(), fences.to_vec());
        self.call("list gone activities", move |model, _| Ok(model.gone(false, &node, &fences)))
    }

    fn taken<'a>(&'a self, tasks: &'a [(Fence, ActivityKey)]) -> Answer<'a, Vec<Fence>> {
        let tasks = tasks.to_vec();
        self.call("list taken activities", move |model, _| Ok(model.taken(&tasks)))
    }

    fn release_unknown<'a>(
        &'a self,
        node: &'a NodeKey,
        held_turns: &'a [Fence],
        held_activities: &'a [Fence],
        older_than: Duration,
    ) -> Answer<'a, u64> {
        let (node, turns, activities) = (node.clone(), held_turns.to_vec(), held_activities.to_vec());
        let older_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        self.call("release unknown leases", move |model, started| {
            Ok(model.release_unknown(started, true, &node, &turns, older_ms)
                + model.release_unknown(started, false, &node, &activities, older_ms))
        })
    }

    fn beat<'a>(&'a self, beats: &'a [Beat]) -> Answer<'a, Vec<Fence>> {
        let beats = beats.to_vec();
        self.call("store beats", move |model, _| Ok(model.beat(&beats)))
    }

    fn register<'a>(&'a self, id: &'a str, times: NodeTimes) -> Answer<'a, NodeKey> {
        let id = id.to_owned();
        self.call("register", move |model, _| {
            let key = NodeKey { id, epoch: model.next_epoch() };
            let row = NodeRow {
                heartbeat_at: model.now,
                interval: times.interval_ms,
                stale_after: times.stale_after_ms,
            };
            model.nodes.insert((key.id.clone(), key.epoch), row);
            Ok(key)
        })
    }

    fn heartbeat<'a>(
        &'a self,
        node: &'a NodeKey,
        (turns, activities): (&'a [Fence], &'a [Fence]),
        times: HeartbeatTimes,
        along: Along<'a>,
    ) -> Answer<'a, Heartbeat> {
        let (node, turns, activities) = (node.clone(), turns.to_vec(), activities.to_vec());
        let wanted = along.look.map(Looking::of);
        self.call("heartbeat", move |model, started| {
            let (recovered_nodes, outage) = model.delete_stale(started, &node, &times);
            let now = model.now;
            let own = model.nodes.get_mut(&(node.id.clone(), node.epoch));
            let alive = own.map(|row| row.heartbeat_at = now).is_some();
            let limit = times.claim_limit_ms;
            let gone = (model.gone(true, &node, &turns), model.gone(false, &node, &activities));
            let released = model.release_unknown(started, true, &node, &turns, limit)
                + model.release_unknown(started, false, &node, &activities, limit);
            Ok(Heartbeat {
                alive,
                gone_turns: gone.0,
                gone_activities: gone.1,
                released,
                recovered_nodes,
                outage,
                // A later statement: it sees what was just released.
                due: wanted.map(|wanted| model.look(now, &wanted)),
            })
        })
    }

    fn sweep(&self) -> Answer<'_, Swept> {
        self.call("sweep", |model, _| {
            model.free_sessions(None);
            Ok(Swept { freed: model.recover(true) + model.recover(false), more: false })
        })
    }

    fn goodbye<'a>(&'a self, node: &'a NodeKey) -> Answer<'a, ()> {
        let node = node.clone();
        self.call("goodbye", move |model, _| {
            model.say_goodbye(&node);
            Ok(())
        })
    }

    fn renew_sessions<'a>(
        &'a self,
        node: &'a NodeKey,
        in_use: &'a [String],
        timeout_ms: i64,
        idle_ms: i64,
    ) -> Answer<'a, usize> {
        let (node, in_use) = (node.clone(), in_use.to_vec());
        self.call("renew sessions", move |model, started| {
            Ok(model.renew_sessions(started, &node, &in_use, timeout_ms, idle_ms))
        })
    }

    fn sweep_sessions(&self) -> Answer<'_, usize> {
        self.call("sweep sessions", |model, started| Ok(model.sweep_sessions(started)))
    }

    fn forget_message_keys(&self) -> Answer<'_, usize> {
        self.call("forget message keys", |_, _| Ok(0))
    }

    fn publish<'a>(&'a self, _node: &'a NodeKey, _abilities: &'a [Ability<'a>]) -> Answer<'a, ()> {
        self.call("publish", |_, _| Ok(()))
    }

    fn send_hint<'a>(&'a self, _channel: &'a str, payload: &'a str) -> Answer<'a, ()> {
        self.send("hint", QUERY_LIMIT, Vec::new(), Some(payload.to_owned()), |_, _| Ok(()))
    }
}
