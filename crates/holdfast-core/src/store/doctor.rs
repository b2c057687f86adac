//! What a check of a deployment reads: facts as JSON objects, read without a lock. It never changes a row.

use serde::de::DeserializeOwned;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{Session, Statement},
    store::{Statements, row::column},
};

/// What the server, the session and the role are.
pub async fn server<T: DeserializeOwned>(session: &Session, statements: &Statements) -> Result<T> {
    parsed(facts(session, &statements.doctor_read_server).await?)
}

/// What keeps vacuum from removing dead rows.
pub async fn transactions<T: DeserializeOwned>(session: &Session, statements: &Statements) -> Result<T> {
    parsed(facts(session, &statements.doctor_read_transactions).await?)
}

/// State of each table of the schema.
pub async fn tables<T: DeserializeOwned>(session: &Session, statements: &Statements) -> Result<T> {
    parsed(facts(session, &statements.doctor_read_tables).await?)
}

/// Nodes, overdue work and what has ended.
pub async fn work<T: DeserializeOwned>(session: &Session, statements: &Statements) -> Result<T> {
    parsed(facts(session, &statements.doctor_read_work).await?)
}

/// Which server session answers; with `hold` it stays busy for a moment.
pub async fn server_session(session: &Session, statements: &Statements, hold: bool) -> Result<i32> {
    let statement = if hold { &statements.doctor_hold } else { &statements.doctor_read_pid };
    let rows = session.query(statement, &[]).await?;
    rows.first().map(|row| column(row, "pid")).transpose()?.ok_or_else(nothing)
}

/// Listens on the channel of the check.
pub async fn listen(session: &Session, statements: &Statements) -> Result<()> {
    session.batch(&statements.doctor_listen.text).await
}

/// Sends a hint to it.
pub async fn notify(session: &Session, statements: &Statements) -> Result<()> {
    session.query(&statements.doctor_notify, &[]).await.map(drop)
}

async fn facts(session: &Session, statement: &Statement) -> Result<String> {
    let rows = session.query(statement, &[]).await?;
    rows.first().map(|row| column(row, "facts")).transpose()?.ok_or_else(nothing)
}

fn parsed<T: DeserializeOwned>(text: String) -> Result<T> {
    serde_json::from_str(&text)
        .map_err(|error| Error::new(ErrorKind::Internal, "read the facts of a check").caused_by(error))
}

fn nothing() -> Error {
    Error::new(ErrorKind::Internal, "a check of the server gave no row")
}
