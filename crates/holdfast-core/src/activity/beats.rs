//! Heartbeats of running bodies: what they told last is stored for the delivery after this one, and silence is noticed.
//!
//! All heartbeats of a runtime are written together, once a second at most, never one by one. A write that fails is made
//! again with what was told meanwhile.

use std::sync::Arc;

use holdfast_replay::Payload;
use tokio::sync::watch;

use crate::{activity::ActivityRunner, error::Result, limits, pool::CallerClass, store::activity::Beat};

/// Writes heartbeats until `stop` says so. Dropped half way one write may have been made.
pub(crate) async fn keep_beats(runner: Arc<ActivityRunner>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        tokio::select! {
            biased;
            () = runner.beats.notified() => {}
            _ = stop.changed() => return,
        }
        if let Err(error) = runner.write_beats().await {
            tracing::debug!(error = %error.full_text(), "heartbeats were not written; tried again");
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(limits::BEAT_EVERY) => {}
            _ = stop.changed() => return,
        }
    }
}

impl ActivityRunner {
    /// A body told something.
    pub(crate) fn beat(self: &Arc<Self>, h: u32, details: Payload) {
        let silence = {
            let mut table = self.lock();
            let Some(flight) = table.get_mut(h).filter(|flight| !flight.settling) else { return };
            flight.heartbeat = Some(details);
            flight.has_news = true;
            flight.limits.silence
        };
        if let Some(silence) = silence {
            self.watch_silence(h, silence);
        }
        self.beats.notify_one();
    }

    /// Stores what was told since the last write.
    pub(crate) async fn write_beats(&self) -> Result<()> {
        let beats = self.lock().take_beats();
        if beats.is_empty() {
            return Ok(());
        }
        let written = self.store_beats(&beats).await;
        if self.lock().wrote_beats(&beats, written.as_deref().unwrap_or_default()) {
            // The row was locked at that moment, or nothing was written.
            self.beats.notify_one();
        }
        written.map(drop)
    }

    async fn store_beats(&self, beats: &[Beat]) -> Result<Vec<crate::store::Fence>> {
        let session = self.provider.store().acquire(CallerClass::Ordinary).await?;
        session.beat(beats).await
    }
}
