//! Standalone activities: put in the queue, waited for, cancelled, tried again, listed.
//!
//! An id names one task as long as the task or what became of it is stored; queuing it again finds it there.

use std::{sync::Arc, time::Duration};

use holdfast_replay::ErrorPayload;

use crate::{
    config::ms,
    error::{Error, ErrorKind, Result},
    limits,
    pool::{CallerClass, Lease, Loan},
    provider::Provider,
    store::{
        ActivityKey,
        commit::{CommitItem, CommitOutcome, Enqueue, NewStandalone},
        standalone::{self as rows, Source, StandaloneFilter, StandaloneRow},
    },
};

/// What became of one task of an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    /// It was made by this call.
    pub created: bool,
    /// Name and input are those of the task that exists.
    pub same: bool,
}

/// One page of a list.
#[derive(Debug)]
pub struct StandalonePage {
    /// By id.
    pub tasks: Vec<StandaloneRow>,
    /// The id behind which the next page begins; `None` when this is the last.
    pub next: Option<String>,
}

/// What a wait tells.
#[derive(Debug)]
pub enum StandaloneEnd {
    /// It has ended.
    Ended(Box<StandaloneRow>),
    /// There is no such task: it never was, or it is not kept any more.
    Unknown,
    /// The limit ran out first.
    StillOpen,
}

/// The half of a client that deals with standalone activities.
#[derive(Clone)]
pub struct StandaloneClient {
    provider: Arc<Provider>,
}

impl StandaloneClient {
    /// A client; no I/O.
    pub fn new(provider: Arc<Provider>) -> Self {
        Self { provider }
    }

    /// Queues tasks, piece by piece; each piece is stored whole or not at all. Dropped or failed half way the first pieces
    /// are stored: the same call again does the rest.
    pub async fn enqueue(&self, tasks: Vec<NewStandalone>, named: bool) -> Result<Vec<Enqueued>> {
        let mut outcomes = Vec::with_capacity(tasks.len());
        let mut rest = tasks.into_iter();
        loop {
            let piece: Vec<NewStandalone> = rest.by_ref().take(limits::ENQUEUE_PIECE).collect();
            if piece.is_empty() {
                return Ok(outcomes);
            }
            outcomes.extend(self.enqueue_piece(piece, named).await?);
        }
    }

    async fn enqueue_piece(&self, tasks: Vec<NewStandalone>, named: bool) -> Result<Vec<Enqueued>> {
        // An id that was drawn at random is in nobody else's hands: its row is this call's, also after a lost reply.
        let known = if named { tasks.clone() } else { Vec::new() };
        let item = CommitItem::Enqueue(Enqueue { tasks, named });
        let created = match self.provider.committer().submit(item).await? {
            CommitOutcome::Enqueued { created } => created,
            other => {
                let text = format!("enqueue: unexpected commit outcome {other:?}");
                return Err(Error::new(ErrorKind::Internal, text));
            }
        };
        if !named || created.iter().all(|created| *created) {
            return Ok(created.iter().map(|_| Enqueued { created: true, same: true }).collect());
        }
        let existing: Vec<&NewStandalone> =
            known.iter().zip(&created).filter(|(_, created)| !**created).map(|(task, _)| task).collect();
        let mut same = self.compare(&existing).await?.into_iter();
        let outcome = |created: bool| Enqueued { created, same: created || same.next().unwrap_or(true) };
        Ok(created.into_iter().map(outcome).collect())
    }

    /// Whether each task that exists has this name and input; one that is gone meanwhile was the same for all we know.
    async fn compare(&self, tasks: &[&NewStandalone]) -> Result<Vec<bool>> {
        let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let inputs: Vec<&str> = tasks.iter().map(|task| task.input.as_str()).collect();
        let session = self.session().await?;
        let same = rows::compare(&session, self.provider.statements(), &ids, &names, &inputs).await?;
        Ok(same.into_iter().map(|same| same.unwrap_or(true)).collect())
    }

    /// A task, if it is stored.
    pub async fn get(&self, id: &str) -> Result<Option<StandaloneRow>> {
        let ids = [id.to_owned()];
        let (statements, ids) = (self.provider.statements(), ids.as_slice());
        let get = |session: Loan| async move { rows::get(&session, statements, ids).await };
        Ok(self.provider.pool().run(CallerClass::Ordinary, get).await?.into_iter().next())
    }

