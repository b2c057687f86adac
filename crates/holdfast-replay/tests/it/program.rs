//! A model of the JavaScript side: small programs, and frames that run them over facts by the agreed rules.
//!
//! Written from the rules and not from the crate, so that the two can disagree.
//!
//! length: one model whose parts share the state of a frame.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use holdfast_replay::{Activation, Carried, CarriedKind, Fact, KeptValue, Reply};

use crate::harness as wire;

/// Deterministic numbers from a seed (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Task {
    Activity(String),
    Timer,
    Event(String),
    Queue(String),
    Child(String),
    Read(String),
    Local(String),
    All(Vec<Task>),
    Race(Vec<Task>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    /// Start and wait.
    Await(Task),
    /// Start and forget.
    Start(Task),
    Detached(String),
    Status,
    Set(String),
    Clear(String),
    ClearAll,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    pub(crate) statements: Vec<Statement>,
    /// Runs once the execution was cancelled.
    pub(crate) cleanup: Vec<Statement>,
    pub(crate) outcome: &'static str,
}

impl Program {
    pub(crate) fn random(chance: &mut Chance) -> Self {
        let count = 1 + chance.below(7);
        let outcomes = [
            r#"{"completed":{"output":1}}"#,
            r#"{"failed":{"error":{"message":"m"}}}"#,
            r#"{"continued":{"input":1}}"#,
        ];
        Self {
            statements: (0..count).map(|_| Statement::random(chance)).collect(),
            cleanup: (0..chance.below(3)).map(|_| Statement::random(chance)).collect(),
            outcome: outcomes[chance.below(3)],
        }
    }
}

impl Statement {
    pub(crate) fn random(chance: &mut Chance) -> Self {
        match chance.below(15) {
            0 => Self::Detached(format!("d{}", chance.below(3))),
            1 => Self::Status,
            12 => Self::Set(key(chance)),
            13 => Self::Clear(key(chance)),
            14 => Self::ClearAll,
            2..=4 => Self::Start(Task::leaf(chance)),
            _ => Self::Await(Task::random(chance, 0)),
        }
    }
}

fn key(chance: &mut Chance) -> String {
    ["x", "y"][chance.below(2)].to_owned()
}

impl Task {
    fn leaf(chance: &mut Chance) -> Self {
        let name = ["x", "y"][chance.below(2)].to_owned();
        match chance.below(7) {
            0 => Self::Activity(name),
            6 => Self::Local(name),
            5 => Self::Read(name),
            1 => Self::Timer,
            2 => Self::Event(name),
            3 => Self::Queue(name),
            _ => Self::Child(name),
        }
    }

    fn random(chance: &mut Chance, depth: u32) -> Self {
        if depth == 2 || chance.one_in(2) {
            return Self::leaf(chance);
        }
        let count = 2 + chance.below(3);
        let parts = (0..count).map(|_| Self::random(chance, depth + 1)).collect();
        if chance.one_in(2) { Self::All(parts) } else { Self::Race(parts) }
    }
}

/// A started task: leaves are command numbers.
enum Node {
    Leaf(u32),
    All(Vec<Node>),
    Race(Vec<Node>, Option<usize>),
}

type Mailbox = (VecDeque<(usize, String)>, VecDeque<u32>);

/// A program at work.
pub(crate) struct Frame {
    program: Rc<Program>,
    next: usize,
    awaiting: Option<Node>,
    /// Result of each command, once there.
    results: Vec<Option<String>>,
    mailboxes: BTreeMap<(bool, String), Mailbox>,
    arrivals: usize,
    step: u32,
    now_ms: i64,
    values: BTreeMap<String, (String, i64)>,
    cancelled: bool,
    /// Local steps that were not run yet.
    locals: VecDeque<u32>,
    ended: bool,
    diverged: bool,
    commands: Vec<String>,
    /// What the code saw, with the step at which it saw it.
    pub(crate) seen: Vec<String>,
}

