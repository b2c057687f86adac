//! The committer: two workers, one for what the engine settles and one for what clients send.
//!
//! Each takes whatever is ready, runs it as one batch and tells every item what became of it. A failed run is
//! repeated: a turn, a result and a start are idempotent, so also after an unknown outcome. A client's message is
//! not; its caller is told that the outcome is unknown.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::JoinSet,
};

use crate::{
    commit::{
        aside::Held,
        queue::{Pending, Queue, weigh},
    },
    error::{Error, ErrorKind, Result},
    failpoint, limits,
    notify::Wakes,
    pool::{CallerClass, Pool, Session},
    store::{
        ActivityKey, Statements,
        commit::{ActivityOutcome, CommitItem, CommitOutcome, commit, locked},
    },
    telemetry::{Backoff, Counters, Events, Level},
};

/// What happens when an item is settled; runs on the committer and must be short.
pub type Settled = Box<dyn FnOnce(Result<CommitOutcome>) + Send>;

/// The committer of one provider.
pub struct Committer {
    engine: Arc<Queue>,
    clients: Arc<Queue>,
    places: Arc<Semaphore>,
    workers: tokio::sync::Mutex<JoinSet<()>>,
}

impl Committer {
    /// Starts both workers on the current tokio runtime.
    pub fn start(
        pool: &Arc<Pool>,
        statements: &Arc<Statements>,
        wakes: &Arc<Wakes>,
        (counters, events): (&Arc<Counters>, &Arc<Events>),
    ) -> Self {
        let engine = Arc::new(Queue::new(limits::COMMIT_BATCH_ITEMS));
        let clients = Arc::new(Queue::new(limits::CLIENT_BATCH_ITEMS));
        let mut workers = JoinSet::new();
        for queue in [&engine, &clients] {
            let worker = Worker {
                queue: Arc::clone(queue),
                pool: Arc::clone(pool),
                statements: Arc::clone(statements),
                wakes: Arc::clone(wakes),
                counters: Arc::clone(counters),
                events: Arc::clone(events),
            };
            workers.spawn(worker.run());
        }
        Self {
            engine,
            clients,
            places: Arc::new(Semaphore::new(limits::COMMIT_QUEUE_ITEMS)),
            workers: tokio::sync::Mutex::new(workers),
        }
    }

    /// Hands over what the engine settles. Slots bound how many there are at once.
    pub fn settle(&self, item: CommitItem, settled: Settled) {
        let bytes = weigh(&item);
        if let Err(refused) = self.engine.push(Pending { item, bytes, runs: 0, place: None, settled }) {
            refused(Err(closed()));
        }
    }

    /// Commits a client's start or message. Dropping the future does not take the item back.
    pub async fn submit(&self, item: CommitItem) -> Result<CommitOutcome> {
        self.submit_all(vec![item]).await.pop().unwrap_or_else(|| Err(closed()))
    }

