//! The watch over this node: its own fence, the JavaScript loop, the parts of the engine. It looks a few times in each
//! interval, beside the loop of heartbeats and on its thread.
//!
//! It notices and tells; what follows is done by the rooms that hold the work.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    clock::{self, Moment},
    config::HangAction,
    liveness::{
        LivenessEvents, LoopState, Node, tell,
        watchdog::{Stillness, Watchdog},
    },
    telemetry::Progress,
};

/// Signs of life of the JavaScript loop.
#[derive(Debug, Default)]
pub(crate) struct LoopLife(AtomicU64);

impl LoopLife {
    /// The loop turns.
    pub(crate) fn sign(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// From giving up the work of a loop that hangs until the process ends: time to hand the leases back.
const EXIT_DELAY: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    node: Node,
    events: Arc<dyn LivenessEvents>,
    tick: Duration,
    watchdog: Watchdog,
    parts: Vec<(Arc<Progress>, Stillness)>,
    fenced: bool,
    exit: Option<(Instant, Duration)>,
}

impl Watch {
    pub(super) fn new(node: Node, events: Arc<dyn LivenessEvents>) -> Self {
        let tick = node.config.watch_interval();
        let limits = &node.config.watchdog;
        let parts = node.parts.iter().map(|part| (Arc::clone(part), Stillness::new(tick))).collect();
        Self {
            tick,
            watchdog: Watchdog::new(limits.stall_timeout, limits.hang_timeout, tick),
            parts,
            fenced: false,
            exit: None,
            events,
            node,
        }
    }

    /// Looks for ever.
    pub(super) async fn run(&mut self) {
        loop {
            tokio::time::sleep(self.tick).await;
            self.look_at_fence();
            self.look_at_loop();
            self.look_at_parts();
        }
    }

    /// A look panicked; the next one is a tick later.
    pub(super) fn restarted(&self) {
        self.node.provider.counters().parts_restarted.add(1);
    }

    fn look_at_fence(&mut self) {
        let fenced = self.node.standing.fenced(Moment::now());
        if fenced == self.fenced {
            return;
        }
        self.fenced = fenced;
        let id = self.node.key.lock().unwrap_or_else(PoisonError::into_inner).id.clone();
        tell::fence(self.node.provider.events(), &id, fenced);
        if fenced {
            self.node.provider.counters().self_fences.add(1);
            self.events.fenced();
        }
    }

    fn look_at_loop(&mut self) {
        if let Some((at, still)) = self.exit
            && clock::now() >= at
        {
            end_process(still);
        }
        let Some(change) = self.watchdog.look(clock::now(), self.node.life.count()) else { return };
        self.node.standing.set_event_loop(change.to);
        let counters = self.node.provider.counters();
        tell::event_loop(self.node.provider.events(), change, self.events.running());
        match change.to {
            LoopState::Healthy => {
                self.exit = None;
                self.events.may_go_on();
            }
            LoopState::Stalled => {
                counters.loop_stalls.add(1);
                self.events.loop_stalled();
            }
            LoopState::Hung => {
                counters.loop_hangs.add(1);
                self.events.loop_hung();
                let ends = self.node.config.watchdog.hang_action == HangAction::Exit;
                self.exit = ends.then(|| (clock::now() + EXIT_DELAY, change.still));
            }
        }
    }

    /// A part that has something to do and makes no step for the stale age, beyond what it may wait for others.
    fn look_at_parts(&mut self) {
        let now = clock::now();
        let stale_after = self.node.config.liveness.stale_after;
        let mut stuck = None;
        for (part, stillness) in &mut self.parts {
            // A part without work counts as moving: its number is one that no step has.
            let still = stillness.look(now, part.steps().unwrap_or(u64::MAX));
            if part.steps().is_some() && still >= stale_after + part.patience {
                stuck = Some(part.part);
            }
        }
        let before = self.node.standing.stuck();
        if stuck == before {
            return;
        }
        self.node.standing.set_stuck(stuck);
        tell::stuck(self.node.provider.events(), stuck);
        if stuck.is_some() {
            self.node.provider.counters().parts_stuck.add(1);
        } else {
            self.events.may_go_on();
        }
    }
}

/// The loop hangs and the process is to end: nothing that runs in JavaScript, exit handlers included, could do it.
#[expect(clippy::print_stderr, reason = "the last words of the process have no other way out")]
fn end_process(still: Duration) -> ! {
    eprintln!(
        "holdfast: the JavaScript loop has stood still for {} s; the process ends because of eventLoopHangAction 'exit', its work goes on elsewhere",
        still.as_secs()
    );
    std::process::abort();
}
