//! Session rows: renewals, recovery, goodbye, sweeps. They are taken by the claim of an activity. The keys of clients'
//! messages are swept with them.
//!
//! All of it runs on the liveness session; batches are bounded and skip locked rows.

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    limits,
    pool::Session,
    store::{NodeKey, Statements, queue::single},
};

/// Rows removed by one sweep: one short statement.
const SWEEP_LIMIT: i64 = 1_000;

/// Renews what this node owns and uses, or used less than `idle_ms` ago; returns how many sessions that were. Dropped half
/// way it may have been done.
pub async fn renew(
    session: &Session,
    statements: &Statements,
    node: &NodeKey,
    in_use: &[String],
    timeout_ms: i64,
    idle_ms: i64,
) -> Result<usize> {
    let params: [&(dyn ToSql + Sync); 5] = [&node.id, &node.epoch, &in_use, &timeout_ms, &idle_ms];
    Ok(single(session, statements, &statements.session_renew, &params).await?.len())
}

/// Removes sessions whose lease is over, a bounded number of them.
pub async fn sweep(session: &Session, statements: &Statements) -> Result<usize> {
    Ok(single(session, statements, &statements.session_sweep, &[&SWEEP_LIMIT]).await?.len())
}

/// Forgets keys of clients' messages that are older than this, a bounded number of them; returns how many that were.
pub async fn forget_message_keys(session: &Session, statements: &Statements) -> Result<usize> {
    let older_than_ms = i64::try_from(limits::MESSAGE_KEYS_KEPT.as_millis()).unwrap_or(i64::MAX);
    let params: [&(dyn ToSql + Sync); 2] = [&older_than_ms, &limits::MESSAGE_KEYS_BATCH];
    Ok(single(session, statements, &statements.message_forget_keys, &params).await?.len())
}
