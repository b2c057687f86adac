//! The world of one seed: the database, the network, the processes and what befalls them, in one order of events.
//!
//! Time is in ms. Every process runs on its own clock until the next event, or until it has sent something; so nothing
//! arrives in somebody's past. Everything random is drawn from the seed.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use super::{
    Options, Report,
    faults::Weather,
    host::Ground,
    model::{Model, Mutant},
    oracle::{Oracle, Violation},
    port::{Call, Deliver},
    process::{Process, Told},
    program::Dice,
    workload,
};
use crate::error::ErrorKind;

/// What happens at a moment.
pub(super) enum Happening {
    /// A call reaches the database.
    Arrives(usize, Call),
    /// It waited long enough: it is carried out. With it, when its statement began.
    Runs(usize, Call, i64),
    /// An answer, or the loss of one, reaches who asked: process, generation of its connection, error instead of it.
    Answers(usize, u64, Option<ErrorKind>, Deliver),
    /// A hint reaches a process.
    Hint(usize, String),
    /// The next fault.
    Fault,
    /// A fault is over.
    Over(Box<dyn FnOnce(&mut World)>),
    /// A client does something.
    Client,
    /// Clients raise what is waited for.
    Pump,
}

/// The database's clock at the begin of the world, ms since 1970.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// Longest that nothing is looked at.
const STEP_MS: u64 = 20;

/// An accepted thing that has not ended this long after the last fault is stuck.
const PATIENCE_MS: u64 = 40 * 60_000;

/// See the module.
pub(super) struct World {
    pub(super) now: u64,
    pub(super) dice: Dice,
    pub(super) model: Model,
    pub(super) weather: Weather,
    pub(super) processes: Vec<Option<Process>>,
    /// What the database's clock is ahead.
    pub(super) ahead: i64,
    /// Locks of sessions outside: until when.
    pub(super) locks: BTreeMap<String, u64>,
    pub(super) scene: workload::Scene,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    oracle: Oracle,
    report: Report,
    trace: bool,
}

