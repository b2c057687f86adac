//! A transaction in one flight: everything of it is sent before its first answer is awaited.
//!
//! Invariants: statements are prepared before `begin`, so nothing waits in between, and an unreadable prelude is found out
//! outside a transaction; a flight travels together, so behind an error nothing of it is run, also no `commit`: a flight that
//! failed is rolled back; when a message cannot be sent, what follows is `rollback` and never `commit`; a lost answer after
//! `commit` was sent is `CommitUnknown`; no transaction is left open.

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

pub(super) async fn run(
    inner: &Inner,
    limit: Duration,
    prelude: &str,
    steps: &[Step<'_>],
) -> Result<Vec<Vec<Row>>> {
    let flight = prepare_to_fly(inner, steps)?;
    let mut commit_sent = false;
    let ended = tokio::time::timeout(limit, attempt(inner, prelude, steps, &mut commit_sent)).await;
    match ended {
        Ok(outcome) => {
            flight.end();
            outcome.inspect(|_| inner.answered())
        }
        Err(_) if commit_sent => Err(unknown(time_limit("transaction", limit))),
        Err(_) => Err(time_limit("transaction", limit)),
    }
}

fn prepare_to_fly<'a>(inner: &'a Inner, steps: &[Step<'_>]) -> Result<Flight<'a>> {
    for (statement, params) in steps {
        check_params(statement, params)?;
    }
    inner.check_usable("transaction")?;
    Ok(Flight::begin(inner))
}

async fn attempt(
    inner: &Inner,
    prelude: &str,
    steps: &[Step<'_>],
    commit_sent: &mut bool,
) -> Result<Vec<Vec<Row>>> {
    let prelude = (!prelude.is_empty()).then(|| one("prelude", prelude));
    let before = std::iter::once(&*BEGIN).chain(&prelude).map(|statement| (statement, NO_PARAMS));
    let all: Vec<Step<'_>> = before.chain(steps.iter().copied()).chain([(&*COMMIT, NO_PARAMS)]).collect();
    let handles = futures_util::future::join_all(all.iter().map(|(statement, _)| async {
        // Parsing these costs the server less than a name the session.
        let bare = std::ptr::eq(*statement, &*BEGIN) || std::ptr::eq(*statement, &*COMMIT);
        if bare { Ok(None) } else { inner.prepared(statement).await }
    }));
    let mut prepared = Vec::with_capacity(all.len());
    for (handle, (statement, _)) in handles.await.into_iter().zip(&all) {
        match handle {
            Ok(handle) => prepared.push(handle),
            Err(error) => return Err(inner.judge(error, statement.name)),
        }
    }
    let mut messages = Vec::with_capacity(all.len());
    for ((statement, params), handle) in all.iter().zip(&prepared) {
        let call = inner.query(statement, handle.as_ref(), params);
        messages.push(Message { name: statement.name, call: Box::pin(call), answer: None });
    }
    let leading = all.len() - steps.len() - 1;
    let rows = fly(inner, messages, commit_sent).await?;
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

/// Sends all messages (the last one is the commit), then waits for every answer. One that cannot be sent is followed by a
/// rollback.
async fn fly(inner: &Inner, mut messages: Vec<Message<'_>>, commit_sent: &mut bool) -> Result<Vec<Vec<Row>>> {
    let mut marks = [command(inner, "together", TOGETHER), command(inner, "together", APART)];
    let sent = messages.len();
    poll_fn(|cx| {
        marks[0].poll(cx);
        // A message is sent by its first poll; one that is answered with an error then was never sent.
        for at in 0..messages.len() {
            if at + 1 == sent {
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