impl Frame {
    pub(crate) fn new(program: &Rc<Program>) -> Self {
        Self {
            program: Rc::clone(program),
            next: 0,
            awaiting: None,
            results: Vec::new(),
            mailboxes: BTreeMap::new(),
            arrivals: 0,
            step: 0,
            now_ms: 0,
            values: BTreeMap::new(),
            cancelled: false,
            locals: VecDeque::new(),
            ended: false,
            diverged: false,
            commands: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Runs one activation and gives the reply.
    pub(crate) fn run(&mut self, activation: Activation) -> Reply {
        assert_eq!(activation.applied, self.step, "facts follow each other");
        if let Some(start) = activation.start {
            self.now_ms = start.at_ms;
            self.values = start.values.into_iter().map(|kept| (kept.key, (kept.value, kept.at_ms))).collect();
            for message in start.carried {
                self.arrive(message.kind == CarriedKind::Event, message.name, message.data.as_str());
            }
            self.go_on();
        }
        let mut facts = activation.facts.into_iter();
        while !self.ended && !self.diverged {
            let Some(fact) = facts.next() else { break };
            self.apply(fact);
        }
        let results = self.run_locals();
        // What the code did not get to see stays unread.
        for fact in facts {
            match fact {
                Fact::Event { name, data, .. } => self.leave(true, name, data.as_str()),
                Fact::Queue { name, data, .. } => self.leave(false, name, data.as_str()),
                _ => {}
            }
        }
        let outcome = match (self.ended, self.diverged) {
            (true, _) => self.program.outcome,
            (_, true) => r#""diverged""#,
            _ => wire::WAITING,
        };
        let commands = std::mem::take(&mut self.commands).join(",");
        let text = format!(r#"{{"h":7,"n":{},"c":[{commands}],"l":[{results}],"o":{outcome}}}"#, self.step);
        serde_json::from_str(&text).expect("a reply")
    }

    /// Runs what was asked for in place, one after the other, each result a fact.
    fn run_locals(&mut self) -> String {
        let mut results = Vec::new();
        while !self.ended && !self.diverged {
            let Some(seq) = self.locals.pop_front() else { break };
            if self.results[seq as usize].is_some() {
                continue;
            }
            let result = if seq % 3 == 0 { "err" } else { "ok" };
            results.push(format!(r#"{{"seq":{seq},"at":{},"{result}":{seq}}}"#, self.now_ms));
            let value = if seq % 3 == 0 { format!("!{seq}") } else { seq.to_string() };
            self.resolve(seq, value);
            self.step += 1;
            self.go_on();
        }
        results.join(",")
    }

    /// Unread messages in the order in which they came.
    pub(crate) fn unread(&self) -> Vec<Carried> {
        let mut unread: Vec<(usize, Carried)> = Vec::new();
        for ((event, name), (messages, _)) in &self.mailboxes {
            let kind = if *event { CarriedKind::Event } else { CarriedKind::Queue };
            for (arrival, data) in messages {
                unread.push((*arrival, Carried { kind, name: name.clone(), data: wire::json(data) }));
            }
        }
        unread.sort_by_key(|(arrival, _)| *arrival);
        unread.into_iter().map(|(_, message)| message).collect()
    }

    /// Values as they are handed on.
    pub(crate) fn kept(&self) -> Vec<KeptValue> {
        let kept = |(key, (value, at_ms)): (&String, &(String, i64))| KeptValue {
            key: key.clone(),
            value: value.clone(),
            at_ms: *at_ms,
        };
        self.values.iter().map(kept).collect()
    }

    fn apply(&mut self, fact: Fact) {
        let (Fact::Done { at, .. }
        | Fact::Fail { at, .. }
        | Fact::Event { at, .. }
        | Fact::Queue { at, .. }
        | Fact::Cancel { at, .. }) = &fact;
        let at = *at;
        match fact {
            Fact::Done { seq, value, .. } => self.resolve(seq, value.as_str().to_owned()),
            Fact::Fail { seq, error, .. } => self.resolve(seq, format!("!{}", error.as_str())),
            Fact::Event { name, data, .. } => self.arrive(true, name, data.as_str()),
            Fact::Queue { name, data, .. } => self.arrive(false, name, data.as_str()),
            Fact::Cancel { .. } => self.cancel(),
        }
        if !self.diverged {
            self.now_ms = at;
            self.step += 1;
            self.go_on();
        }
    }

    /// Everything open is over, and the code goes on with its cleaning up.
    fn cancel(&mut self) {
        self.cancelled = true;
        self.awaiting = None;
        self.next = 0;
        self.locals.clear();
        self.mailboxes.values_mut().for_each(|(_, waits)| waits.clear());
        self.results
            .iter_mut()
            .filter(|result| result.is_none())
            .for_each(|result| *result = Some("!c".to_owned()));
    }

    fn resolve(&mut self, seq: u32, value: String) {
        match self.results.get_mut(seq as usize) {
            None => self.diverged = true,
            Some(result) if result.is_none() => *result = Some(value),
            Some(_) => {}
        }
    }

    fn arrive(&mut self, event: bool, name: String, data: &str) {
        let waits = &mut self.mailboxes.entry((event, name.clone())).or_default().1;
        match waits.pop_front() {
            Some(seq) => self.results[seq as usize] = Some(data.to_owned()),
            None => self.leave(event, name, data),
        }
    }

    fn leave(&mut self, event: bool, name: String, data: &str) {
        self.arrivals += 1;
        let messages = &mut self.mailboxes.entry((event, name)).or_default().0;
        messages.push_back((self.arrivals, data.to_owned()));
    }

    /// Runs the code until it stands still.
    fn go_on(&mut self) {
        loop {
            if let Some(mut node) = self.awaiting.take() {
                self.settle(&mut node);
                match self.value(&node) {
                    Some(value) => self.seen.push(format!("{}: {value}", self.step)),
                    None => {
                        self.awaiting = Some(node);
                        return;
                    }
                }
            }
            let statements = if self.cancelled { &self.program.cleanup } else { &self.program.statements };
            let Some(statement) = statements.get(self.next).cloned() else {
                self.ended = true;
                return;
            };
            self.next += 1;
            match statement {
                Statement::Await(task) => self.awaiting = Some(self.start(&task)),
                Statement::Start(task) => drop(self.start(&task)),
                Statement::Detached(name) => {
                    let command = wire::detached(self.step, &name, &name);
                    self.command(command, Some("null"));
                }
                Statement::Set(key) => {
                    let value = format!("v{}", self.step);
                    self.values.insert(key.clone(), (value.clone(), self.now_ms));
                    self.command(wire::set(self.step, &key, &value, self.now_ms), Some("null"));
                }
                Statement::Clear(key) => {
                    self.values.remove(&key);
                    self.command(wire::clear(self.step, &key), Some("null"));
                }
                Statement::ClearAll => {
                    self.values.clear();
                    self.command(wire::clear_all(self.step), Some("null"));
                }
                Statement::Status => {
                    let command = wire::status(self.step, "s");
                    self.command(command, Some("null"));
                }
            }
        }
    }

    fn command(&mut self, text: String, result: Option<&str>) -> u32 {
        self.commands.push(text);
        self.results.push(result.map(str::to_owned));
        self.results.len() as u32 - 1
    }

    fn start(&mut self, task: &Task) -> Node {
        let step = self.step;
        match task {
            Task::Activity(name) => Node::Leaf(self.command(wire::activity(step, name, "1"), None)),
            Task::Timer => Node::Leaf(self.command(wire::timer(step, 5), None)),
            Task::Local(name) => {
                let seq = self.command(wire::local(step, name), None);
                self.locals.push_back(seq);
                Node::Leaf(seq)
            }
            Task::Read(name) => Node::Leaf(self.command(wire::read(step, name, "k"), None)),
            Task::Child(name) => Node::Leaf(self.command(wire::child(step, name, "1"), None)),
            Task::Event(name) => {
                let seq = self.command(wire::event(step, name), None);
                self.wait(true, name, seq)
            }
            Task::Queue(name) => {
                let seq = self.command(wire::queue(step, name), None);
                self.wait(false, name, seq)
            }
            Task::All(parts) => Node::All(parts.iter().map(|part| self.start(part)).collect()),
            Task::Race(parts) => Node::Race(parts.iter().map(|part| self.start(part)).collect(), None),
        }
    }

    fn wait(&mut self, event: bool, name: &str, seq: u32) -> Node {
        let (messages, waits) = self.mailboxes.entry((event, name.to_owned())).or_default();
        match messages.pop_front() {
            Some((_, data)) => self.results[seq as usize] = Some(data),
            None => waits.push_back(seq),
        }
        Node::Leaf(seq)
    }

    /// Decides races whose winner is known, inner ones first, and cancels their losers.
    fn settle(&mut self, node: &mut Node) {
        match node {
            Node::Leaf(_) => {}
            Node::All(parts) => parts.iter_mut().for_each(|part| self.settle(part)),
            Node::Race(_, Some(_)) => {}
            Node::Race(parts, winner) => {
                parts.iter_mut().for_each(|part| self.settle(part));
                *winner = parts.iter().position(|part| self.value(part).is_some());
                if let Some(winner) = *winner {
                    let losers = parts.iter().enumerate().filter(|(index, _)| *index != winner);
                    losers.for_each(|(_, loser)| self.give_up(loser));
                }
            }
        }
    }

    fn give_up(&mut self, node: &Node) {
        match node {
            Node::All(parts) | Node::Race(parts, None) => parts.iter().for_each(|part| self.give_up(part)),
            Node::Race(_, Some(_)) => {}
            Node::Leaf(seq) if self.results[*seq as usize].is_some() => {}
            Node::Leaf(seq) => {
                self.command(wire::cancel(self.step, *seq), Some("null"));
                self.mailboxes.values_mut().for_each(|(_, waits)| waits.retain(|wait| wait != seq));
                // Later facts for it change nothing.
                self.results[*seq as usize] = Some("cancelled".to_owned());
            }
        }
    }

    fn value(&self, node: &Node) -> Option<String> {
        match node {
            Node::Leaf(seq) => self.results[*seq as usize].clone(),
            Node::All(parts) => {
                let values: Option<Vec<String>> = parts.iter().map(|part| self.value(part)).collect();
                values.map(|values| format!("[{}]", values.join(",")))
            }
            Node::Race(parts, winner) => {
                let winner = (*winner)?;
                Some(format!("#{winner} {}", self.value(&parts[winner])?))
            }
        }
    }
}
