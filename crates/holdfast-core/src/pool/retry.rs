//! Whole operations, run again when the database could not be reached in the middle of them.
//!
//! Invariants: an operation keeps its place in the pool through all its runs; each run has a session that is whole; the
//! pauses grow, half fixed and half random. Full servers, full pools and an open breaker are the caller's to answer,
//! because trying again at once would only add to the load.

use std::{future::Future, sync::Arc, time::Instant};

use super::{gate::CallerClass, lease::Loan, shared::Shared, trace::Trace};
use crate::{
    error::{ErrorKind, Result},
    telemetry::Backoff,
};

/// Runs `operation` until it succeeds, fails for good, or has been run again as often as the options allow.
pub(super) async fn run<T, F>(
    pool: &Arc<Shared>,
    class: CallerClass,
    operation: impl Fn(Loan) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let config = &pool.config;
    let mut pauses = Backoff::new(config.retry_base_delay, config.retry_max_delay);
    let mut left = config.retry_attempts;
    let asked = Instant::now();
    let mut trace = Trace::begin(class);
    let _place = pool.enter(class).await.inspect_err(|error| trace.ended(Err(error)))?;
    trace.admitted();
    loop {
        let outcome = match pool.lend(asked).await {
            Ok(session) => {
                trace.lent(&session);
                operation(session).await
            }
            Err(error) => Err(error),
        };
        trace.ended(outcome.as_ref().map(drop));
        match outcome {
            Err(error) if left > 0 && is_repeatable(error.kind()) => {
                tracing::debug!(error = %error.full_text(), "an operation is run again");
            }
            outcome => return outcome,
        }
        left -= 1;
        trace.again();
        pool.health.tally.retries.add(1);
        tokio::time::sleep(pauses.next_delay()).await;
    }
}

/// The operation is one that may be run twice, so a commit whose outcome is not known may be, too.
fn is_repeatable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Conflict | ErrorKind::CommitUnknown
    )
}
