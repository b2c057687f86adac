//! The committer: one worker for what the engine settles, one that helps it, and one for what clients send.
//!
//! Each takes whatever is ready, runs it as one batch and tells every item what became of it. The one that helps takes what has
//! gathered while a batch runs, so that the server works on one batch while the answers to another are dealt with. A failed run is
//! repeated: a turn, a result and a start are idempotent, so also after an unknown outcome, and so is a client's
//! message, by its key.
//!
//! length: the whole way of a batch, each step of it a few lines; queue, riders and locked rows are in the files beside it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::JoinSet,
};

use crate::{
    clock,
    commit::{
        nap::Nap,
        queue::{Pending, Queue, weigh},
        told::{self, Told},
    },
    error::{Error, ErrorKind, Result},
    failpoint,
    lease::ReservedStart,
    limits,
    notify::Hints,
    pool::CallerClass,
    store::{
        ActivityKey, Store, StoreSession,
        commit::{ActivityOutcome, CommitItem, CommitOutcome, TurnEnd},
    },
    telemetry::{Backoff, Counters, Events, Level, Progress},
};

/// What happens when an item is settled; runs on the committer and must be short.
pub type Settled = Box<dyn FnOnce(Result<CommitOutcome>) + Send>;

/// The committer of one provider.
pub struct Committer {
    engine: Arc<Queue>,
    clients: Arc<Queue>,
    places: Arc<Semaphore>,
    progress: [Arc<Progress>; 3],
    workers: tokio::sync::Mutex<JoinSet<()>>,
}

impl Committer {
    /// Starts the workers on the current tokio runtime. So many items as are a `crowd` get a batch beside the one that runs.
    pub fn start(
        store: &Arc<dyn Store>,
        hints: &Arc<Hints>,
        (counters, events): (&Arc<Counters>, &Arc<Events>),
        crowd: usize,
    ) -> Self {
        let engine = Arc::new(Queue::new(limits::COMMIT_BATCH_ITEMS, crowd));
        let clients = Arc::new(Queue::new(limits::CLIENT_BATCH_ITEMS, crowd));
        let progress = ["committer", "second committer", "client committer"]
            .map(|part| Arc::new(Progress::new(part, failpoint::patience(limits::COMMITTER_PATIENCE))));
        let mut workers = JoinSet::new();
        let parts = [(&engine, false), (&engine, true), (&clients, false)];
        for ((queue, helps), progress) in parts.into_iter().zip(&progress) {
            let worker = Worker {
                queue: Arc::clone(queue),
                helps,
                progress: Arc::clone(progress),
                store: Arc::clone(store),
                hints: Arc::clone(hints),
                counters: Arc::clone(counters),
                events: Arc::clone(events),
            };
            workers.spawn(worker.keep_running());
        }
        Self {
            engine,
            clients,
            places: Arc::new(Semaphore::new(limits::COMMIT_QUEUE_ITEMS)),
            progress,
            workers: tokio::sync::Mutex::new(workers),
        }
    }

    /// Signs of life of the workers.
    pub fn progress(&self) -> &[Arc<Progress>] {
        &self.progress
    }

    /// Hands over what the engine settles. Slots bound how many there are at once.
    pub fn settle(&self, item: CommitItem, settled: Settled) {
        let bytes = weigh(&item);
        let told = Told::new(settled);
        let settled: Settled = Box::new(move |outcome| told.tell(outcome));
        if let Err(refused) = self.engine.push(Pending { item, bytes, runs: 0, place: None, settled }) {
            refused(Err(closed()));
        }
    }

    /// The same for a result that a turn is about to use: it waits for that turn a moment, so that one transaction takes
    /// both, and goes alone when the turn is late.
    pub fn settle_riding(&self, item: CommitItem, settled: Settled) {
        let bytes = weigh(&item);
        let told = Told::new(settled);
        let settled: Settled = Box::new(move |outcome| told.tell(outcome));
        let pending = Pending { item, bytes, runs: 0, place: None, settled };
        if let Err(refused) = self.engine.push_riding(pending, clock::now()) {
            refused(Err(closed()));
        }
    }

    /// Commits what a client sends. Dropping the future does not take the item back.
    pub async fn submit(&self, item: CommitItem) -> Result<CommitOutcome> {
        self.submit_all(vec![(item, None)]).await.pop().unwrap_or_else(|| Err(closed()))
    }

