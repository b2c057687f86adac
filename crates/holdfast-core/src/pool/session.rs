//! One session of the server: typed statements, time limits, and the rule when it must not be used again.
//!
//! Invariants: a session whose call ran out of time, was dropped half way or lost its connection is broken for good;
//! every call has a client-side time limit (a server-side one would leak to others behind a pooler); calls polled
//! together in order travel together in that order. It never retries.
//!
//! length: every call of a session with the rule that judges its end.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use tokio_postgres::{
    Client, Notification, Row, SimpleQueryMessage,
    types::{ToSql, Type},
};

use super::{
    classify::{classify, engine_error},
    driving::{Driving, describe},
    health::Member,
    prepared::Prepared,
    statement::Statement,
    trace::Usage,
};
use crate::error::{Error, ErrorKind, Result};

/// What a session outside the pool is for; it shows in the application name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionPurpose {
    /// Heartbeats, renewals, recovery.
    Liveness,
    /// LISTEN.
    Listener,
    /// Schema changes.
    Migration,
}

/// A session. Dropping it closes the connection; dropping the future of a call breaks the session, because its
/// answer would otherwise be taken for the next call's.
pub struct Session {
    inner: Arc<Inner>,
    limit: Duration,
}

/// A session with another time limit, see [`Session::with_limit`].
pub struct Limited<'a> {
    session: Session,
    /// The session must not outlive its lease.
    _of: &'a Session,
}

pub(super) struct Inner {
    pub(super) client: Client,
    driving: Driving,
    prepared: Prepared,
    named_statements: bool,
    broken: AtomicBool,
    /// A call was given up before its answer: its query may still run.
    interrupted: AtomicBool,
    in_flight: AtomicUsize,
    usage: Arc<Usage>,
    free_form: AtomicBool,
    /// Set for sessions of the pool.
    member: OnceLock<Member>,
}

/// A call in progress: dropped before its end, it breaks the session.
pub(super) struct Flight<'a> {
    inner: &'a Inner,
    began: Instant,
    ended: bool,
}

impl<'a> Flight<'a> {
    pub(super) fn begin(inner: &'a Inner) -> Self {
        inner.in_flight.fetch_add(1, Ordering::AcqRel);
        Self { inner, began: Instant::now(), ended: false }
    }

