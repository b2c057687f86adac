//! The parts of a running engine that must not end: a part that panics is started again, an answer that makes its handler
//! panic costs its own turn or activity.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    activity::{self, ActivityRunner, Ended},
    clock,
    config::EngineConfig,
    crossing::{ActivityAnswer, Answers, Broken, Outbox, Whose},
    engine::{depths::keep_looking, sweeper::Sweeper},
    limits,
    provider::Provider,
    telemetry::{Backoff, Counters, Gauges, Level, Progress},
    turn::{self, TurnRunner},
};

/// A part that ran this long before it panicked begins with a short pause again.
const GOOD_RUN: Duration = Duration::from_secs(60);

/// Starts what a runtime does beside its claims: the sweep of what was kept long enough, looks at the queues, and the
/// writer of heartbeats. What the looks see is in the answer.
pub(super) fn keep_house(
    parts: &mut JoinSet<()>,
    provider: &Arc<Provider>,
    config: &EngineConfig,
    (turns, activities): (&Arc<TurnRunner>, &Arc<ActivityRunner>),
    stop: &watch::Receiver<bool>,
) -> Arc<Gauges> {
    let gauges = Arc::<Gauges>::default();
    let (shown, looked, stop_looks) = (Arc::clone(&gauges), Arc::clone(provider), stop.clone());
    let interval = config.telemetry.gauge_poll_interval;
    parts.spawn(keep_running(Arc::clone(provider), "look at the queues' depths", move |_| {
        keep_looking(Arc::clone(&looked), Arc::clone(&shown), interval, stop_looks.clone())
    }));
    let (swept, retention, stop_sweep) = (Arc::clone(provider), config.retention.clone(), stop.clone());
    parts.spawn(keep_running(Arc::clone(provider), "sweeper", move |_| {
        Sweeper::new(Arc::clone(&swept), retention.clone()).run(stop_sweep.clone())
    }));
    let (kept, stop_kept) = (Arc::clone(turns), stop.clone());
    parts.spawn(keep_running(Arc::clone(provider), "end of leases that go on", move |_| {
        turn::end_kept(Arc::clone(&kept), stop_kept.clone())
    }));
    let (told, stop_beats) = (Arc::clone(activities), stop.clone());
    parts.spawn(keep_running(Arc::clone(provider), "writer of heartbeats", move |_| {
        activity::keep_beats(Arc::clone(&told), stop_beats.clone())
    }));
    gauges
}

/// Runs a part to its end; after a panic it is begun `again`, after a pause that grows.
pub(super) async fn keep_running<F: Future<Output = ()>>(
    provider: Arc<Provider>,
    part: &'static str,
    begin: impl Fn(bool) -> F,
) {
    let mut backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
    let mut again = false;
    loop {
        let began = clock::now();
        if AssertUnwindSafe(begin(again)).catch_unwind().await.is_ok() {
            return;
        }
        again = true;
        provider.counters().parts_restarted.add(1);
        let text = format!("the {part} panicked and is started again");
        provider.events().emit("part-restarted", Level::Error, text, serde_json::json!({ "part": part }));
        if clock::since(began) >= GOOD_RUN {
            backoff.reset();
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Hands answers to their runners, on the thread that brings them.
pub(super) struct Answering {
    pub(super) outbox: Arc<Outbox>,
    pub(super) turns: Arc<TurnRunner>,
    pub(super) activities: Arc<ActivityRunner>,
    pub(super) counters: Arc<Counters>,
    pub(super) progress: Arc<Progress>,
}

impl Answering {
    /// Never waits.
    pub(super) fn hand_out(&self, text: &str) {
        self.progress.step();
        let answers = Answers::parse(text);
        self.guarded(|| self.each(answers), || self.give_up());
        self.progress.idle();
    }

    fn each(&self, answers: Answers) {
        for reply in answers.turns {
            let frame = reply.frame;
            self.guarded(|| self.turns.answer(reply), || self.turns.abandon(frame));
        }
        for frame in answers.abandoned {
            self.turns.abandon(frame);
        }
        for frame in answers.unregistered {
            self.turns.unregistered(frame);
        }
        for beat in answers.beats {
            self.activities.beat(beat.h, beat.details);
        }
        let mut ended: Vec<Ended> = Vec::new();
        for answer in answers.activities {
            let ActivityAnswer { h, .. } = answer;
            self.guarded(
                || self.activities.answer(h, answer.result(), &mut ended),
                || self.activities.abandon(h),
            );
        }
        let handles: Vec<u32> = ended.iter().map(|one| one.h).collect();
        self.guarded(
            || self.activities.hand_in_all(ended),
            || handles.into_iter().for_each(|h| self.activities.abandon(h)),
        );
        for Broken { whose, error } in answers.broken {
            tracing::error!(error = %error.full_text(), ?whose, "an answer of JavaScript cannot be read");
            match whose {
                Whose::Turn(frame) => self.turns.unreadable(frame, &error),
                Whose::Activity(h) => self.activities.unreadable(h, &error),
                Whose::Unknown => self.give_up(),
            }
        }
    }

    /// Nobody knows what JavaScript has answered: it may never answer what it has.
    fn give_up(&self) {
        let unstarted = self.outbox.unstarted();
        self.turns.give_up(&unstarted.turns);
        self.activities.give_up(&unstarted.activities);
    }

    fn guarded(&self, handle: impl FnOnce(), otherwise: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(handle)).is_err() {
            self.counters.parts_restarted.add(1);
            otherwise();
        }
    }
}