    /// The same for many, which wait together and so share transactions; the outcome at index i belongs to item i. Dropping
    /// the future takes back what is not queued yet. A start with a kept slot begins there.
    pub async fn submit_all(
        &self,
        items: Vec<(CommitItem, Option<ReservedStart>)>,
    ) -> Vec<Result<CommitOutcome>> {
        let mut outcomes = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let batch: Vec<_> = items.by_ref().take(limits::CLIENT_BATCH_ITEMS).collect();
            outcomes.extend(self.queue_batch(batch).await);
        }
        futures_util::future::join_all(outcomes.into_iter().map(|receiver| async {
            match receiver {
                Some(receiver) => receiver.await.unwrap_or_else(|_| Err(closed())),
                None => Err(closed()),
            }
        }))
        .await
    }

    async fn queue_batch(
        &self,
        batch: Vec<(CommitItem, Option<ReservedStart>)>,
    ) -> Vec<Option<oneshot::Receiver<Result<CommitOutcome>>>> {
        let count = u32::try_from(batch.len()).expect("a batch is far smaller than 2^32");
        let Ok(mut places) = Arc::clone(&self.places).acquire_many_owned(count).await else {
            return batch.iter().map(|_| None).collect();
        };
        let (mut pending, mut receivers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for (item, reserved) in batch {
            let (sender, receiver) = oneshot::channel();
            let settled: Settled = Box::new(move |outcome| {
                if let (Some(reserved), Ok(outcome)) = (reserved, &outcome) {
                    reserved.settled(outcome);
                }
                // A caller that went away is not interested any more.
                let _ = sender.send(outcome);
            });
            let bytes = weigh(&item);
            pending.push(Pending { item, bytes, runs: 0, place: places.split(1), settled });
            receivers.push(Some(receiver));
        }
        self.clients.push_all(pending);
        receivers
    }

    /// Refuses new items, commits what is queued, and ends; gives up after `limit`.
    pub async fn close(&self, limit: Duration) {
        self.engine.close();
        self.clients.close();
        let mut workers = self.workers.lock().await;
        let drained =
            tokio::time::timeout(limit, async { while workers.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            workers.shutdown().await;
        }
        self.places.close();
        // Nobody runs these any more.
        for pending in self.engine.drain().into_iter().chain(self.clients.drain()) {
            (pending.settled)(Err(closed()));
        }
    }
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "commit: the provider is closed")
}

pub(super) struct Worker {
    progress: Arc<Progress>,
    pub(super) queue: Arc<Queue>,
    /// Takes only what is too much for the other worker of its queue.
    helps: bool,
    store: Arc<dyn Store>,
    hints: Arc<Hints>,
    pub(super) counters: Arc<Counters>,
    events: Arc<Events>,
}

