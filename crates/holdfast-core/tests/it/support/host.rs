//! A stand-in for the JavaScript side: it pulls batches, runs small programs, and answers, over the real crossing.
//!
//! A program is a pure function of what it has seen so far; it is asked again after every fact until it waits or ends.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

use holdfast_core::engine::Engine;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

/// What a program has seen so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// Input of the execution.
    pub(crate) input: Value,
    /// Execution number.
    pub(crate) execution: i64,
    /// Commands given so far.
    pub(crate) commands: usize,
    /// Result of each command, by its number; errors as `{"error": …}`.
    pub(crate) results: HashMap<u64, Value>,
    /// One-shot events so far, by name.
    pub(crate) events: Vec<(String, Value)>,
}

/// What a program does next.
pub(crate) enum Move {
    /// Waits.
    Wait,
    /// Gives commands, without their step.
    Ask(Vec<Value>),
    /// Ends with an outcome.
    End(Value),
}

pub(crate) type Program = Arc<dyn Fn(&Seen) -> Move + Send + Sync>;
pub(crate) type Answer = Pin<Box<dyn Future<Output = Option<Result<Value, Value>>> + Send>>;
pub(crate) type Body = Arc<dyn Fn(Value) -> Answer + Send + Sync>;

/// Programs and activity bodies by name.
#[derive(Default, Clone)]
pub(crate) struct Code {
    pub(crate) programs: HashMap<String, Program>,
    pub(crate) bodies: HashMap<String, Body>,
}

impl Code {
    pub(crate) fn program(mut self, name: &str, run: impl Fn(&Seen) -> Move + Send + Sync + 'static) -> Self {
        self.programs.insert(name.to_owned(), Arc::new(run));
        self
    }

    /// A body that answers at once.
    pub(crate) fn body(
        mut self,
        name: &str,
        run: impl Fn(Value) -> Result<Value, Value> + Send + Sync + 'static,
    ) -> Self {
        let run = Arc::new(run);
        let body: Body = Arc::new(move |job| {
            let run = Arc::clone(&run);
            Box::pin(async move { Some(run(job)) })
        });
        self.bodies.insert(name.to_owned(), body);
        self
    }

    /// A body that never answers.
    pub(crate) fn silent(mut self, name: &str) -> Self {
        self.bodies.insert(name.to_owned(), Arc::new(|_| Box::pin(async { None })));
        self
    }

    /// A body that answers `"done"` once it is told to.
    pub(crate) fn waiting(mut self, name: &str, told: watch::Receiver<bool>) -> Self {
        let body: Body = Arc::new(move |_| {
            let mut told = told.clone();
            Box::pin(async move {
                told.wait_for(|go| *go).await.expect("the test tells it");
                Some(Ok(json!("done")))
            })
        });
        self.bodies.insert(name.to_owned(), body);
        self
    }

    /// The list of handlers, as JSON.
    pub(crate) fn handlers(&self) -> String {
        let orchestrations: Vec<Value> =
            self.programs.keys().map(|name| json!({ "name": name, "version": "1.0.0" })).collect();
        let activities: Vec<&String> = self.bodies.keys().collect();
        json!({ "orchestrations": orchestrations, "activities": activities }).to_string()
    }
}

/// The program `steps`: as many activities `work` one after the other as the input says, then the sum of their results.
pub(crate) fn sequence(seen: &Seen) -> Move {
    let wanted = seen.input.as_u64().unwrap_or(0) as usize;
    if seen.results.len() < seen.commands {
        return Move::Wait;
    }
    if seen.commands < wanted {
        return Move::Ask(vec![json!({ "activity": { "name": "work", "input": seen.commands } })]);
    }
    let sum: i64 = seen.results.values().filter_map(Value::as_i64).sum();
    Move::End(json!({ "completed": { "output": sum } }))
}

/// A host that runs until its engine stops.
pub(crate) struct Host {
    tasks: JoinSet<()>,
    /// Activations seen, `true` for a cold one.
    pub(crate) activations: Arc<Mutex<Vec<bool>>>,
}

#[derive(Default)]
struct Frame {
    name: String,
    seen: Seen,
    applied: u64,
}

impl Host {
    pub(crate) fn run(engine: &Arc<Engine>, code: Code) -> Self {
        let activations = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(pull(Arc::clone(engine), code, Arc::clone(&activations)));
        Self { tasks, activations }
    }

