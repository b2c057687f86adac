//! What the turn queue and the activity queue have in common: lease times, where a claim starts to look, renewals,
//! releases.
//!
//! Times are kept within what the database's calendar holds. It knows no columns of either queue but the fence.

use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    pool::{Row, Session, Statement},
    store::{
        Fence, NodeKey, Statements,
        low_water::{Look, Queue},
        node::{fences, numbers},
        row::column,
        turn::{ClaimRequest, RenewRequest},
    },
};

/// Longest lease, delay or backoff in ms, a hundred years: beyond it times overflow.
pub(super) const MAX_MS: i64 = 100 * 365 * 24 * 3_600_000;

/// One statement in a transaction of its own, in one flight.
pub(super) async fn single(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    let mut results = session.transaction(&statements.settings, &[(statement, params)]).await?;
    results.pop().ok_or_else(|| Error::new(ErrorKind::Internal, format!("{}: no result", statement.name)))
}

/// The same for a claim and the reads that follow it: its time limit is its own, so a slow claim is not a lost one.
pub(super) async fn patient(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    let session = session.with_limit(limits::CLAIM_LIMIT);
    let mut results = session.transaction(&statements.patient_settings, &[(statement, params)]).await?;
    results.pop().ok_or_else(|| Error::new(ErrorKind::Internal, format!("{}: no result", statement.name)))
}

/// What a claim of either queue sends beside its names.
pub(super) struct ClaimTerms {
    pub(super) times: LeaseTimes,
    /// One for suspects, so that an item that kills its process takes no other with it.
    pub(super) limit: i64,
    pub(super) look_back_ms: i64,
    look: Look,
    queue: Queue,
}

impl ClaimTerms {
    pub(super) fn of(statements: &Statements, queue: Queue, request: &ClaimRequest<'_>) -> Self {
        let look = statements.low_water.look(queue, request.node, Instant::now());
        Self {
            times: LeaseTimes::clamped(
                request.lock_timeout_ms,
                request.backoff_base_ms,
                request.backoff_max_ms,
            ),
            limit: if request.isolated { request.limit.min(1) } else { request.limit },
            // A look for suspects leaves no mark.
            look_back_ms: if request.isolated { MAX_MS } else { look.back_ms() },
            look,
            queue,
        }
    }

    /// Moves the mark of the node to where this claim stopped. Suspects have an index of their own and no mark.
    pub(super) fn looked(
        &self,
        statements: &Statements,
        request: &ClaimRequest<'_>,
        rows: &[Row],
    ) -> Result<()> {
        if request.isolated || self.limit <= 0 {
            return Ok(());
        }
        let mut full = None;
        if rows.len() as i64 >= self.limit || was_cut(rows)? {
            for row in rows {
                let waited: i64 = column(row, "waited_ms")?;
                let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(0));
                full = Some(full.map_or(waited, |shortest: Duration| shortest.min(waited)));
            }
        }
        statements.low_water.looked(self.queue, request.node, self.look, full, Instant::now());
        Ok(())
    }
}

/// Whether a claim left rows that were due because those it took are large enough together.
fn was_cut(rows: &[Row]) -> Result<bool> {
    let Some(row) = rows.first().filter(|row| row.columns().iter().any(|column| column.name() == "cut"))
    else {
        return Ok(false);
    };
    column(row, "cut")
}

/// The claimed rows that can be understood. One that cannot must not stop the others: its lease is known to nobody, so the
/// heartbeat releases it, and it is looked at again.
pub(super) fn readable<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T>) -> Vec<T> {
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(item) => claimed.push(item),
            Err(error) => tracing::error!(error = %error.full_text(), "a claimed row cannot be read"),
        }
    }
    claimed
}

/// Lease lengths within the bounds that the database's times have.
pub(super) struct LeaseTimes {
    pub(super) lock_timeout_ms: i64,
    pub(super) backoff_base_ms: i64,
    pub(super) backoff_max_ms: i64,
}

impl LeaseTimes {
    fn clamped(lock_timeout_ms: i64, backoff_base_ms: i64, backoff_max_ms: i64) -> Self {
        Self {
            lock_timeout_ms: lock_timeout_ms.clamp(0, MAX_MS),
            backoff_base_ms: backoff_base_ms.clamp(0, MAX_MS),
            backoff_max_ms: backoff_max_ms.clamp(0, MAX_MS),
        }
    }
}

/// A renewal of either queue.
pub(super) async fn renew_with(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    node: &NodeKey,
    held: &[Fence],
    request: &RenewRequest,
) -> Result<Vec<Fence>> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let times = LeaseTimes::clamped(request.lock_timeout_ms, request.backoff_base_ms, request.backoff_max_ms);
    let rows = single(
        session,
        statements,
        statement,
        &[
            &node.id,
            &node.epoch,
            &numbers(held),
            &times.lock_timeout_ms,
            &times.backoff_base_ms,
            &times.backoff_max_ms,
        ],
    )
    .await?;
    fences(&rows)
}

/// An abandon of either queue.
pub(super) async fn abandon_with(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    node: &NodeKey,
    held: &[Fence],
    at_once: bool,
) -> Result<u64> {
    if held.is_empty() {
        return Ok(0);
    }
    let rows =
        single(session, statements, statement, &[&node.id, &node.epoch, &numbers(held), &at_once]).await?;
    Ok(rows.len() as u64)
}

/// A release of either queue.
pub(super) async fn release_with(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    node: &NodeKey,
    held: &[Fence],
    delay_ms: i64,
) -> Result<u64> {
    if held.is_empty() {
        return Ok(0);
    }
    let delay_ms = delay_ms.clamp(0, MAX_MS);
    let rows =
        single(session, statements, statement, &[&node.id, &node.epoch, &numbers(held), &delay_ms]).await?;
    Ok(rows.len() as u64)
}

/// A look at lost leases of either queue.
pub(super) async fn gone_with(
    session: &Session,
    statements: &Statements,
    statement: &Statement,
    node: &NodeKey,
    held: &[Fence],
) -> Result<Vec<Fence>> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let rows = single(session, statements, statement, &[&node.id, &node.epoch, &numbers(held)]).await?;
    rows.iter().map(|row| Ok(Fence(column(row, "fence")?))).collect()
}