    /// The same for many, which wait together and so share transactions; the outcome at index i belongs to item i. Dropping
    /// the future takes back what is not queued yet.
    pub async fn submit_all(&self, items: Vec<CommitItem>) -> Vec<Result<CommitOutcome>> {
        let mut outcomes = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let batch: Vec<CommitItem> = items.by_ref().take(limits::CLIENT_BATCH_ITEMS).collect();
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
        batch: Vec<CommitItem>,
    ) -> Vec<Option<oneshot::Receiver<Result<CommitOutcome>>>> {
        let count = u32::try_from(batch.len()).expect("a batch is far smaller than 2^32");
        let Ok(mut places) = Arc::clone(&self.places).acquire_many_owned(count).await else {
            return batch.iter().map(|_| None).collect();
        };
        let (mut pending, mut receivers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for item in batch {
            let (sender, receiver) = oneshot::channel();
            let settled: Settled = Box::new(move |outcome| {
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

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "commit: the provider is closed")
}

struct Worker {
    queue: Arc<Queue>,
    pool: Arc<Pool>,
    statements: Arc<Statements>,
    wakes: Arc<Wakes>,
    counters: Arc<Counters>,
    events: Arc<Events>,
}

impl Worker {
    async fn run(self) {
        let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        while self.queue.ready().await {
            let session = match self.pool.acquire(CallerClass::Critical).await {
                Ok(session) => session,
                Err(error) => {
                    self.put_back(self.queue.take(Instant::now()), &error);
                    tokio::time::sleep(backoff.next_delay()).await;
                    continue;
                }
            };
            self.look_again(&session).await;
            let batch = self.queue.take(Instant::now());
            if batch.is_empty() {
                continue;
            }
            match self.run_batch(&session, batch).await {
                Ok(()) => backoff.reset(),
                Err(()) => {
                    drop(session);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// Runs a batch, split as often as the server refuses a part. `Err` asks for a pause.
    async fn run_batch(&self, session: &Session, batch: Vec<Pending>) -> Result<(), ()> {
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            let (items, rest): (Vec<_>, Vec<_>) = part.into_iter().map(Pending::split).unzip();
            failpoint::hit("commit.batch.before");
            let outcome = commit(session, &self.statements, &items).await;
            failpoint::hit("commit.batch.after");
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
                    if !names_a_culprit(error.kind()) {
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

    fn tell_refused(&self, item: &CommitItem, error: &Error) {
        let instance = item.instances().into_iter().next().unwrap_or_default();
        let fields =
            serde_json::json!({ "instance": instance, "item": item.what(), "code": error.kind().code() });
        let text = format!("the server refused a {} of {instance:?}: {}", item.what(), error.full_text());
        self.events.emit("commit-refused", Level::Error, text, fields);
    }

    /// After a commit that lost against somebody else: sets the items aside whose rows are locked, and returns the others
    /// and whether there are some. Without a locked row nothing is set aside.
    async fn set_aside(&self, session: &Session, part: Vec<Pending>) -> (Vec<Pending>, bool) {
        let locked = self.locked(session, instances(&part)).await;
        if locked.is_empty() {
            return (part, false);
        }
        let (held, free): (Vec<_>, Vec<_>) = part.into_iter().partition(|pending| touches(pending, &locked));
        self.counters.commit_retries.add(1);
        let now = Instant::now();
        let held = held.into_iter().map(|pending| Held { since: now, pending }).collect();
        self.queue.put_aside(held, now);
        (free, true)
    }

    /// Looks at the rows of what is aside: what is free is run again, a client's item that waited long enough is answered.
    async fn look_again(&self, session: &Session) {
        let now = Instant::now();
        let aside = self.queue.take_aside(now);
        if aside.is_empty() {
            return;
        }
        let locked = self.locked(session, instances(aside.iter().map(|held| &held.pending))).await;
        let (held, free): (Vec<_>, Vec<_>) =
            aside.into_iter().partition(|held| touches(&held.pending, &locked));
        self.queue.push_front(free.into_iter().map(|held| held.pending).collect());
        let (refused, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| {
            held.pending.place.is_some() && now.duration_since(held.since) >= limits::CLIENT_LOCK_PATIENCE
        });
        self.queue.put_aside(held, now);
        for Held { pending, .. } in refused {
            let text = "commit a client's item: somebody else has locked the instance";
            (pending.settled)(Err(Error::new(ErrorKind::Conflict, text)));
        }
    }

    /// The locked ones among these instances; none when that cannot be told.
    async fn locked(&self, session: &Session, instances: Vec<String>) -> HashSet<String> {
        let instances: Vec<&str> = instances.iter().map(String::as_str).collect();
        locked(session, &self.statements, &instances).await.unwrap_or_default()
    }

    fn deliver(&self, items: Vec<CommitItem>, rest: Vec<Rest>, outcomes: Vec<CommitOutcome>) {
        debug_assert_eq!(rest.len(), outcomes.len(), "one outcome for each item");
        self.counters.commit_batches.add(1);
        self.counters.commit_items.add(items.len() as u64);
        failpoint::hit("commit.outcome.before");
        let mut unsettled = Vec::new();
        let mut written = Vec::new();
        for ((item, rest), outcome) in items.into_iter().zip(rest).zip(outcomes) {
            if outcome == CommitOutcome::Unsettled {
                unsettled.push(Pending::join((item, rest)));
                continue;
            }
            if outcome != CommitOutcome::Fenced {
                written.push(item);
            }
            (rest.settled)(Ok(outcome));
        }
        failpoint::hit("commit.outcome.after");
        if !unsettled.is_empty() {
            self.put_back(unsettled, &Error::new(ErrorKind::Conflict, "the instance was being deleted"));
        }
        self.wakes.work();
        for item in &written {
            self.tell(item);
        }
    }

    /// Who waits in this process for an end, or runs what is not wanted any more, hears of it at once.
    fn tell(&self, item: &CommitItem) {
        match item {
            CommitItem::Turn(turn) => {
                if turn.end.is_some() || turn.park.is_some() {
                    self.wakes.instances().ended(&turn.instance);
                }
                for event in &turn.cancelled_activities {
                    let (instance, execution) = (turn.instance.clone(), turn.execution);
                    self.wakes.gone(&ActivityKey { instance, execution, event: *event });
                }
            }
            CommitItem::Activity(activity) => {
                if matches!(activity.outcome, ActivityOutcome::StandaloneEnded(_)) {
                    self.wakes.standalone().ended(&activity.key.instance);
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
            let unrepeatable =
                error.kind() == ErrorKind::CommitUnknown && matches!(pending.item, CommitItem::Send(_));
            let used_up = pending.place.is_some() && pending.runs >= limits::CLIENT_COMMIT_RUNS;
            if unrepeatable || used_up {
                (pending.settled)(Err(told_to_client(&pending.item, error)));
            } else {
                again.push(pending);
            }
        }
        self.queue.push_front(again);
    }
}

fn instances<'a>(items: impl IntoIterator<Item = &'a Pending>) -> Vec<String> {
    let all: BTreeSet<&str> = items.into_iter().flat_map(|pending| pending.item.instances()).collect();
    all.into_iter().map(str::to_owned).collect()
}

fn touches(pending: &Pending, locked: &HashSet<String>) -> bool {
    pending.item.instances().iter().any(|instance| locked.contains(*instance))
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