    /// Waits for the pull loop, which ends with its engine.
    pub(crate) async fn ended(mut self) {
        while let Some(outcome) = self.tasks.join_next().await {
            outcome.expect("the host does not panic");
        }
    }
}

async fn pull(engine: Arc<Engine>, code: Code, activations: Arc<Mutex<Vec<bool>>>) {
    let mut frames: HashMap<u64, Frame> = HashMap::new();
    let mut bodies = JoinSet::new();
    while let Some(text) = engine.next(64).await {
        let batch: Value = serde_json::from_str(&text).expect("a batch is JSON");
        for frame in batch["evict"].as_array().expect("a list") {
            frames.remove(&frame.as_u64().expect("a number"));
        }
        let mut replies = Vec::new();
        for activation in batch["turns"].as_array().expect("a list") {
            activations.lock().expect("no panic").push(activation.get("start").is_some());
            replies.push(turn(&code, &mut frames, activation));
        }
        if !replies.is_empty() {
            engine.complete(&json!({ "turns": replies }).to_string(), 0);
        }
        for job in batch["activities"].as_array().expect("a list") {
            let name = job["name"].as_str().expect("a name");
            let answer = code.bodies[name](job.clone());
            let (engine, h) = (Arc::clone(&engine), job["h"].clone());
            bodies.spawn(async move {
                let answer = match answer.await {
                    Some(Ok(value)) => json!({ "h": h, "ok": value }),
                    Some(Err(error)) => json!({ "h": h, "err": error }),
                    None => return,
                };
                engine.complete(&json!({ "activities": [answer] }).to_string(), 0);
            });
        }
    }
}

fn turn(code: &Code, frames: &mut HashMap<u64, Frame>, activation: &Value) -> Value {
    let h = activation["h"].as_u64().expect("a frame");
    if let Some(start) = activation.get("start") {
        let seen = Seen {
            input: start["input"].clone(),
            execution: start["execution"].as_i64().expect("a number"),
            ..Seen::default()
        };
        let name = start["name"].as_str().expect("a name").to_owned();
        frames.insert(h, Frame { name, seen, applied: 0 });
    }
    let frame = frames.get_mut(&h).expect("a warm activation has its frame");
    let program = &code.programs[&frame.name];
    let mut commands = Vec::new();
    let mut outcome = go_on(program, frame, &mut commands);
    for fact in activation["f"].as_array().expect("a list") {
        if outcome != json!("waiting") {
            break;
        }
        apply(frame, fact);
        outcome = match fact["t"].as_str() {
            // Code that does not clean up ends with the error that it is thrown.
            Some("cancel") => cancelled(fact),
            _ => go_on(program, frame, &mut commands),
        };
    }
    json!({ "h": h, "n": frame.applied, "c": commands, "o": outcome })
}

fn go_on(program: &Program, frame: &mut Frame, commands: &mut Vec<Value>) -> Value {
    loop {
        match program(&frame.seen) {
            Move::Wait => return json!("waiting"),
            Move::End(outcome) => return outcome,
            Move::Ask(asked) => {
                for mut command in asked {
                    let fields = command.as_object_mut().and_then(|command| command.values_mut().next());
                    fields.expect("one variant")["step"] = json!(frame.applied);
                    commands.push(command);
                    frame.seen.commands += 1;
                }
            }
        }
    }
}

fn cancelled(fact: &Value) -> Value {
    let reason = fact["reason"].as_str().expect("a reason");
    let message = if reason.is_empty() { "canceled".to_owned() } else { format!("canceled: {reason}") };
    json!({ "failed": { "error": { "name": "CancelledError", "message": message, "code": "CANCELLED" } } })
}

fn apply(frame: &mut Frame, fact: &Value) {
    frame.applied += 1;
    let seq = || fact["seq"].as_u64().expect("a number");
    match fact["t"].as_str().expect("a tag") {
        "done" => {
            frame.seen.results.insert(seq(), fact["value"].clone());
        }
        "fail" => {
            frame.seen.results.insert(seq(), json!({ "error": fact["error"].clone() }));
        }
        "event" => {
            let name = fact["name"].as_str().expect("a name").to_owned();
            frame.seen.events.push((name, fact["data"].clone()));
        }
        "cancel" => {}
        other => panic!("unknown fact {other}"),
    }
}
