//! What runs in the JavaScript thread of a simulated process: it pulls batches, runs frames and bodies, and answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::program::{Dice, Frame};
use crate::{clock, engine::Engine};

/// What bodies did, kept outside of the engine: an item is instance, execution, event and attempt.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) started: BTreeMap<(String, i64, i64, i64), u32>,
    /// Ends once told.
    pub(super) killed: bool,
    /// It was asked to stop, and has: the process ends by itself.
    pub(super) ended: bool,
    /// It was stopped from outside since it was asked.
    pub(super) slept: bool,
    /// It was asked.
    stopping: bool,
    /// What did not hold: invariant and text.
    pub(super) wrong: Vec<(&'static str, String)>,
    /// The loop stands still until then.
    blocked_until: Option<Instant>,
    grace: Duration,
}

/// What a process shares with the world.
#[derive(Clone, Default)]
pub(super) struct Ground {
    ledger: Arc<Mutex<Ledger>>,
    asked: Arc<Notify>,
}

impl Ground {
    pub(super) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the process to stop. One that does already goes on with what it was asked first.
    pub(super) fn ask_to_stop(&self, grace: Duration) {
        let mut ledger = self.lock();
        if !ledger.stopping {
            (ledger.grace, ledger.slept, ledger.stopping) = (grace, false, true);
            self.asked.notify_one();
        }
    }

    /// The JavaScript loop stands still until then.
    pub(super) fn block(&self, until: Instant) {
        self.lock().blocked_until = Some(until);
    }

    /// Comes back when the loop turns.
    async fn turn_of_loop(&self) {
        loop {
            let until = self.lock().blocked_until.filter(|until| *until > clock::now());
            let Some(until) = until else { return };
            tokio::time::sleep_until(until.into()).await;
        }
    }

    /// Stops the engine once that is asked for.
    async fn stop_when_asked(self, engine: Arc<Engine>) {
        self.asked.notified().await;
        let (begun, grace) = (clock::now(), self.lock().grace);
        engine.shutdown(grace).await;
        let took = clock::since(begun);
        let mut ledger = self.lock();
        if !ledger.slept && took > grace + STOP_LIMIT {
            let text =
                format!("a stop with a grace of {} ms took {} ms", grace.as_millis(), took.as_millis());
            ledger.wrong.push(("B7", text));
        }
        ledger.ended = true;
    }
}

/// A stop ends so long after its grace at the latest.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// Gives the signs of life of a loop that is watched.
async fn live(engine: Arc<Engine>, ground: Ground) {
    let Some(every) = engine.life_interval() else { return };
    loop {
        ground.turn_of_loop().await;
        engine.sign_of_life();
        tokio::time::sleep(every).await;
    }
}

/// The loop of one process. It ends with its engine.
pub(super) async fn run(engine: Arc<Engine>, ground: Ground, mut dice: Dice, watched: bool) {
    let mut beside = JoinSet::new();
    if watched {
        beside.spawn(live(Arc::clone(&engine), ground.clone()));
    }
    let mut stopping = JoinSet::new();
    stopping.spawn(ground.clone().stop_when_asked(Arc::clone(&engine)));
    serve(&engine, &ground, &mut dice).await;
    // The engine ends because it was asked to; the goodbye comes last.
    stopping.join_next().await;
}

