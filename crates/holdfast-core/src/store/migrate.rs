//! Migrations: forward only, each in its own transaction, safe with many processes at once.
//!
//! The version is read without a lock; a process that has something to do sends the whole migration as one text whose
//! head tries the advisory lock of the transaction and gives up when another process holds it. Dying half-way leaves
//! nothing behind. It runs on a session to the direct host, and never changes a schema that is newer than it knows.

use std::{
    cmp::Ordering,
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    time::Duration,
};

use tokio_postgres::error::SqlState;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::Session,
    store::{Statements, row::column, statements::fill},
};

/// Name and text of each migration; the first is version 1. Released ones are never edited.
const MIGRATIONS: &[(&str, &str)] =
    &[("create_tables", include_str!("../../migrations/0001_create_tables.sql"))];

/// Tries while another process holds the lock: with the pause below about a minute, far longer than all migrations
/// take together.
const MAX_TRIES: u32 = 600;

/// Shortest pause between two tries; as much again is random, so that processes started together part.
const PAUSE_MS: u64 = 50;

/// The newest version that this program knows.
pub fn known_version() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

/// The version of the schema, 0 when there is none.
pub async fn version(session: &Session, statements: &Statements) -> Result<i32> {
    let version = read_version(session, statements).await;
    version.map_err(|error| match is_forbidden(&error) {
        true => {
            let context = format!(
                "the role may not use schema {0}: grant it USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its \
                 tables",
                statements.schema
            );
            Error::new(ErrorKind::Schema, context).caused_by(error)
        }
        false => error,
    })
}

async fn read_version(session: &Session, statements: &Statements) -> Result<i32> {
    let rows = session.query(&statements.migrate_read_table, &[]).await?;
    let found = rows.first().map(|row| column::<bool>(row, "found")).transpose()?.unwrap_or(false);
    if !found {
        return Ok(0);
    }
    let rows = session.query(&statements.migrate_read_version, &[]).await?;
    Ok(rows.first().map(|row| column(row, "version")).transpose()?.unwrap_or(0))
}

/// Brings the schema to the version that this program knows; does nothing when it is there already. Needs CREATE on the
/// schema, or on the database when the schema is missing too. Dropped half way the running migration is undone.
pub async fn run(session: &Session, statements: &Statements) -> Result<()> {
    let known = known_version();
    for _ in 0..MAX_TRIES {
        let found = version(session, statements).await?;
        if found > known {
            return Err(newer(statements, found, known));
        }
        if found == known {
            return Ok(());
        }
        let (name, text) = MIGRATIONS[usize::try_from(found).unwrap_or(0)];
        match session.batch(&transaction_text(&statements.schema, found + 1, name, text)).await {
            Ok(()) => tracing::info!(schema = statements.schema, version = found + 1, "schema migrated"),
            Err(error) if is_held_by_another(&error) => tokio::time::sleep(pause()).await,
            Err(error) => {
                return Err(refused(statements, found + 1, name, error));
            }
        }
    }
    let context =
        format!("another process has held the migration lock of schema {} for too long", statements.schema);
    Err(Error::new(ErrorKind::Timeout, context))
}

/// Checks that the schema is the one this program knows, and changes nothing.
pub async fn verify(session: &Session, statements: &Statements) -> Result<()> {
    let (found, known) = (version(session, statements).await?, known_version());
    match found.cmp(&known) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(newer(statements, found, known)),
        Ordering::Less => {
            let context = format!(
                "schema {} has version {found}, this program needs version {known}: let one process connect with \
                 migrate 'apply' first",
                statements.schema
            );
            Err(Error::new(ErrorKind::Schema, context))
        }
    }
}

fn newer(statements: &Statements, found: i32, known: i32) -> Error {
    let context = format!(
        "schema {} has version {found}, this program knows only up to version {known}: it was migrated by a newer \
         release; upgrade this process, or give it a schema of its own",
        statements.schema
    );
    Error::new(ErrorKind::Schema, context)
}

/// One text of several commands is one transaction by itself.
fn transaction_text(schema: &str, version: i32, name: &str, migration: &str) -> String {
    [
        include_str!("../../sql/migrate/open.sql"),
        include_str!("../../sql/migrate/check.sql"),
        migration,
        include_str!("../../sql/migrate/record.sql"),
    ]
    .map(|part| fill(part, schema).replace("/*version*/0", &version.to_string()).replace("/*name*/", name))
    .concat()
}

/// The lock was not free, or another process was quicker between the look and the lock.
fn is_held_by_another(error: &Error) -> bool {
    matches!(
        sql_state(error),
        Some(state) if state == &SqlState::LOCK_NOT_AVAILABLE
    )
}

fn refused(statements: &Statements, version: i32, name: &str, error: Error) -> Error {
    let schema = &statements.schema;
    let remedy = match is_forbidden(&error) {
        true => {
            ": the role may not create it; grant it CREATE on the database, or on the schema when that is there, or let its owner connect once"
        }
        false => "",
    };
    let context = format!("migrate schema {schema} to version {version} ({name}){remedy}");
    Error::new(failure_kind(&error), context).caused_by(error)
}

fn is_forbidden(error: &Error) -> bool {
    sql_state(error) == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// The server's refusal is about the schema; anything else keeps its kind.
fn failure_kind(error: &Error) -> ErrorKind {
    if error.kind() == ErrorKind::Query { ErrorKind::Schema } else { error.kind() }
}

fn sql_state(error: &Error) -> Option<&SqlState> {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if let Some(refused) = source.downcast_ref::<tokio_postgres::Error>() {
            return refused.code();
        }
        cause = source.source();
    }
    None
}

fn pause() -> Duration {
    // The seed of a fresh hasher is the process's own source of chance; nothing depends on its quality.
    let chance = RandomState::new().build_hasher().finish();
    Duration::from_millis(PAUSE_MS + chance % PAUSE_MS)
}