impl Worker {
    /// Runs until the queue is closed; after a panic it begins again.
    async fn keep_running(self) {
        let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        while AssertUnwindSafe(self.run()).catch_unwind().await.is_err() {
            self.counters.parts_restarted.add(1);
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn run(&self) {
        let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        let mut nap = Nap::default();
        while self.next_batch(&mut nap).await {
            self.progress.step();
            let session = match self.store.acquire(CallerClass::Critical).await {
                Ok(session) => session,
                Err(error) => {
                    self.put_back(self.queue.take(clock::now()).take_items(), &error);
                    tokio::time::sleep(backoff.next_delay()).await;
                    continue;
                }
            };
            self.look_again(&*session).await;
            let mut batch = self.queue.take(clock::now());
            if batch.is_empty() {
                continue;
            }
            match self.run_batch(&*session, batch.take_items()).await {
                Ok(()) => backoff.reset(),
                Err(()) => {
                    drop((session, batch));
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// Waits until there is something to do; false when the queue is closed and empty.
    async fn next_batch(&self, nap: &mut Nap) -> bool {
        self.progress.idle();
        if self.helps { self.queue.crowded().await } else { self.queue.ready(nap).await }
    }

    /// Runs a batch, split as often as the server refuses a part. `Err` asks for a pause.
    async fn run_batch(&self, session: &dyn StoreSession, batch: Vec<Pending>) -> Result<(), ()> {
        // What panicked may have been written.
        let mut unknown = false;
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            let (mut items, rest): (Vec<_>, Vec<_>) = part.into_iter().map(Pending::split).unzip();
            self.note_awaited(&mut items);
            self.progress.step();
            let again = unknown || rest.iter().any(|rest: &Rest| rest.runs > 0);
            let outcome = self.commit(session, &items, again).await;
            match outcome {
                Ok(outcomes) => self.deliver(items, rest, outcomes),
                Err(error) => {
                    let mut part: Vec<_> = items.into_iter().zip(rest).map(Pending::join).collect();
                    if error.kind() == ErrorKind::Conflict {
                        let others;
                        (part, others) = self.set_aside(session, part).await;
                        if others {
                            parts.push(part);
                            continue;
                        }
                    }
                    // A panic may have been the moment's: it is taken for an item's fault when it comes again.
                    unknown |= error.kind() == ErrorKind::Internal;
                    let once = error.kind() == ErrorKind::Internal && part[0].runs < limits::PANIC_RUNS;
                    if !names_a_culprit(error.kind()) || part.len() == 1 && once {
                        for unfinished in parts.into_iter().rev() {
                            part.extend(unfinished);
                        }
                        self.put_back(part, &error);
                        return Err(());
                    }
                    if part.len() > 1 {
                        let second = part.split_off(part.len() / 2);
                        parts.push(second);
                        parts.push(part);
                    } else if let Some(culprit) = part.pop() {
                        self.counters.commit_refused.add(1);
                        self.tell_refused(&culprit.item, &error);
                        (culprit.settled)(Err(error));
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the turns whose end somebody here waits for.
    fn note_awaited(&self, items: &mut [CommitItem]) {
        for item in items {
            if let CommitItem::Turn(turn) = item
                && turn.end.is_some()
            {
                turn.awaited = self.hints.wakes().instances().is_watched(&turn.instance);
            }
        }
    }

    fn tell_refused(&self, item: &CommitItem, error: &Error) {
        let instance = item.instances().into_iter().next().unwrap_or_default();
        let fields =
            serde_json::json!({ "instance": instance, "item": item.what(), "code": error.kind().code() });
        let text =
            format!("the server refused a {} of {instance:?}: {}", item.what(), error.text_without_data());
        self.events.emit("commit-refused", Level::Error, text, fields);
    }

    /// A panic is an item's fault as a refused statement is: the batch is split until it stands alone.
    async fn commit(
        &self,
        session: &dyn StoreSession,
        items: &[CommitItem],
        again: bool,
    ) -> Result<Vec<CommitOutcome>> {
        let committed = async {
            failpoint::hit("commit.batch.before");
            let outcome = session.commit(items, again).await;
            failpoint::hit("commit.batch.after");
            outcome
        };
        AssertUnwindSafe(committed).catch_unwind().await.unwrap_or_else(|_| {
            self.counters.parts_restarted.add(1);
            Err(Error::new(ErrorKind::Internal, "commit: the engine panicked over a batch"))
        })
    }

    fn deliver(&self, items: Vec<CommitItem>, rest: Vec<Rest>, outcomes: Vec<CommitOutcome>) {
        debug_assert_eq!(rest.len(), outcomes.len(), "one outcome for each item");
        self.counters.commit_batches.add(1);
        self.counters.commit_items.add(items.len() as u64);
        failpoint::hit("commit.outcome.before");
        let mut unsettled = Vec::new();
        let mut written = Vec::new();
        let mut ends = Vec::new();
        let mut ready = false;
        for ((mut item, rest), outcome) in items.into_iter().zip(rest).zip(outcomes) {
            if outcome == CommitOutcome::Unsettled {
                unsettled.push(Pending::join((item, rest)));
                continue;
            }
            if !matches!(outcome, CommitOutcome::Fenced | CommitOutcome::Yielded) {
                ready |= makes_ready(&item, &outcome);
                if let CommitOutcome::Ended(end) = &outcome {
                    ends.push(end.clone());
                } else if let CommitItem::Turn(turn) = &mut item {
                    // An end that an earlier run wrote is found, not told.
                    turn.awaited = false;
                }
                written.push(item);
            }
            if catch_unwind(AssertUnwindSafe(|| (rest.settled)(Ok(outcome)))).is_err() {
                // The others of the batch are to hear of their outcome all the same.
                self.counters.parts_restarted.add(1);
            }
        }
        failpoint::hit("commit.outcome.after");
        if !unsettled.is_empty() {
            self.put_back(unsettled, &Error::new(ErrorKind::Conflict, "the instance was being deleted"));
        }
        for end in ends {
            self.hints.wakes().tell_end(*end);
        }
        self.hints.committed(&written, ready);
        for item in &written {
            self.tell(item);
        }
    }

    /// Who waits in this process for an end, or runs what is not wanted any more, hears of it at once.
    fn tell(&self, item: &CommitItem) {
        match item {
            CommitItem::Turn(turn) => {
                let ends = !matches!(turn.end, None | Some(TurnEnd::ContinuedAsNew { .. }));
                if (ends && !turn.awaited) || turn.park.is_some() {
                    self.hints.wakes().instances().look_at(&turn.instance);
                }
                for event in &turn.cancelled_activities {
                    let (instance, execution) = (turn.instance.clone(), turn.execution);
                    self.hints.wakes().gone(&ActivityKey { instance, execution, event: *event });
                }
            }
            CommitItem::Activity(activity) => {
                if matches!(activity.outcome, ActivityOutcome::StandaloneEnded(_)) {
                    self.hints.wakes().standalone().look_at(&activity.key.instance);
                }
            }
            CommitItem::Send(_) | CommitItem::Start(_) | CommitItem::Enqueue(_) => {}
        }
    }

    /// Puts items back for another run; a client's item that has had its runs is answered with the error.
    fn put_back(&self, items: Vec<Pending>, error: &Error) {
        self.counters.commit_retries.add(1);
        let mut again = Vec::with_capacity(items.len());
        for mut pending in items {
            pending.runs += 1;
            let unknown = error.kind() == ErrorKind::CommitUnknown;
            if unknown {
                pending.settled = told::after_unknown(pending.settled);
            }
            let unrepeatable =
                unknown && matches!(&pending.item, CommitItem::Send(send) if send.dedup_key.is_none());
            let used_up = pending.place.is_some() && pending.runs >= limits::CLIENT_COMMIT_RUNS;
            if unrepeatable || used_up {
                (pending.settled)(Err(told_to_client(&pending.item, error)));
            } else {
                again.push(pending);
            }
        }
        told::of_delay(&self.events, &again, error);
        self.queue.push_front(again);
    }
}

/// Whether something can be claimed because of this item, now or soon.
fn makes_ready(item: &CommitItem, outcome: &CommitOutcome) -> bool {
    let told = match item {
        CommitItem::Turn(turn) => {
            let belated = turn.belated.iter().map(|row| &row.task);
            let queued = turn.activities.iter().chain(belated).any(|task| task.lease_ms.is_none());
            queued || !turn.sends.is_empty() || !turn.starts.is_empty() || !turn.timers.is_empty()
        }
        CommitItem::Activity(activity) => matches!(activity.outcome, ActivityOutcome::Retry { .. }),
        CommitItem::Send(_) => false,
        CommitItem::Start(_) => !matches!(outcome, CommitOutcome::Begun { .. }),
        CommitItem::Enqueue(_) => true,
    };
    let due = match outcome {
        CommitOutcome::Done { more_work } => *more_work,
        CommitOutcome::Settled(settled) => settled.more_work,
        _ => false,
    };
    told || due
}

/// One failure is told to several callers, so its cause goes as text.
fn told_to_client(item: &CommitItem, error: &Error) -> Error {
    let context = match item {
        CommitItem::Start(start) => format!("start {:?}", start.instance),
        CommitItem::Send(send) => format!("send to {:?}", send.instance),
        CommitItem::Enqueue(enqueue) => format!("enqueue {} activities", enqueue.tasks.len()),
        CommitItem::Turn(_) | CommitItem::Activity(_) => "commit".to_owned(),
    };
    let told = Error::new(error.kind(), context).caused_by(error.full_text());
    match error.retry_hint() {
        Some(delay) => told.retry_after(delay),
        None => told,
    }
}

/// All of a pending item but the item.
struct Rest {
    bytes: usize,
    runs: u32,
    place: Option<OwnedSemaphorePermit>,
    settled: Settled,
}

impl Pending {
    fn split(self) -> (CommitItem, Rest) {
        let Self { item, bytes, runs, place, settled } = self;
        (item, Rest { bytes, runs, place, settled })
    }

    fn join((item, rest): (CommitItem, Rest)) -> Self {
        let Rest { bytes, runs, place, settled } = rest;
        Self { item, bytes, runs, place, settled }
    }
}

/// Only a refused statement can be one item's fault; connection and transaction errors never name a culprit.
fn names_a_culprit(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Query | ErrorKind::Invalid | ErrorKind::Corrupt | ErrorKind::Internal)
}
