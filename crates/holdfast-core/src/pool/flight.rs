//! A transaction in one flight, or in two of which the first decides what the second writes: everything of a flight is
//! sent before its first answer is awaited.
//!
//! Invariants: statements are prepared before `begin`, so nothing waits in between (those of a second flight, when they
//! are new to the session, cost one wait more), and an unreadable prelude is found out outside a transaction; a flight travels
//! together, so behind an error nothing of it is run, also no `commit`: a flight that failed is rolled back; when a message
//! cannot be sent, what follows is `rollback` and never `commit`; a lost answer after `commit` was sent is `CommitUnknown`; a
//! transaction that is left open breaks the session.

use std::{
    borrow::Cow,
    future::{Future, poll_fn},
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll},
    time::Duration,
};

use tokio_postgres::{Row, types::ToSql};

use super::{
    classify::classify,
    frames::{APART, TOGETHER},
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
    let prelude = match head {
        Head::Begin { prelude } if !prelude.is_empty() => Some(one("prelude", prelude)),
        _ => None,
    };
    let begin = matches!(head, Head::Begin { .. }).then(|| &*BEGIN);
    let before = begin.into_iter().chain(&prelude).map(|statement| (statement, NO_PARAMS));
    let after = (end == End::Commit).then(|| (&*COMMIT, NO_PARAMS));
    let all: Vec<Step<'_>> = before.chain(steps.iter().copied()).chain(after).collect();
    let handles = futures_util::future::join_all(all.iter().map(|(statement, _)| async {
        // Parsing these costs the server less than a name the session.
        let bare = std::ptr::eq(*statement, &*BEGIN) || std::ptr::eq(*statement, &*COMMIT);
        if bare { Ok(None) } else { inner.prepared(statement).await }
    }));
    let mut prepared = Vec::with_capacity(all.len());
    for (handle, (statement, _)) in handles.await.into_iter().zip(&all) {
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
    let mut messages = Vec::with_capacity(all.len());
    for ((statement, params), handle) in all.iter().zip(&prepared) {
        let call = inner.query(statement, handle.as_ref(), params);
        messages.push(Message { name: statement.name, call: Box::pin(call), answer: None });
    }
    let leading = all.len() - steps.len() - usize::from(end == End::Commit);
    let rows = fly(inner, messages, end, commit_sent).await?;
    Ok(rows.into_iter().skip(leading).take(steps.len()).collect())
}

/// A statement without parameters.
fn one(name: &'static str, text: &str) -> Statement {
    Statement { name, text: text.to_owned(), types: Cow::Borrowed(&[]) }
}

const NO_PARAMS: &[&(dyn ToSql + Sync)] = &[];

static BEGIN: LazyLock<Statement> = LazyLock::new(|| one("begin", "begin"));
static COMMIT: LazyLock<Statement> = LazyLock::new(|| one("commit", "commit"));

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

/// Sends all messages (the last one is the commit, unless the transaction stays open), then waits for every answer. One that
/// cannot be sent is followed by a rollback.
async fn fly(
    inner: &Inner,
    mut messages: Vec<Message<'_>>,
    end: End,
    commit_sent: &mut bool,
) -> Result<Vec<Vec<Row>>> {
    let mut marks = [command(inner, "together", TOGETHER), command(inner, "together", APART)];
    let sent = messages.len();
    poll_fn(|cx| {
        marks[0].poll(cx);
        // A message is sent by its first poll; one that is answered with an error then was never sent.
        for at in 0..messages.len() {
            if at + 1 == sent && end == End::Commit {
                // Over a connection that still stands here the commit may reach the server, whatever is heard of it later.
                *commit_sent = !inner.client.is_closed();
            }
            messages[at].poll(cx);
            if messages[at].failed() {
                messages.truncate(at + 1);
                break;
            }
        }
        marks[1].poll(cx);
        Poll::Ready(())
    })
    .await;
    poll_fn(|cx| {
        let mut waits = false;
        for message in marks.iter_mut().chain(&mut messages) {
            message.poll(cx);
            waits |= message.answer.is_none();
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    if messages.iter().any(Message::failed) && !inner.client.is_closed() {
        roll_back(inner).await;
    }
    judge(inner, messages, *commit_sent)
}

/// The rows of the messages, or the first error. Behind an error nothing was run, so an answer to every message without one
/// is a commit.
fn judge(inner: &Inner, messages: Vec<Message<'_>>, commit_sent: bool) -> Result<Vec<Vec<Row>>> {
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
    Ok(rows)
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
