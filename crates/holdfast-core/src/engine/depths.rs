//! Looks at the depths of the queues now and then, for the metrics and the log.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    manage::Manager,
    provider::Provider,
    telemetry::{Depths, Gauges},
};

/// Looks at once and then at this interval until `stop` says so. A look that fails is left out: the last one stays.
pub(super) async fn keep_looking(
    provider: Arc<Provider>,
    gauges: Arc<Gauges>,
    interval: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let manager = Manager::new(provider);
    while !*stop.borrow() {
        tokio::select! {
            biased;
            seen = manager.depths() => match seen {
                Ok(seen) => {
                    let depths = Depths { turns: seen.turns, activities: seen.activities };
                    tracing::info!(turns = depths.turns, activities = depths.activities, "depths of the queues");
                    gauges.seen(depths);
                }
                Err(error) => tracing::debug!(error = %error.full_text(), "the queues were not looked at"),
            },
            _ = stop.changed() => return,
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(interval) => {}
            _ = stop.changed() => return,
        }
    }
}