    /// Waits for an end. A task that has not ended by now is kept for a while once it has, so that the wait sees it.
    pub async fn wait(&self, id: &str, limit: Duration) -> Result<StandaloneEnd> {
        Ok(match self.provider.standalone_waiters().wait(id, limit).await? {
            Some(Some(row)) => StandaloneEnd::Ended(Box::new(row)),
            Some(None) => StandaloneEnd::Unknown,
            None => StandaloneEnd::StillOpen,
        })
    }

    /// Cancels a task that has not ended; false when there is none. One that has not started never will; the signal of a body
    /// that runs in this process is aborted at once, elsewhere with the next heartbeat.
    pub async fn cancel(&self, id: &str, reason: &str) -> Result<bool> {
        let error = ErrorPayload::cancelled(reason).to_payload();
        let session = self.session().await?;
        let keep = ms(limits::AWAITED_RETENTION);
        let cancelled = rows::cancel(&session, self.provider.statements(), id, error.as_str(), keep).await?;
        if cancelled {
            self.provider.wakes().gone(&ActivityKey { instance: id.to_owned(), execution: 0, event: 0 });
            self.provider.wakes().standalone().look_at(id);
        }
        Ok(cancelled)
    }

    /// Queues a task anew that failed, was poisoned or cancelled; false when there is none.
    pub async fn retry(&self, id: &str) -> Result<bool> {
        let session = self.session().await?;
        let queued = rows::retry(&session, self.provider.statements(), id).await?;
        if queued {
            self.provider.hints().released(1);
        }
        Ok(queued)
    }

    /// Forgets a task that has ended; false when there is none. Refuses one that has not.
    pub async fn delete(&self, id: &str) -> Result<bool> {
        let session = self.session().await?;
        let deleted = rows::delete(&session, self.provider.statements(), id).await?;
        drop(session);
        if !deleted && self.get(id).await?.is_some_and(|row| row.ended_at_ms.is_none()) {
            let text = format!("activity {id:?} has not ended: cancel it first");
            return Err(Error::new(ErrorKind::StillRunning, text));
        }
        Ok(deleted)
    }

    /// Tasks that pass a filter, by id, from behind an id on: at most `limit`, and at most [`limits::LIST_PAGE_MAX`].
    pub async fn list(
        &self,
        filter: &StandaloneFilter,
        after: Option<String>,
        limit: i64,
    ) -> Result<StandalonePage> {
        let limit = limit.clamp(1, limits::LIST_PAGE_MAX);
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let session = self.session().await?;
        let statements = self.provider.statements();
        let mut page = StandalonePage { tasks: Vec::new(), next: after };
        loop {
            let mut found = Vec::new();
            let mut frontier: Option<String> = None;
            for source in sources(filter.status.as_deref()) {
                let bounds = (limit, limits::LIST_STRETCH);
                let step =
                    rows::list(&session, statements, *source, filter, page.next.as_deref(), bounds).await?;
                found.extend(step.found);
                frontier = match (frontier, step.end) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
            }
            // Behind the place where one of the sources stopped, the order of both is not known yet.
            found.retain(|row| frontier.as_ref().is_none_or(|end| row.id <= *end));
            found.sort_by(|one, other| one.id.cmp(&other.id));
            found.dedup_by(|one, other| one.id == other.id);
            page.tasks.extend(found);
            let past = |end: &String| {
                let prefix = filter.id_prefix.as_deref().unwrap_or("");
                end.as_str() > prefix && !end.starts_with(prefix)
            };
            page.next = frontier.filter(|end| !past(end));
            if page.tasks.len() > wanted {
                page.tasks.truncate(wanted);
                page.next = page.tasks.last().map(|row| row.id.clone());
            }
            if page.next.is_none() || page.tasks.len() >= wanted {
                return Ok(page);
            }
        }
    }

    async fn session(&self) -> Result<Lease> {
        self.provider.pool().acquire(CallerClass::Ordinary).await
    }
}

/// Where tasks of a status are stored.
fn sources(status: Option<&str>) -> &'static [Source] {
    match status {
        None => &[Source::Queued, Source::Ended],
        Some("Pending" | "Running") => &[Source::Queued],
        Some(_) => &[Source::Ended],
    }
}
