//! What a random turn writes. It is not what the engine would write, but what the port allows it to.

use std::collections::BTreeSet;

use holdfast_replay::{EventId, MessageBody, ParentLink, Payload, event::StoredEvent};

use super::{
    super::{
        model::{Model, source},
        program::Dice,
    },
    book::{Book, TurnLease},
};
use crate::store::{
    ActivityKey,
    commit::{
        BelatedActivity, NewActivity, NewTimer, Park, Send, Start, TurnCommit, TurnEnd, ValueChanges,
        ValueRead,
    },
    message::event_number,
};

/// Instances that lists of commands know by name.
pub(super) fn any_instance(dice: &mut Dice) -> String {
    format!("i{}", dice.below(5))
}

pub(super) fn any_name(dice: &mut Dice) -> String {
    if dice.one_in(4) { "q".to_owned() } else { "p".to_owned() }
}

pub(super) fn any_tag(dice: &mut Dice) -> Option<String> {
    match dice.below(6) {
        0 => Some("s".to_owned()),
        1 => Some("t".to_owned()),
        _ => None,
    }
}

pub(super) fn payload(text: String) -> Payload {
    Payload::from_text(text).expect("numbers are JSON")
}

/// Activities of an execution that have no result in its history, whether they have a row or not.
pub(super) fn open_activities(model: &Model, instance: &str, execution: i64) -> Vec<i32> {
    let events = model.events(instance, execution);
    let is_open = |event: &&StoredEvent| {
        event.kind == "ActivityScheduled" && !events.iter().any(|other| other.source == Some(event.id))
    };
    events.iter().filter(is_open).map(|event| event_number(event.id)).collect()
}

/// A turn under a lease; `ends` are the activities that are ended in the same batch.
pub(super) fn draw(
    dice: &mut Dice,
    model: &Model,
    book: &mut Book,
    lease: &TurnLease,
    ends: &[ActivityKey],
) -> TurnCommit {
    let mut drawn = Drawing { dice, model, book, lease, turn: blank(lease) };
    if lease.history_len == 0 {
        drawn.event("OrchestrationStarted", None);
    }
    drawn.use_messages();
    drawn.use_results(ends);
    if drawn.dice.one_in(12) && !lease.poisoned {
        drawn.park();
        return drawn.turn;
    }
    drawn.end();
    match drawn.turn.end {
        None if !lease.parked && drawn.dice.one_in(3) => {
            drawn.work(true);
            drawn.turn.keeps = !drawn.turn.events.is_empty();
        }
        None => {
            drawn.work(false);
            drawn.belated();
            if !lease.parked && drawn.dice.one_in(3) {
                drawn.turn.retake_ms = Some(2_000);
            }
        }
        Some(_) => drawn.last_words(),
    }
    drawn.turn
}

fn blank(lease: &TurnLease) -> TurnCommit {
    TurnCommit {
        instance: lease.instance.clone(),
        fence: lease.fence,
        node: lease.node.clone(),
        execution: lease.execution,
        history_len: lease.history_len,
        version: lease.version.clone().unwrap_or_else(|| "1".to_owned()),
        name: lease.name.clone(),
        consumed: Vec::new(),
        results: Vec::new(),
        events: Vec::new(),
        activities: Vec::new(),
        keeps: false,
        retake_ms: None,
        belated: Vec::new(),
        timers: Vec::new(),
        cancelled_activities: Vec::new(),
        cancelled_timers: Vec::new(),
        sends: Vec::new(),
        starts: Vec::new(),
        custom_status: None,
        values: ValueChanges::default(),
        reads: Vec::new(),
        end: None,
        park: None,
        unparks: lease.parked,
        poisoned: false,
        awaited: false,
    }
}

fn any_key(dice: &mut Dice) -> String {
    if dice.one_in(2) { "k".to_owned() } else { "l".to_owned() }
}

struct Drawing<'a> {
    dice: &'a mut Dice,
    model: &'a Model,
    book: &'a mut Book,
    lease: &'a TurnLease,
    turn: TurnCommit,
}

