//! The operations of a client.

use std::{sync::Arc, time::Duration};

use holdfast_replay::{MessageBody, event::StoredEvent};

use crate::{
    chance,
    error::{Error, ErrorKind, Result},
    pool::{CallerClass, Loan},
    provider::Provider,
    store::{
        commit::{CommitItem, CommitOutcome, Send, Start},
        instance::{self, InstanceRow},
    },
};

/// What became of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartOutcome {
    /// The instance was made by this call.
    pub created: bool,
    /// Name and input are those of the instance that exists.
    pub same: bool,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Stored; it will be delivered.
    Accepted,
    /// The instance has ended; the message was dropped.
    AlreadyEnded,
    /// There is no such instance; a request to cancel is not kept for one that may come.
    NotFound,
}

/// A client of one provider.
#[derive(Clone)]
pub struct Client {
    provider: Arc<Provider>,
}

impl Client {
    /// A client; no I/O.
    pub fn new(provider: Arc<Provider>) -> Self {
        Self { provider }
    }

    /// Starts instances; each is stored when its outcome is there. One bad start does not fail the others of the call.
    pub async fn start(&self, starts: Vec<Start>) -> Vec<Result<StartOutcome>> {
        let reserve = |mut start: Start| {
            let reserved = self.provider.starters().reserve(&mut start);
            (CommitItem::Start(start), reserved)
        };
        let items = starts.into_iter().map(reserve).collect();
        let outcomes = self.provider.committer().submit_all(items).await;
        let started = |outcome| match outcome? {
            CommitOutcome::Created | CommitOutcome::Begun { .. } => {
                Ok(StartOutcome { created: true, same: true })
            }
            CommitOutcome::Exists { same } => Ok(StartOutcome { created: false, same }),
            other => Err(unexpected("start", &other)),
        };
        outcomes.into_iter().map(started).collect()
    }

    /// Sends a message: an event, a queue message, a cancel request.
    pub async fn send(&self, instance: String, body: MessageBody) -> Result<Sent> {
        self.send_once(instance, body, None).await
    }

    /// Asks an instance to stop. Only one that exists: what is told as accepted takes effect.
    pub async fn cancel(&self, instance: String, reason: String, key: Option<&str>) -> Result<Sent> {
        if self.get(&instance).await?.is_none() {
            return Ok(Sent::NotFound);
        }
        self.send_once(instance, MessageBody::CancelRequested { reason }, key).await
    }

    /// The same with a key of the caller: of messages to one instance with the same key only the first is delivered, and
    /// all are told so, for [`crate::limits::MESSAGE_KEYS_KEPT`]. Without one the message gets a key of its own, so that a commit
    /// whose answer was lost can be run again.
    pub async fn send_once(&self, instance: String, body: MessageBody, key: Option<&str>) -> Result<Sent> {
        let key = key.map_or_else(
            || format!("e:{:016x}{:016x}", chance::bits(), chance::bits()),
            |key| format!("u:{key}"),
        );
        let send = Send { instance, body, dedup_key: Some(key) };
        match self.provider.committer().submit(CommitItem::Send(send)).await? {
            CommitOutcome::Done { .. } => Ok(Sent::Accepted),
            CommitOutcome::AlreadyEnded => Ok(Sent::AlreadyEnded),
            other => Err(unexpected("send", &other)),
        }
    }

    /// An instance, if it exists.
    pub async fn get(&self, instance: &str) -> Result<Option<InstanceRow>> {
        let ids = [instance.to_owned()];
        let (statements, ids) = (self.provider.statements(), ids.as_slice());
        let get = |session: Loan| async move { instance::get(&session, statements, ids).await };
        let rows = self.provider.pool().run(CallerClass::Ordinary, get).await?;
        Ok(rows.into_iter().next())
    }

    /// The ended instance; `None` when `limit` runs out first.
    pub async fn wait(&self, instance: &str, limit: Duration) -> Result<Option<InstanceRow>> {
        self.provider.waiters().wait(instance, limit).await
    }

    /// History of one execution.
    pub async fn history(&self, instance: &str, execution: i64) -> Result<Vec<StoredEvent>> {
        let statements = self.provider.statements();
        let read = |session: Loan| async move {
            instance::read_history(&session, statements, instance, execution).await
        };
        self.provider.pool().run(CallerClass::Ordinary, read).await
    }
}

fn unexpected(what: &str, outcome: &CommitOutcome) -> Error {
    Error::new(ErrorKind::Internal, format!("{what}: unexpected commit outcome {outcome:?}"))
}