    pub(super) fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.inner.interrupted.store(true, Ordering::Release);
            self.inner.break_off();
        }
        self.inner.usage.add(self.began.elapsed());
        self.inner.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Inner {
    pub(super) fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }

    pub(super) fn check_usable(&self, doing: &str) -> Result<()> {
        if !self.is_lost() {
            return Ok(());
        }
        let ended = self.driving.end_reason();
        if let (Some(reason), Some(member)) = (ended, self.member.get()) {
            member.failed(ErrorKind::Unavailable, || reason.to_owned());
        }
        let reason = ended.unwrap_or("an earlier call was given up or failed");
        Err(Error::new(ErrorKind::Unavailable, format!("{doing}: the session is lost: {reason}")))
    }

    /// A call was answered without an error.
    pub(super) fn answered(&self) {
        if let Some(member) = self.member.get() {
            member.answered();
        }
    }

    fn is_lost(&self) -> bool {
        self.broken.load(Ordering::Acquire) || self.client.is_closed()
    }

    pub(super) async fn prepared(
        &self,
        statement: &Statement,
    ) -> Result<Option<tokio_postgres::Statement>, tokio_postgres::Error> {
        if !self.named_statements {
            return Ok(None);
        }
        if let Some(handle) = self.prepared.find(statement) {
            return Ok(Some(handle));
        }
        let handle = self.client.prepare_typed(&statement.text, &statement.types).await?;
        self.prepared.remember(statement, &handle);
        Ok(Some(handle))
    }

    pub(super) async fn query(
        &self,
        statement: &Statement,
        handle: Option<&tokio_postgres::Statement>,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match handle {
            Some(handle) => self.client.query(handle, params).await,
            None => self.client.query_typed(&statement.text, &typed(statement, params)).await,
        }
    }

    async fn execute(
        &self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, tokio_postgres::Error> {
        match self.prepared(statement).await? {
            Some(handle) => self.client.execute(&handle, params).await,
            None => self.client.execute_typed(&statement.text, &typed(statement, params)).await,
        }
    }

    /// Runs one call under the time limit and judges its error.
    pub(super) async fn limited<T>(
        &self,
        doing: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.check_usable(doing)?;
        let flight = Flight::begin(self);
        match tokio::time::timeout(limit, call).await {
            Ok(answer) => {
                flight.end();
                answer.inspect(|_| self.answered()).map_err(|error| self.judge(error, doing))
            }
            Err(_) => Err(time_limit(doing, limit)),
        }
    }

    /// The engine's error for one of this session; marks the session when it is lost with it.
    pub(super) fn judge(&self, error: tokio_postgres::Error, doing: &str) -> Error {
        let class = classify(&error);
        if class.session_lost {
            self.break_off();
        }
        if let Some(member) = self.member.get() {
            let known = self.driving.end_reason();
            member.failed(class.kind, || known.map_or_else(|| describe(&error), str::to_owned));
        }
        let known = if error.as_db_error().is_some() { None } else { self.driving.end_reason() };
        let doing = known
            .map_or_else(|| doing.to_owned(), |reason| format!("{doing}: the session is lost: {reason}"));
        engine_error(error, doing)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A whole session says goodbye by itself once its client is gone; a broken one might wait for ever.
        if self.broken.load(Ordering::Acquire) {
            let running = self.interrupted.load(Ordering::Acquire).then(|| self.client.cancel_token());
            self.driving.abandon(running);
        }
    }
}

pub(super) fn time_limit(doing: &str, limit: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("{doing}: no answer within {} ms", limit.as_millis()))
}

fn typed<'p>(
    statement: &Statement,
    params: &[&'p (dyn ToSql + Sync)],
) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    params.iter().copied().zip(statement.types.iter().cloned()).collect()
}

pub(super) fn check_params(statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
    if params.len() == statement.types.len() {
        return Ok(());
    }
    let text =
        format!("{}: {} parameters for {} places", statement.name, params.len(), statement.types.len());
    Err(Error::new(ErrorKind::Internal, text))
}

impl Session {
    /// `driving` moves the bytes of `client`; `named_statements` is false behind a transaction pooler.
    pub(super) fn new(client: Client, driving: Driving, named_statements: bool, limit: Duration) -> Self {
        let inner = Inner {
            client,
            driving,
            prepared: Prepared::default(),
            named_statements,
            broken: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            usage: Arc::default(),
            free_form: AtomicBool::new(false),
            member: OnceLock::new(),
        };
        Self { inner: Arc::new(inner), limit }
    }

