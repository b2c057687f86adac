//! Deletes standalone activities that have ended and were kept long enough. Several runtimes may do it at once.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    error::Result,
    limits,
    pool::{CallerClass, Loan},
    provider::Provider,
    store::standalone,
    telemetry,
};

/// Sweeps until `stop` says so. Dropped half way nothing is half-done: a sweep is one statement.
pub(crate) async fn sweep(provider: Arc<Provider>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        // Runtimes that were started together do not sweep together.
        let pause = limits::SWEEP_EVERY.mul_f64(0.5 + telemetry::unit());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => return,
        }
        while let Ok(true) = sweep_once(&provider).await {
            // Other callers of the pool come first.
            tokio::time::sleep(Duration::from_millis(10)).await;
            if *stop.borrow() {
                return;
            }
        }
    }
}

/// Deletes one batch; whether there is more.
async fn sweep_once(provider: &Provider) -> Result<bool> {
    let statements = provider.statements();
    let sweep =
        |session: Loan| async move { standalone::sweep(&session, statements, limits::SWEEP_BATCH).await };
    let deleted = provider.pool().run(CallerClass::Ordinary, sweep).await?;
    Ok(i64::try_from(deleted).is_ok_and(|deleted| deleted >= limits::SWEEP_BATCH))
}
