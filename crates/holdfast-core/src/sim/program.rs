//! The JavaScript side of the simulation: random programs, and frames that run them over the real texts of the crossing.
//!
//! A program follows from its input, a seed, so that every node runs the same one. A frame is given facts and answers with
//! commands, as the sdk's frames do; what a race does not want any more is cancelled, and so is all when the instance is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::chance;

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn bits(&mut self) -> u64 {
        let (state, bits) = chance::step(self.0);
        self.0 = state;
        bits
    }

    /// Below the bound, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// Between both.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// The seed of something below: a number that JSON keeps.
    pub(super) fn seed(&mut self) -> u64 {
        self.bits() >> 12
    }
}

#[derive(Debug, Clone)]
enum Task {
    Activity(&'static str, u64),
    Timer(u64),
    Event(&'static str),
    Child(u64),
    All(Vec<Task>),
    Race(Vec<Task>),
}

#[derive(Debug)]
enum Node {
    Leaf(usize),
    All(Vec<Node>),
    Race(Vec<Node>, Option<usize>),
}

/// How deep children go, and how often an instance continues as new.
const DEEPEST: u64 = 2;
const LONGEST: i64 = 3;

/// The input of an orchestration: a seed and how deep it is.
pub(super) fn input(seed: u64, depth: u64) -> String {
    format!("[{seed},{depth}]")
}

/// One running execution.
#[derive(Debug)]
pub(super) struct Frame {
    tasks: Vec<Task>,
    cleanup: Vec<Task>,
    outcome: Value,
    next: usize,
    awaiting: Option<Node>,
    results: Vec<Option<Value>>,
    /// Unread events and open waits, by name.
    mailboxes: BTreeMap<String, (Vec<Value>, Vec<usize>)>,
    applied: u64,
    cancelled: Option<String>,
    ended: bool,
    diverged: bool,
    commands: Vec<Value>,
}

impl Frame {
    /// From the `start` of a cold activation.
    pub(super) fn new(start: &Value) -> Self {
        let execution = start["execution"].as_i64().unwrap_or(1);
        let depth = start["input"][1].as_u64().unwrap_or(0);
        let mut dice = Dice(start["input"][0].as_u64().unwrap_or(0));
        let count = dice.between(1, 4);
        let tasks = (0..count).map(|_| task(&mut dice, depth, 0)).collect();
        let cleanup = (0..dice.below(2)).map(|_| Task::Activity("fine", dice.below(40))).collect();
        let outcome = match dice.below(6) {
            0 => json!({ "failed": { "error": { "name": "Error", "message": "wanted" } } }),
            1 | 2 if execution < LONGEST => {
                let input: Value = json!([dice.seed(), depth]);
                json!({ "continued": { "input": input } })
            }
            _ => json!({ "completed": { "output": dice.below(1000) } }),
        };
        let mut frame = Self {
            tasks,
            cleanup,
            outcome,
            next: 0,
            awaiting: None,
            results: Vec::new(),
            mailboxes: BTreeMap::new(),
            applied: 0,
            cancelled: None,
            ended: false,
            diverged: false,
            commands: Vec::new(),
        };
        for carried in start["carried"].as_array().into_iter().flatten() {
            frame.arrive(&carried["name"], carried["data"].clone());
        }
        frame.go_on();
        frame
    }

    /// Applies the facts of an activation and answers it.
    pub(super) fn answer(&mut self, activation: &Value) -> Value {
        for fact in activation["f"].as_array().into_iter().flatten() {
            if self.ended || self.diverged {
                break;
            }
            self.apply(fact);
        }
        let outcome = match (self.ended, self.diverged, &self.cancelled) {
            (_, true, _) => json!("diverged"),
            (true, _, Some(reason)) => {
                let message = format!("canceled: {reason}");
                json!({ "failed": { "error": { "name": "CancelledError", "message": message, "code": "CANCELLED" } } })
            }
            (true, _, None) => self.outcome.clone(),
            _ => json!("waiting"),
        };
        let commands = std::mem::take(&mut self.commands);
        json!({ "h": activation["h"], "n": self.applied, "c": commands, "o": outcome })
    }

    fn apply(&mut self, fact: &Value) {
        let seq = fact["seq"].as_u64().and_then(|seq| usize::try_from(seq).ok()).unwrap_or(usize::MAX);
        match fact["t"].as_str().unwrap_or_default() {
            "done" => self.resolve(seq, fact["value"].clone()),
            "fail" => self.resolve(seq, json!({ "failed": fact["error"] })),
            "event" | "queue" => self.arrive(&fact["name"], fact["data"].clone()),
            "cancel" => self.cancel(fact["reason"].as_str().unwrap_or_default()),
            _ => self.diverged = true,
        }
        if !self.diverged {
            self.applied += 1;
            self.go_on();
        }
    }

    fn resolve(&mut self, seq: usize, value: Value) {
        match self.results.get_mut(seq) {
            None => self.diverged = true,
            Some(result) if result.is_none() => *result = Some(value),
            Some(_) => {}
        }
    }

    fn arrive(&mut self, name: &Value, data: Value) {
        let mailbox = self.mailboxes.entry(name.as_str().unwrap_or_default().to_owned()).or_default();
        if mailbox.1.is_empty() {
            mailbox.0.push(data);
        } else {
            let seq = mailbox.1.remove(0);
            self.results[seq] = Some(data);
        }
    }

    /// Everything open is over, and the code goes on with its cleaning up.
    fn cancel(&mut self, reason: &str) {
        self.cancelled = Some(reason.to_owned());
        self.awaiting = None;
        self.next = 0;
        self.mailboxes.values_mut().for_each(|(_, waits)| waits.clear());
        self.results
            .iter_mut()
            .filter(|result| result.is_none())
            .for_each(|result| *result = Some(Value::Null));
    }

    /// Runs the code until it stands still.
    fn go_on(&mut self) {
        loop {
            if let Some(mut node) = self.awaiting.take() {
                self.decide(&mut node);
                if !self.is_done(&node) {
                    self.awaiting = Some(node);
                    return;
                }
            }
            let tasks = if self.cancelled.is_some() { &self.cleanup } else { &self.tasks };
            let Some(task) = tasks.get(self.next).cloned() else {
                self.ended = true;
                return;
            };
            self.next += 1;
            self.awaiting = Some(self.start(&task));
        }
    }

    fn command(&mut self, command: Value, result: Option<Value>) -> usize {
        self.commands.push(command);
        self.results.push(result);
        self.results.len() - 1
    }

    fn start(&mut self, task: &Task) -> Node {
        let step = self.applied;
        match task {
            Task::Activity(name, input) => {
                let retry = (*name == "flaky")
                    .then(|| json!({ "maxAttempts": 3, "backoff": "fixed", "baseDelayMs": 300 }));
                let command =
                    json!({ "activity": { "step": step, "name": name, "input": input, "retry": retry } });
                Node::Leaf(self.command(command, None))
            }
            Task::Timer(ms) => {
                Node::Leaf(self.command(json!({ "timer": { "step": step, "delayMs": ms } }), None))
            }
            Task::Child(seed) => {
                let command =
                    json!({ "child": { "step": step, "name": "program", "input": [seed >> 2, seed & 3] } });
                Node::Leaf(self.command(command, None))
            }
            Task::Event(name) => {
                let seq = self.command(json!({ "event": { "step": step, "name": name } }), None);
                let (unread, waits) = self.mailboxes.entry((*name).to_owned()).or_default();
                if unread.is_empty() {
                    waits.push(seq);
                } else {
                    self.results[seq] = Some(unread.remove(0));
                }
                Node::Leaf(seq)
            }
            Task::All(parts) => Node::All(parts.iter().map(|part| self.start(part)).collect()),
            Task::Race(parts) => Node::Race(parts.iter().map(|part| self.start(part)).collect(), None),
        }
    }

    /// Decides races whose winner is known, inner ones first, and cancels their losers.
    fn decide(&mut self, node: &mut Node) {
        match node {
            Node::Leaf(_) | Node::Race(_, Some(_)) => {}
            Node::All(parts) => parts.iter_mut().for_each(|part| self.decide(part)),
            Node::Race(parts, winner) => {
                parts.iter_mut().for_each(|part| self.decide(part));
                *winner = parts.iter().position(|part| self.is_done(part));
                let Some(winner) = *winner else { return };
                for (_, loser) in parts.iter().enumerate().filter(|(index, _)| *index != winner) {
                    self.give_up(loser);
                }
            }
        }
    }

    fn give_up(&mut self, node: &Node) {
        match node {
            Node::All(parts) | Node::Race(parts, None) => parts.iter().for_each(|part| self.give_up(part)),
            Node::Race(_, Some(_)) => {}
            Node::Leaf(seq) if self.results[*seq].is_some() => {}
            Node::Leaf(seq) => {
                self.command(json!({ "cancel": { "step": self.applied, "seq": seq } }), Some(Value::Null));
                self.mailboxes.values_mut().for_each(|(_, waits)| waits.retain(|wait| wait != seq));
                self.results[*seq] = Some(Value::Null);
            }
        }
    }

    fn is_done(&self, node: &Node) -> bool {
        match node {
            Node::Leaf(seq) => self.results[*seq].is_some(),
            Node::All(parts) => parts.iter().all(|part| self.is_done(part)),
            Node::Race(_, winner) => winner.is_some(),
        }
    }
}

fn task(dice: &mut Dice, depth: u64, nesting: u32) -> Task {
    if nesting < 2 && dice.one_in(3) {
        let parts = (0..dice.between(2, 3)).map(|_| task(dice, depth, nesting + 1)).collect();
        return if dice.one_in(2) { Task::All(parts) } else { Task::Race(parts) };
    }
    match dice.below(12) {
        0..=2 => Task::Activity("fine", dice.below(60)),
        3 => Task::Activity("fails", dice.below(60)),
        4 => Task::Activity("flaky", dice.below(60)),
        5 => Task::Activity("slow", dice.between(1_000, 15_000)),
        6 if dice.one_in(6) => Task::Activity("kills", 0),
        6..=7 => Task::Timer(dice.below(4_000)),
        8..=9 => Task::Event(if dice.one_in(2) { "a" } else { "b" }),
        _ if depth < DEEPEST => Task::Child((dice.seed() >> 2) << 2 | (depth + 1)),
        _ => Task::Timer(dice.below(10)),
    }
}