impl Drawing<'_> {
    fn event(&mut self, kind: &str, source: Option<EventId>) -> i32 {
        self.turn.history_len += 1;
        let event = self.turn.history_len;
        self.turn.events.push(StoredEvent {
            id: EventId(event.unsigned_abs()),
            kind: kind.to_owned(),
            source,
            at_ms: self.model.now,
            data: self.book.value(),
        });
        event
    }

    fn use_messages(&mut self) {
        for (id, body) in &self.lease.messages {
            let answered = source(body).filter(|(execution, _)| *execution == self.lease.execution);
            if self.dice.one_in(5) {
                continue;
            }
            // A result is used by its source now and then.
            if let (Some((_, event)), MessageBody::ActivityCompleted { .. }, true) =
                (answered, body, self.dice.one_in(4))
            {
                self.turn.results.push(i32::try_from(event).unwrap_or(0));
            } else {
                self.turn.consumed.push(*id);
            }
            let kind = match body {
                MessageBody::ActivityCompleted { .. } => "ActivityCompleted",
                MessageBody::ActivityFailed { .. } => "ActivityFailed",
                MessageBody::TimerFired { .. } => "TimerFired",
                _ => "ExternalEvent",
            };
            self.event(kind, answered.map(|(_, event)| EventId(event)));
        }
    }

    fn use_results(&mut self, ends: &[ActivityKey]) {
        for key in ends {
            let own = key.instance == self.lease.instance && key.execution == self.lease.execution;
            if own && !self.turn.results.contains(&key.event) && self.dice.one_in(2) {
                self.turn.results.push(key.event);
                self.event("ActivityCompleted", Some(EventId(key.event.unsigned_abs())));
            }
        }
        // One that was told meanwhile.
        for (id, row) in self.model.messages(&self.lease.instance) {
            let (MessageBody::ActivityCompleted { .. }, Some((execution, source))) =
                (&row.body, row.source())
            else {
                continue;
            };
            let event = event_number(EventId(source));
            let used = self.turn.consumed.contains(&id) || self.turn.results.contains(&event);
            if execution == self.lease.execution && !used && self.dice.one_in(4) {
                self.turn.results.push(event);
                self.event("ActivityCompleted", Some(EventId(source)));
            }
        }
        // One that nobody has.
        if self.dice.one_in(25) {
            self.turn.results.push(77);
        }
    }

    fn park(&mut self) {
        let error = format!(r#"{{"code":"MISMATCH","message":"{}"}}"#, self.book.value());
        self.turn = TurnCommit {
            park: Some(Park { error, version: self.lease.version.clone() }),
            unparks: false,
            ..blank(self.lease)
        };
    }

    fn end(&mut self) {
        let value = self.book.value();
        let asked =
            self.lease.messages.iter().any(|(_, body)| matches!(body, MessageBody::CancelRequested { .. }));
        self.turn.end = match self.dice.below(20) {
            _ if self.lease.poisoned => {
                self.turn.poisoned = true;
                Some(TurnEnd::Failed { error: r#"{"code":"POISONED"}"#.to_owned() })
            }
            0..=9 if asked => Some(TurnEnd::Cancelled { error: r#"{"code":"CANCELLED"}"#.to_owned() }),
            0..=1 => Some(TurnEnd::Completed { output: value }),
            2 => Some(TurnEnd::Failed { error: format!(r#"{{"code":"X{value}"}}"#) }),
            3..=4 => Some(TurnEnd::ContinuedAsNew {
                input: value,
                version: self.dice.one_in(3).then(|| "2".to_owned()),
                carried: self.dice.one_in(2).then(|| r#"{"events":[]}"#.to_owned()),
            }),
            _ => None,
        };
        if self.turn.end.is_some() {
            self.event("OrchestrationEnded", None);
        }
    }

    /// What an execution that ends still does: its parent hears of it, what it asked for is taken back.
    fn last_words(&mut self) {
        let again = matches!(self.turn.end, Some(TurnEnd::ContinuedAsNew { .. }));
        if let Some(parent) = self.lease.parent.clone().filter(|_| !again) {
            let (execution, source) = (parent.execution, parent.event);
            let body = match &self.turn.end {
                Some(TurnEnd::Completed { output }) => {
                    MessageBody::ChildCompleted { execution, source, result: payload(output.clone()) }
                }
                _ => MessageBody::ChildFailed { execution, source, error: payload("{}".to_owned()) },
            };
            self.turn.sends.push(Send { instance: parent.instance, body, dedup_key: None });
        }
        self.take_back(1);
        self.status();
        self.values();
    }

    fn status(&mut self) {
        if self.dice.one_in(5) {
            let value = self.book.value();
            self.turn.custom_status = Some((!self.dice.one_in(3)).then_some(value));
        }
    }

    /// Takes back one in so many of what is open.
    fn take_back(&mut self, of: u64) {
        let own =
            |key: &&ActivityKey| key.instance == self.lease.instance && key.execution == self.lease.execution;
        let queued = self.model.activities.keys().filter(own).map(|key| key.event);
        let mut open: BTreeSet<i32> = queued.collect();
        if self.dice.one_in(2) {
            open.extend(open_activities(self.model, &self.lease.instance, self.lease.execution));
        }
        for event in open {
            if self.dice.one_in(of) && !self.turn.results.contains(&event) {
                self.turn.cancelled_activities.push(event);
            }
        }
        let timers: Vec<u32> = self
            .model
            .messages(&self.lease.instance)
            .filter(|(_, row)| matches!(row.body, MessageBody::TimerFired { .. }))
            .filter_map(|(_, row)| row.source())
            .filter(|(execution, _)| *execution == self.lease.execution)
            .map(|(_, event)| event)
            .collect();
        for event in timers {
            if self.dice.one_in(of) {
                self.turn.cancelled_timers.push(i32::try_from(event).unwrap_or(0));
            }
        }
    }

    fn task(&mut self, event: i32) -> NewActivity {
        NewActivity {
            event,
            name: if self.dice.one_in(4) { "b".to_owned() } else { "a".to_owned() },
            input: self.book.value(),
            retry: self.dice.one_in(4).then(|| r#"{"maxAttempts":3}"#.to_owned()),
            timeout_ms: self.dice.one_in(4).then_some(1_000),
            tag: any_tag(self.dice),
            session: self
                .dice
                .one_in(4)
                .then(|| ["x", "y", "z"][usize::try_from(self.dice.below(3)).unwrap_or(0)].to_owned()),
            lease_ms: self.dice.one_in(2).then(|| self.dice.between(1, 4_000).cast_signed()),
        }
    }

    /// Rows for activities that were scheduled without one; some have a row all the same, or a result.
    fn belated(&mut self) {
        for event in open_activities(self.model, &self.lease.instance, self.lease.execution) {
            if self.dice.one_in(2) {
                continue;
            }
            let belated = BelatedActivity {
                task: self.task(event),
                attempt: i32::try_from(self.dice.between(1, 3)).unwrap_or(1),
                deliveries: i32::try_from(self.dice.below(3)).unwrap_or(0),
                delay_ms: self.dice.below(3).cast_signed() * 400,
                heartbeat: self.dice.one_in(3).then(|| self.book.value()),
                isolated: self.dice.one_in(4),
            };
            self.turn.belated.push(belated);
        }
    }

    /// What goes on; under a lease that is kept some activities get no row.
    fn work(&mut self, keeps: bool) {
        self.take_back(6);
        for _ in 0..self.dice.below(3) {
            let event = self.event("ActivityScheduled", None);
            if !(keeps && self.dice.one_in(2)) {
                let task = self.task(event);
                self.turn.activities.push(task);
            }
        }
        if self.dice.one_in(3) {
            let event = self.event("TimerCreated", None);
            let fire_at_ms = self.model.now - 50 + self.dice.below(3_000).cast_signed();
            self.turn.timers.push(NewTimer { event, fire_at_ms });
        }
        if self.dice.one_in(3) {
            self.start();
        }
        if self.dice.one_in(5) {
            self.send();
        }
        self.status();
        self.values();
        if self.dice.one_in(6) {
            let event = self.event("ActivityScheduled", None);
            let read = ValueRead { event, instance: any_instance(self.dice), key: any_key(self.dice) };
            self.turn.reads.push(read);
        }
    }

    fn values(&mut self) {
        if !self.dice.one_in(4) {
            return;
        }
        self.turn.values.all_cleared = self.dice.one_in(4);
        for _ in 0..self.dice.below(3) {
            let kept = (!self.dice.one_in(3)).then(|| (self.book.value(), self.model.now));
            self.turn.values.keys.insert(any_key(self.dice), kept);
        }
    }

    fn start(&mut self) {
        let event = self.event("SubOrchestrationScheduled", None);
        let parent = ParentLink {
            instance: self.lease.instance.clone(),
            execution: self.lease.execution,
            event: EventId(event.unsigned_abs()),
        };
        let start = Start {
            instance: any_instance(self.dice),
            name: any_name(self.dice),
            version: self.dice.one_in(3).then(|| "1".to_owned()),
            input: self.book.value(),
            parent: (!self.dice.one_in(4)).then_some(parent),
            delay_ms: self.dice.one_in(6).then_some(700),
            ..Start::default()
        };
        self.turn.starts.push(start);
    }

    fn send(&mut self) {
        let body = if self.dice.one_in(2) {
            MessageBody::CancelRequested { reason: "\"parent\"".to_owned() }
        } else {
            MessageBody::QueueMessage { name: "n".to_owned(), data: payload(self.book.value()) }
        };
        self.turn.sends.push(Send { instance: any_instance(self.dice), body, dedup_key: None });
    }
}
