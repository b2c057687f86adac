//! Random programs in a random world: at every turn, the live frame and a fresh one from history must agree.
//!
//! The first seed is printed when a run fails and taken from `HOLDFAST_SEED`; `HOLDFAST_RUNS` says how many follow.

use std::{collections::BTreeMap, env, rc::Rc};

use holdfast_replay::{
    Accepted, Effect, End, Event, EventBody, EventId, Execution, Message, MessageBody, Reply, StartInfo,
    StoredEvent, TurnResult,
};

use crate::{
    harness::*,
    program::{Chance, Frame, Program, Statement},
};

/// A run in a debug build takes a few milliseconds.
const RUNS: u64 = 400;

/// An execution and the frame that runs it, live or fresh.
struct Pair {
    execution: Execution,
    frame: Frame,
}

impl Pair {
    fn cold(program: &Rc<Program>, number: i64, history: &[Event]) -> Self {
        let decode = |event| StoredEvent::encode(event).decode().expect("a row of ours");
        let events = history.iter().map(decode).collect();
        let execution = Execution::replay("i".to_owned(), number, events).expect("a history of ours");
        Self { execution, frame: Frame::new(program) }
    }

    fn turn(&mut self, messages: &[Message], now_ms: i64) -> (Accepted, TurnResult) {
        let accepted = self.execution.accept(messages.to_vec(), now_ms);
        let reply = self.frame.run(self.execution.activation(FRAME));
        (accepted, self.execution.complete(reply).expect("the same code fits"))
    }
}

/// What is outside: started work and messages on their way.
struct World {
    chance: Chance,
    number: i64,
    running: BTreeMap<u32, char>,
    inbox: Vec<Message>,
    sent: Vec<MessageBody>,
    next_id: i64,
}

impl World {
    fn carry_out(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::ScheduleActivity { event, .. } => drop(self.running.insert(event.0, 'a')),
                Effect::ReadValue { event, .. } => drop(self.running.insert(event.0, 'a')),
                Effect::CreateTimer { event, .. } => drop(self.running.insert(event.0, 't')),
                Effect::StartChild { event, .. } => drop(self.running.insert(event.0, 'c')),
                Effect::CancelActivity { event } | Effect::CancelTimer { event } => {
                    self.running.remove(&event.0);
                }
                _ => {}
            }
        }
    }

    /// Something happens.
    fn happen(&mut self) {
        let execution = self.number;
        let fresh = self.next_id.to_string();
        let name = ["x", "y"][self.chance.below(2)].to_owned();
        let body = match self.chance.below(12) {
            0..=5 if !self.running.is_empty() => {
                let nth = self.chance.below(self.running.len());
                let (&event, &kind) = self.running.iter().nth(nth).expect("nth of them");
                self.running.remove(&event);
                let source = EventId(event);
                match (kind, self.chance.one_in(3)) {
                    ('a', false) => {
                        MessageBody::ActivityCompleted { execution, source, result: json(&fresh) }
                    }
                    ('a', true) => MessageBody::ActivityFailed { execution, source, error: json(&fresh) },
                    ('c', false) => MessageBody::ChildCompleted { execution, source, result: json(&fresh) },
                    ('c', true) => MessageBody::ChildFailed { execution, source, error: json(&fresh) },
                    _ => MessageBody::TimerFired { execution, source },
                }
            }
            6 | 7 => MessageBody::EventRaised { name, data: json(&fresh) },
            8 | 9 => MessageBody::QueueMessage { name, data: json(&fresh) },
            10 if self.chance.one_in(12) => MessageBody::CancelRequested { reason: fresh },
            10 => MessageBody::TimerFired { execution, source: EventId(self.chance.below(20) as u32) },
            // A message that came before comes once more.
            _ if !self.sent.is_empty() => {
                let again = self.chance.below(self.sent.len());
                match &self.sent[again] {
                    MessageBody::CancelRequested { .. } => return,
                    body => body.clone(),
                }
            }
            _ => return,
        };
        self.sent.push(body.clone());
        self.inbox.push(Message { id: self.next_id, body });
        self.next_id += 1;
    }
}