async fn serve(engine: &Arc<Engine>, ground: &Ground, dice: &mut Dice) {
    let mut frames: BTreeMap<u64, Frame> = BTreeMap::new();
    let mut bodies = JoinSet::new();
    let told = Arc::new(Mutex::new(BTreeSet::new()));
    let (loop_turns, mut brought) = mpsc::unbounded_channel();
    let hand = Hand { engine: Arc::clone(engine), ground: ground.clone(), loop_turns };
    loop {
        let text = tokio::select! {
            biased;
            Some(text) = brought.recv() => text,
            text = engine.next(16) => match text {
                Some(text) => text,
                None => return,
            },
        };
        ground.turn_of_loop().await;
        let batch: Value = serde_json::from_str(&text).expect("a batch is JSON");
        for frame in list(&batch["evict"]) {
            frames.remove(&frame.as_u64().unwrap_or(0));
        }
        for abort in list(&batch["aborts"]) {
            told.lock().unwrap_or_else(PoisonError::into_inner).insert(abort["h"].as_u64().unwrap_or(0));
        }
        if dice.one_in(4) {
            tokio::time::sleep(Duration::from_millis(dice.between(1, 20))).await;
        }
        let turns = list(&batch["turns"]).map(|activation| turn(&mut frames, activation)).collect::<Vec<_>>();
        if !turns.is_empty() {
            hand.answer(&json!({ "turns": turns }), dice);
        }
        for job in list(&batch["activities"]) {
            let dice = Dice(dice.bits());
            while bodies.try_join_next().is_some() {}
            bodies.spawn(body(hand.clone(), Arc::clone(&told), dice, job.clone()));
        }
    }
}

/// What answers: the loop, and the bodies of activities.
#[derive(Clone)]
struct Hand {
    engine: Arc<Engine>,
    ground: Ground,
    /// What an answer brings is for the loop.
    loop_turns: mpsc::UnboundedSender<String>,
}

impl Hand {
    /// Answers, and mostly takes what follows at once, as the sdk does.
    fn answer(&self, answers: &Value, dice: &mut Dice) {
        let text = answers.to_string();
        let max = if dice.one_in(4) { 0 } else { 16 };
        if let Some(batch) = self.engine.complete(&text, max) {
            // Behind a stop nobody runs it, as in a loop that has ended.
            let _ = self.loop_turns.send(batch);
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn turn(frames: &mut BTreeMap<u64, Frame>, activation: &Value) -> Value {
    let h = activation["h"].as_u64().unwrap_or(0);
    if let Some(start) = activation.get("start") {
        frames.insert(h, Frame::new(start));
    }
    match frames.get_mut(&h) {
        Some(frame) => frame.answer(activation),
        // As the sdk says it of a frame that it does not have.
        None => json!({ "h": h, "abandon": true }),
    }
}

async fn body(hand: Hand, told: Arc<Mutex<BTreeSet<u64>>>, mut dice: Dice, job: Value) {
    let ground = &hand.ground;
    let (h, name) = (job["h"].as_u64().unwrap_or(0), job["name"].as_str().unwrap_or_default());
    let number = |field: &str| job[field].as_i64().unwrap_or(0);
    let instance = job["instance"].as_str().unwrap_or_default().to_owned();
    {
        let mut ledger = ground.lock();
        let item = (instance, number("execution"), number("event"), number("attempt"));
        *ledger.started.entry(item).or_default() += 1;
        ledger.killed |= name == "kills";
    }
    let takes = match name {
        "slow" => job["input"].as_u64().unwrap_or(0),
        "kills" => 3_600_000,
        _ => dice.below(job["input"].as_u64().unwrap_or(0) + 1),
    };
    let (end, heeds) = (tokio::time::Instant::now() + Duration::from_millis(takes), dice.one_in(2));
    while tokio::time::Instant::now() < end {
        tokio::time::sleep_until(end.min(tokio::time::Instant::now() + Duration::from_millis(500))).await;
        ground.turn_of_loop().await;
        if heeds && told.lock().unwrap_or_else(PoisonError::into_inner).contains(&h) {
            return hand.answer(&json!({ "activities": [{ "h": h }] }), &mut dice);
        }
    }
    ground.turn_of_loop().await;
    let fails = name == "fails" || (name == "flaky" && (number("attempt") < 2 || dice.one_in(3)));
    let answer = if fails {
        json!({ "h": h, "err": { "name": "Error", "message": "wanted" } })
    } else {
        json!({ "h": h, "ok": dice.below(100) })
    };
    hand.answer(&json!({ "activities": [answer] }), &mut dice);
}
