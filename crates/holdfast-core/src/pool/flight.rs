//! A transaction in one flight, or in two of which the first decides what the second writes: everything of a flight is
//! sent before its first answer is awaited.
//!
//! Invariants: statements are prepared before `begin`, so nothing waits in between (those of a second flight, when they
//! are new to the session, cost one wait more); `begin` is a message of its own, so that an unreadable prelude cannot leave
//! the steps outside a transaction; when a message cannot be sent, what follows is `rollback` and never `commit`; a lost
//! answer after `commit` was sent is `CommitUnknown`; a transaction that is left open breaks the session.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio_postgres::{Row, types::ToSql};

use super::{
    classify::classify,
    session::{Flight, Inner, check_params, time_limit},
    statement::Statement,
};
use crate::error::{Error, ErrorKind, Result};

type Answer = std::result::Result<Vec<Row>, tokio_postgres::Error>;
type Step<'a> = (&'a Statement, &'a [&'a (dyn ToSql + Sync)]);

/// One message: its name for errors, its future, and its answer once it came.
struct Message<'a> {
    name: &'a str,
    call: Pin<Box<dyn Future<Output = Answer> + Send + 'a>>,
    answer: Option<Answer>,
}

impl Message<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.answer.is_none()
            && let Poll::Ready(answer) = self.call.as_mut().poll(cx)
        {
            self.answer = Some(answer);
        }
    }

    fn failed(&self) -> bool {
        matches!(self.answer, Some(Err(_)))
    }
}

/// A transaction whose first flight was answered. Dropped without [`Opened::commit`] it breaks the session, which ends it.
pub struct Opened<'a> {
    inner: &'a Inner,
    limit: Duration,
    flight: Flight<'a>,
}

/// What follows the steps of a flight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The end of the transaction.
    Commit,
    /// Nothing yet.
    Stay,
}