impl World {
    pub(super) fn new(seed: u64, options: &Options) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let scene = workload::Scene::random(&mut dice, seed % 4 >= 2);
        let model = Model {
            now: EPOCH_MS,
            up_since: EPOCH_MS - 3_600_000,
            mutant: options.mutant,
            ..Model::default()
        };
        Self {
            now: 0,
            weather: Weather::random(&mut dice, scene.watched),
            dice,
            model,
            processes: Vec::new(),
            ahead: 0,
            locks: BTreeMap::new(),
            scene,
            queue: BTreeMap::new(),
            order: 0,
            oracle: Oracle::default(),
            report: Report { seeds: 1, ..Report::default() },
            trace: options.trace,
        }
    }

    /// Runs the seed to its end.
    pub(super) fn run(mut self) -> Report {
        for number in 0..=self.scene.nodes {
            self.processes.push(None);
            self.start_process(number);
        }
        self.at(1, Happening::Client);
        self.at(2_000, Happening::Pump);
        self.at(500, Happening::Fault);
        while self.report.violations.is_empty() {
            self.step();
            if self.is_over() {
                break;
            }
        }
        self.close();
        self.report.simulated_ms = self.now;
        self.report
    }

    fn is_over(&mut self) -> bool {
        let calm = self.now > self.weather.calm_from && self.scene.starts_left == 0;
        if !calm {
            return false;
        }
        if self.scene.calls_open == 0 && self.model.instances.values().all(|row| row.is_ended()) {
            return true;
        }
        if self.now > self.weather.calm_from + PATIENCE_MS {
            let open: Vec<String> = self
                .model
                .instances
                .iter()
                .filter(|(_, row)| !row.is_ended())
                .map(|(id, row)| {
                    format!("{id} ({}, {:?})", row.status, self.model.turns.get(id).map(|turn| &turn.lease))
                })
                .collect();
            let text = format!(
                "not ended long after the last fault, {} calls open: {}",
                self.scene.calls_open,
                open.join("; ")
            );
            self.fail("I6", text);
            return true;
        }
        false
    }

    /// Starts the process of a number: 0 is the client, the others are nodes.
    pub(super) fn start_process(&mut self, number: usize) {
        let seed = self.dice.bits();
        let name = if number == 0 { "client".to_owned() } else { format!("node-{number}") };
        let mut process = Process::new(&name, self.now, seed);
        process.set_down(self.weather.down);
        if number > 0 {
            process.start_engine(self.scene.config(number), Ground::default(), self.scene.watched);
        }
        self.log(|| format!("{name} starts"));
        self.processes[number] = Some(process);
    }

    pub(super) fn kill(&mut self, number: usize) {
        if let Some(process) = self.processes[number].take() {
            self.log(|| format!("{} is killed", process.name));
            self.scene.take_ledger(&process);
            // Nobody hears of them any more.
            self.scene.calls_open -= process.calls_open;
        }
    }

    pub(super) fn at(&mut self, time: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((time.max(self.now), self.order), happening);
    }

    pub(super) fn after(&mut self, delay: u64, over: impl FnOnce(&mut Self) + 'static) {
        self.at(self.now + delay, Happening::Over(Box::new(over)));
    }

    pub(super) fn log(&self, text: impl FnOnce() -> String) {
        if self.trace {
            #[expect(clippy::print_stderr, reason = "a trace is asked for by a person")]
            {
                eprintln!("{:>8} {}", self.now, text());
            }
        }
    }

    pub(super) fn fail(&mut self, invariant: &'static str, text: String) {
        self.report.violations.push(Violation { invariant, text });
    }

    fn clock(&self) -> i64 {
        EPOCH_MS + i64::try_from(self.now).unwrap_or(i64::MAX) + self.ahead
    }

    /// Runs the processes up to the next event, then the event.
    fn step(&mut self) {
        let next = self.queue.keys().next().map_or(u64::MAX, |(time, _)| *time);
        let mut until = next.min(self.now + STEP_MS);
        loop {
            let behind: Vec<usize> = (0..self.processes.len())
                .filter(|number| {
                    self.processes[*number]
                        .as_ref()
                        .is_some_and(|process| process.clock < until && process.stopped_until <= self.now)
                })
                .collect();
            if behind.is_empty() {
                break;
            }
            for number in behind {
                until = until.min(self.run_process(number, until));
            }
        }
        self.now = until;
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let happening = entry.remove();
            self.report.steps += 1;
            self.happen(happening);
        }
    }

    /// Runs one up to a time; until when nothing of it arrives.
    fn run_process(&mut self, number: usize, until: u64) -> u64 {
        let Some(process) = &mut self.processes[number] else { return until };
        if process.stopped_until > 0 {
            process.stopped_until = 0;
            process.wake_up(self.now);
        }
        let calls = process.run(until);
        let clock = process.clock;
        let mut earliest = until;
        for call in calls {
            let way = self.weather.way(&mut self.dice, call.what);
            let arrival = clock.max(self.now) + way;
            earliest = earliest.min(arrival);
            self.at(arrival, Happening::Arrives(number, call));
        }
        self.listen(number);
        earliest
    }

    /// What a process told: a body that kills it, clients' calls.
    fn listen(&mut self, number: usize) {
        let Some(process) = &mut self.processes[number] else { return };
        let (ends, wrong) = {
            let mut ledger = process.ground.lock();
            (ledger.killed || ledger.ended, std::mem::take(&mut ledger.wrong))
        };
        let broken = wrong.into_iter().map(|(invariant, text)| Violation { invariant, text });
        self.report.violations.extend(broken);
        if ends {
            self.kill(number);
            let pause = self.dice.between(200, 5_000);
            self.after(pause, move |world| world.revive(number));
            return;
        }
        let told: Vec<Told> =
            std::mem::take(&mut *process.told.lock().unwrap_or_else(PoisonError::into_inner));
        process.calls_open -= told.len() as u64;
        for told in told {
            self.scene.calls_open -= 1;
            if let Err((invariant, text)) = self.scene.hear(told, &self.oracle) {
                self.fail(invariant, text);
            }
        }
    }

    pub(super) fn revive(&mut self, number: usize) {
        if self.processes[number].is_none() {
            self.start_process(number);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives(number, call) => self.arrive(number, call),
            Happening::Runs(number, call, started) => self.carry_out(number, call, started),
            Happening::Answers(number, generation, failed, deliver) => {
                let lost = !self.is_connected(number, generation);
                deliver(failed.or(lost.then_some(ErrorKind::CommitUnknown)));
            }
            Happening::Hint(number, payload) => {
                if let Some(process) =
                    self.processes[number].as_mut().filter(|process| process.stopped_until == 0)
                {
                    process.hear(&payload);
                }
            }
            Happening::Fault => self.next_fault(),
            Happening::Over(over) => over(self),
            Happening::Client => self.act(),
            Happening::Pump => self.pump(),
        }
    }

    fn is_connected(&self, number: usize, generation: u64) -> bool {
        let process = self.processes[number].as_ref();
        process.is_some_and(|process| process.wire.generation.load(Ordering::Relaxed) == generation)
    }

    fn arrive(&mut self, number: usize, call: Call) {
        if self.weather.down || !self.is_connected(number, call.generation) {
            let refuse = Arc::clone(&call.refuse);
            let back = self.now + 1;
            let deliver: Deliver = Box::new(move |failed| refuse(failed.unwrap_or(ErrorKind::Unavailable)));
            return self.at(
                back,
                Happening::Answers(number, call.generation, Some(ErrorKind::Unavailable), deliver),
            );
        }
        let started = self.clock();
        let locked = call.waits_for.iter().filter_map(|id| self.locks.get(id)).max().copied().unwrap_or(0);
        if locked > self.now + 2_000 {
            let refuse = Arc::clone(&call.refuse);
            let deliver: Deliver = Box::new(move |failed| refuse(failed.unwrap_or(ErrorKind::Conflict)));
            let answer = Happening::Answers(number, call.generation, Some(ErrorKind::Conflict), deliver);
            return self.at(self.now + 2_000, answer);
        }
        let slow = self.weather.slowness(&mut self.dice, call.what);
        self.at(locked.max(self.now + slow), Happening::Runs(number, call, started));
    }

    fn carry_out(&mut self, number: usize, call: Call, started: i64) {
        let Call { what, limit, generation, work, hint, .. } = call;
        if self.weather.down {
            return;
        }
        self.model.now = self.clock();
        let started = if self.model.mutant == Mutant::None { started.min(self.model.now) } else { started };
        let deliver = work(&mut self.model, started);
        let name = self.processes[number].as_ref().map(|process| process.name.clone());
        self.log(|| format!("{} {what}", name.unwrap_or_default()));
        for violation in self.oracle.look(&mut self.model) {
            self.report.violations.push(violation);
        }
        // A commit makes work; what a hint says that nobody understands is that there may be anything.
        if let Some(payload) = hint.or_else(|| (what == "commit").then(|| "?".to_owned())) {
            self.spread(number, &payload);
        }
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let (back, failed) = match self.weather.loses_answer(&mut self.dice) {
            None => (self.weather.way(&mut self.dice, what), None),
            Some(true) => (1, Some(ErrorKind::CommitUnknown)),
            Some(false) => (limit, Some(ErrorKind::Timeout)),
        };
        let (back, failed) = if back > limit { (limit, Some(ErrorKind::Timeout)) } else { (back, failed) };
        self.at(self.now + back, Happening::Answers(number, generation, failed, deliver));
    }

    fn spread(&mut self, from: usize, payload: &str) {
        for number in (1..self.processes.len()).filter(|number| *number != from) {
            for delay in self.weather.hint(&mut self.dice) {
                self.at(self.now + delay, Happening::Hint(number, payload.to_owned()));
            }
        }
    }

    fn dump(&self) {
        for ((instance, execution), events) in &self.model.history {
            for event in events {
                self.log(|| {
                    let source = event.source.map_or(0, |source| source.0);
                    format!(
                        "{instance} {execution} {:>3} {:<30} {source:>3} {}",
                        event.id.0, event.kind, event.data
                    )
                });
            }
        }
        for ((instance, id), row) in &self.model.inbox {
            self.log(|| format!("{instance} message {id} due {} {:?}", row.due_at, row.body));
        }
        for (instance, row) in &self.model.turns {
            self.log(|| format!("{instance} {row:?}"));
        }
    }

    fn close(&mut self) {
        if self.trace {
            self.dump();
        }
        for number in 0..self.processes.len() {
            self.kill(number);
        }
        if self.report.violations.is_empty() {
            for (invariant, text) in self.scene.last_look(&self.model) {
                self.fail(invariant, text);
            }
        }
    }
}