    /// The same session with another time limit for every call made through the returned value.
    pub fn with_limit(&self, limit: Duration) -> Limited<'_> {
        Limited { session: Self { inner: Arc::clone(&self.inner), limit }, _of: self }
    }

    /// Runs a statement that returns rows. Dropping the future breaks the session.
    pub async fn query(&self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        check_params(statement, params)?;
        let inner = &*self.inner;
        let call = async {
            let handle = inner.prepared(statement).await?;
            inner.query(statement, handle.as_ref(), params).await
        };
        inner.limited(statement.name, self.limit, call).await
    }

    /// Runs a statement and counts the rows it touched. Dropping the future breaks the session.
    pub async fn execute(&self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        check_params(statement, params)?;
        self.inner.limited(statement.name, self.limit, self.inner.execute(statement, params)).await
    }

    /// Runs a text of several commands by the simple protocol, for migrations and LISTEN. It may leave settings
    /// behind, so a pooled session that ran one is closed instead of reused. Dropping the future breaks the session.
    pub async fn batch(&self, sql: &str) -> Result<()> {
        self.inner.free_form.store(true, Ordering::Release);
        self.inner.limited("batch", self.limit, self.inner.client.batch_execute(sql)).await
    }

    /// Runs `begin`, the prelude (may be empty), every step and `commit` in one flight: one round trip once the
    /// statements are prepared. Returns the rows of each step.
    ///
    /// The first error counts, not the echoes of an aborted transaction. An error of kind `CommitUnknown` means that
    /// the connection or the time ran out when the commit had been sent; every other error means that nothing was
    /// written. Dropping the future breaks the session and leaves the outcome open.
    pub async fn transaction(
        &self,
        prelude: &str,
        steps: &[(&Statement, &[&(dyn ToSql + Sync)])],
    ) -> Result<Vec<Vec<Row>>> {
        super::flight::run(&self.inner, self.limit, prelude, steps).await
    }

    /// Prepares statements ahead of their first use, in one round trip; nothing to do behind a pooler.
    pub async fn prepare_all(&self, statements: &[&Statement]) -> Result<()> {
        let inner = &*self.inner;
        let all =
            futures_util::future::join_all(statements.iter().map(|statement| inner.prepared(statement)));
        let call = async {
            for answer in all.await {
                answer?;
            }
            Ok(())
        };
        inner.limited("prepare", self.limit, call).await
    }

    /// Whether the server takes no writes.
    pub(super) async fn is_read_only(&self) -> Result<bool, tokio_postgres::Error> {
        let messages =
            self.inner.client.simple_query(include_str!("../../sql/pool/is_read_only.sql")).await?;
        Ok(messages
            .iter()
            .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("on"))))
    }

    /// Proves that the session answers, all the way to the server. Dropping the future breaks the session.
    pub(super) async fn prove(&self, limit: Duration) -> Result<()> {
        let call = self.inner.client.batch_execute(include_str!("../../sql/pool/prove.sql"));
        self.inner.limited("prove a session", limit, call).await
    }

    /// From here on the session is one of the pool's.
    pub(super) fn enlist(&self, member: Member) {
        // A session is opened for one pool only, so nobody was there before.
        let _ = self.inner.member.set(member);
    }

    /// Whether the session must not be used any more.
    pub fn is_broken(&self) -> bool {
        self.inner.is_lost()
    }

    /// Why the session ended, when that came from outside and not from a call of this process.
    pub(super) fn lost_by_itself(&self) -> Option<String> {
        let broken = self.inner.broken.load(Ordering::Acquire);
        (!broken && self.inner.client.is_closed())
            .then(|| self.inner.driving.end_reason().unwrap_or("the server closed it").to_owned())
    }

    /// What the server notifies after LISTEN, for the first caller; it ends with the session. A reader that falls far
    /// behind misses some.
    pub fn take_notifications(&self) -> Option<mpsc::Receiver<Notification>> {
        self.inner.driving.take_notifications()
    }

    /// Says goodbye to the server and waits for the connection's end, for a few seconds at most. Dropping the future
    /// leaves the goodbye to itself. False when the end did not come in time.
    pub async fn close(self) -> bool {
        let farewell = self.inner.driving.farewell();
        drop(self);
        farewell.await
    }

    /// What its calls took so far.
    pub(super) fn usage(&self) -> &Arc<Usage> {
        &self.inner.usage
    }

    /// Whether another caller may have it: whole, at rest, and without settings of its own.
    pub(super) fn is_reusable(&self) -> bool {
        !self.is_broken()
            && self.inner.in_flight.load(Ordering::Acquire) == 0
            && !self.inner.free_form.load(Ordering::Acquire)
    }
}

impl Deref for Limited<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for Limited<'_> {
    /// Does nothing, but makes the compiler refuse a view that is still there when its lease ends.
    fn drop(&mut self) {}
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("broken", &self.is_broken()).field("limit", &self.limit).finish()
    }
}

impl fmt::Debug for Limited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}