pub(super) async fn run(
    inner: &Inner,
    limit: Duration,
    prelude: &str,
    steps: &[Step<'_>],
) -> Result<Vec<Vec<Row>>> {
    let flight = prepare_to_fly(inner, steps)?;
    let mut commit_sent = false;
    let messages = Head::Begin { prelude };
    let ended =
        tokio::time::timeout(limit, attempt(inner, messages, steps, End::Commit, &mut commit_sent)).await;
    match ended {
        Ok(outcome) => {
            flight.end();
            outcome.inspect(|_| inner.answered())
        }
        Err(_) if commit_sent => Err(unknown(time_limit("transaction", limit))),
        Err(_) => Err(time_limit("transaction", limit)),
    }
}

pub(super) async fn open<'a>(
    inner: &'a Inner,
    limit: Duration,
    prelude: &str,
    steps: &[Step<'_>],
) -> Result<(Opened<'a>, Vec<Vec<Row>>)> {
    let flight = prepare_to_fly(inner, steps)?;
    let head = Head::Begin { prelude };
    match tokio::time::timeout(limit, attempt(inner, head, steps, End::Stay, &mut false)).await {
        Ok(Ok(rows)) => Ok((Opened { inner, limit, flight }, rows)),
        Ok(Err(error)) => {
            flight.end();
            Err(error)
        }
        Err(_) => Err(time_limit("transaction", limit)),
    }
}

impl Opened<'_> {
    /// Sends the steps and `commit` in one flight; the same errors as [`super::Session::transaction`].
    pub async fn commit(self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>> {
        let Self { inner, limit, flight } = self;
        for (statement, params) in steps {
            check_params(statement, params)?;
        }
        let mut commit_sent = false;
        let attempt = attempt(inner, Head::Opened, steps, End::Commit, &mut commit_sent);
        match tokio::time::timeout(limit, attempt).await {
            Ok(outcome) => {
                flight.end();
                outcome.inspect(|_| inner.answered())
            }
            Err(_) if commit_sent => Err(unknown(time_limit("transaction", limit))),
            Err(_) => Err(time_limit("transaction", limit)),
        }
    }
}

fn prepare_to_fly<'a>(inner: &'a Inner, steps: &[Step<'_>]) -> Result<Flight<'a>> {
    for (statement, params) in steps {
        check_params(statement, params)?;
    }
    inner.check_usable("transaction")?;
    Ok(Flight::begin(inner))
}

/// What comes before the steps of a flight.
#[derive(Clone, Copy)]
enum Head<'a> {
    Begin { prelude: &'a str },
    Opened,
}

async fn attempt(
    inner: &Inner,
    head: Head<'_>,
    steps: &[Step<'_>],
    end: End,
    commit_sent: &mut bool,
) -> Result<Vec<Vec<Row>>> {
    let handles =
        futures_util::future::join_all(steps.iter().map(|(statement, _)| inner.prepared(statement)));
    let mut prepared = Vec::with_capacity(steps.len());
    for (handle, (statement, _)) in handles.await.into_iter().zip(steps) {
        match handle {
            Ok(handle) => prepared.push(handle),
            Err(error) => {
                let error = inner.judge(error, statement.name);
                if matches!(head, Head::Opened) {
                    roll_back(inner).await;
                }
                return Err(error);
            }
        }
    }
    let mut messages = Vec::with_capacity(steps.len() + 3);
    if let Head::Begin { prelude } = head {
        messages.push(command(inner, "begin", "begin"));
        if !prelude.is_empty() {
            messages.push(command(inner, "prelude", prelude));
        }
    }
    for ((statement, params), handle) in steps.iter().zip(&prepared) {
        let call = inner.query(statement, handle.as_ref(), params);
        messages.push(Message { name: statement.name, call: Box::pin(call), answer: None });
    }
    fly(inner, messages, end, commit_sent, steps.len()).await
}

/// Ends a transaction that failed; a session on which that fails too is found out by its next call.
async fn roll_back(inner: &Inner) {
    if let Err(error) = inner.client.batch_execute("rollback").await {
        inner.judge(error, "rollback");
        inner.break_off();
    }
}

fn command<'a>(inner: &'a Inner, name: &'static str, sql: &'a str) -> Message<'a> {
    let call = async move { inner.client.batch_execute(sql).await.map(|()| Vec::new()) };
    Message { name, call: Box::pin(call), answer: None }
}

/// Sends all messages, then the end (or the rollback), then waits for every answer.
async fn fly(
    inner: &Inner,
    mut messages: Vec<Message<'_>>,
    end: End,
    commit_sent: &mut bool,
    steps: usize,
) -> Result<Vec<Vec<Row>>> {
    poll_fn(|cx| {
        // A message is sent by its first poll; one that is answered with an error then was never sent.
        for at in 0..messages.len() {
            messages[at].poll(cx);
            if messages[at].failed() {
                messages.truncate(at + 1);
                break;
            }
        }
        let whole = !messages.iter().any(Message::failed);
        if whole && end == End::Stay {
            return Poll::Ready(());
        }
        let mut last =
            if whole { command(inner, "commit", "commit") } else { command(inner, "rollback", "rollback") };
        // Over a connection that still stands here the commit may reach the server, whatever is heard of it later.
        *commit_sent = whole && !inner.client.is_closed();
        last.poll(cx);
        messages.push(last);
        Poll::Ready(())
    })
    .await;
    poll_fn(|cx| {
        for message in &mut messages {
            message.poll(cx);
        }
        if messages.iter().all(|message| message.answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let failed = messages.iter().any(Message::failed);
    if end == End::Stay {
        if failed {
            roll_back(inner).await;
        }
        // Stands for the end that comes later.
        messages.push(Message {
            name: "open",
            call: Box::pin(async { Ok(Vec::new()) }),
            answer: Some(Ok(Vec::new())),
        });
    }
    judge(inner, messages, *commit_sent, steps)
}

/// The rows of the steps, or the first error. A commit is answered by a rollback only when an earlier message failed,
/// so an answer to every message without an error is a commit.
fn judge(
    inner: &Inner,
    messages: Vec<Message<'_>>,
    commit_sent: bool,
    steps: usize,
) -> Result<Vec<Vec<Row>>> {
    let mut rows = Vec::with_capacity(messages.len());
    for Message { name, answer, .. } in messages {
        match answer {
            Some(Ok(answer)) => rows.push(answer),
            Some(Err(error)) => {
                let definite = classify(&error).definite;
                let error = inner.judge(error, name);
                return Err(if commit_sent && !definite { unknown(error) } else { error });
            }
            None => return Err(Error::new(ErrorKind::Internal, "transaction: a message without an answer")),
        }
    }
    rows.pop();
    Ok(rows.split_off(rows.len() - steps))
}

fn unknown(cause: Error) -> Error {
    Error::new(ErrorKind::CommitUnknown, "transaction: the commit was sent, its answer did not come")
        .caused_by(cause)
}

/// Callers spawn these futures.
#[expect(dead_code, reason = "checked by the compiler, never called")]
fn is_send(session: &super::session::Session, steps: &[Step<'_>]) -> impl Send {
    session.transaction("", steps)
}