/// Runs one seed to its end, or for 40 turns.
fn run(seed: u64) {
    let mut world = World {
        chance: Chance(seed),
        number: 1,
        running: BTreeMap::new(),
        inbox: Vec::new(),
        sent: Vec::new(),
        next_id: 1,
    };
    let mut program = Rc::new(Program::random(&mut world.chance));
    let mut history: Vec<Event> = Vec::new();
    let begin = |info: StartInfo, number, program: &Rc<Program>| Pair {
        execution: Execution::begin("i".to_owned(), number, info, 1),
        frame: Frame::new(program),
    };
    let mut live = begin(start(), 1, &program);
    for now_ms in 2..42 {
        for _ in 0..world.chance.below(4) {
            world.happen();
        }
        let batch = world.chance.below(world.inbox.len() + 1);
        let messages: Vec<Message> = world.inbox.drain(..batch).collect();
        let cold = (!history.is_empty()).then(|| Pair::cold(&program, world.number, &history));
        let (accepted, turn) = live.turn(&messages, now_ms);
        if let Some(mut cold) = cold {
            // Cancelled code may change: it ends as cancelled all the same.
            if !history
                .iter()
                .any(|event| matches!(event.body, EventBody::OrchestrationCancelRequested { .. }))
            {
                check_changed_program(&mut world.chance, &program, world.number, &history);
            }
            let (accepted_cold, turn_cold) = cold.turn(&messages, now_ms);
            assert_eq!((&accepted, &turn), (&accepted_cold, &turn_cold), "warm equals cold");
            assert_eq!(live.frame.seen, cold.frame.seen, "the code sees the same");
            assert_eq!(format!("{:?}", live.execution), format!("{:?}", cold.execution), "the books agree");
            if world.chance.one_in(3) {
                live = cold;
            }
        }
        assert_eq!(accepted.accepted.len() + accepted.dropped.len(), messages.len());
        history.extend(turn.events.clone());
        world.carry_out(&turn.effects);
        match turn.end {
            None => {}
            Some(End::ContinuedAsNew { carried, .. }) => {
                assert_eq!(carried.messages, live.frame.unread(), "nothing unread is lost");
                assert_eq!(carried.values, live.frame.kept(), "no value is lost");
                world.number += 1;
                world.running.clear();
                history.clear();
                program = Rc::new(Program::random(&mut world.chance));
                let info = StartInfo { carried: carried.messages, values: carried.values, ..start() };
                live = begin(info, world.number, &program);
            }
            Some(_) => return drop(Pair::cold(&program, world.number, &history)),
        }
    }
}

/// A program with one other statement fits the history exactly when it gives the same reply.
fn check_changed_program(chance: &mut Chance, program: &Rc<Program>, number: i64, history: &[Event]) {
    let mut changed = Program::clone(program);
    let place = chance.below(changed.statements.len());
    changed.statements[place] = Statement::random(chance);
    let answer = |program: &Rc<Program>| -> (Execution, Reply) {
        let mut pair = Pair::cold(program, number, history);
        let activation = pair.execution.activation(FRAME);
        let reply = pair.frame.run(activation);
        (pair.execution, reply)
    };
    let (_, reply) = answer(program);
    let (mut execution, reply_changed) = answer(&Rc::new(changed));
    let same = (reply.applied, &reply.commands, &reply.outcome)
        == (reply_changed.applied, &reply_changed.commands, &reply_changed.outcome);
    assert_eq!(execution.complete(reply_changed).is_ok(), same, "changed code is found, the same code fits");
}

#[expect(clippy::disallowed_methods, reason = "a random test is told its seed from outside")]
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn live_and_cold_agree_at_every_turn_of_random_programs() {
    let seeds = match (number("HOLDFAST_SEED"), number("HOLDFAST_RUNS")) {
        (Some(seed), None) => seed..seed + 1,
        (seed, runs) => seed.unwrap_or(1)..seed.unwrap_or(1) + runs.unwrap_or(RUNS),
    };
    for seed in seeds {
        let shown = ShowSeed(seed);
        run(seed);
        std::mem::forget(shown);
    }
}

/// Names the seed when a run does not come to its end.
struct ShowSeed(u64);

impl Drop for ShowSeed {
    #[expect(clippy::disallowed_macros, reason = "a failed random test says how to repeat it")]
    fn drop(&mut self) {
        eprintln!("repeat with HOLDFAST_SEED={}", self.0);
    }
}
