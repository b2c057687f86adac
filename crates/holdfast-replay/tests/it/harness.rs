//! The harness: one execution driven turn by turn, its writings as lines of text.
//!
//! Each turn is one second after the one before; the first is at 1 000 000 ms. Stored rows go through the codec, so
//! every test that goes cold also tests that rows come back as they were.

use holdfast_replay::{
    Accepted, Activation, Effect, End, Event, EventBody, EventId, Execution, FrameId, Message, MessageBody,
    Mismatch, ParentLink, Payload, Reply, StartInfo, StoredEvent, TurnResult,
};

pub(crate) const FRAME: FrameId = FrameId(7);

/// JSON text as a payload.
pub(crate) fn json(text: &str) -> Payload {
    Payload::from_text(text.to_owned()).expect("JSON")
}

pub(crate) fn start() -> StartInfo {
    StartInfo {
        name: "order".to_owned(),
        version: "1.0.0".to_owned(),
        input: json("{}"),
        parent: None,
        seed: 42,
        carried: Vec::new(),
        custom_status: None,
        values: Vec::new(),
    }
}

pub(crate) fn parent() -> ParentLink {
    ParentLink { instance: "boss".to_owned(), execution: 2, event: EventId(9) }
}

/// One execution in a test.
pub(crate) struct Live {
    pub(crate) execution: Execution,
    pub(crate) history: Vec<Event>,
    pub(crate) number: i64,
    facts: u32,
    now_ms: i64,
    messages: i64,
}

impl Live {
    pub(crate) fn begin() -> Self {
        Self::begin_with(start(), 1)
    }

    pub(crate) fn begin_with(start: StartInfo, number: i64) -> Self {
        Self {
            execution: Execution::begin("i".to_owned(), number, start, 1_000_000),
            history: Vec::new(),
            number,
            facts: 0,
            now_ms: 999_000,
            messages: 0,
        }
    }

    /// The same execution on another node: made from its rows.
    pub(crate) fn cold(&self) -> Self {
        let rows: Vec<StoredEvent> = self.history.iter().map(StoredEvent::encode).collect();
        let events = rows.into_iter().map(|row| row.decode().expect("a row of ours")).collect();
        Self {
            execution: Execution::replay("i".to_owned(), self.number, events).expect("a history of ours"),
            history: self.history.clone(),
            ..*self
        }
    }

    pub(crate) fn accept(&mut self, bodies: Vec<MessageBody>) -> Accepted {
        self.now_ms += 1_000;
        let first = self.messages;
        self.messages += bodies.len() as i64;
        let messages = (first + 1..).zip(bodies).map(|(id, body)| Message { id, body }).collect();
        let accepted = self.execution.accept(messages, self.now_ms);
        self.facts += accepted.accepted.len() as u32;
        accepted
    }

    pub(crate) fn activate(&mut self) -> Activation {
        self.execution.activation(FRAME)
    }

    /// Answers the activation that is out, with `applied` facts.
    pub(crate) fn answer_at(
        &mut self,
        applied: u32,
        commands: &[String],
        outcome: &str,
    ) -> Result<TurnResult, Mismatch> {
        let text = format!(r#"{{"h":7,"n":{applied},"c":[{}],"o":{outcome}}}"#, commands.join(","));
        let reply: Reply = serde_json::from_str(&text).expect("a reply");
        let result = self.execution.complete(reply);
        if let Ok(turn) = &result {
            self.commit(turn);
        }
        result
    }

    pub(crate) fn commit(&mut self, turn: &TurnResult) {
        for event in &turn.events {
            assert_eq!(event.id.0 as usize, self.history.len() + 1, "ids follow without a gap");
            self.history.push(event.clone());
        }
        assert_eq!(self.execution.history_len() as usize, self.history.len());
    }

    /// A whole turn with all facts applied.
    pub(crate) fn try_turn(
        &mut self,
        bodies: Vec<MessageBody>,
        commands: &[String],
        outcome: &str,
    ) -> Result<TurnResult, Mismatch> {
        self.accept(bodies);
        self.activate();
        self.answer_at(self.facts, commands, outcome)
    }

    /// A whole turn that fits, as lines.
    pub(crate) fn turn(
        &mut self,
        bodies: Vec<MessageBody>,
        commands: &[String],
        outcome: &str,
    ) -> Vec<String> {
        lines(&self.try_turn(bodies, commands, outcome).expect("a reply that fits"))
    }
}

/// Compares what a turn wrote with the expected lines, blanks around them aside.
#[track_caller]
pub(crate) fn check(found: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected, "\nfound:\n{}\n", found.join("\n"));
}

/// Checks that the reply did not fit, and how.
#[track_caller]
pub(crate) fn check_mismatch(
    result: Result<TurnResult, Mismatch>,
    position: u32,
    expected: &str,
    found: &str,
) {
    let mismatch = result.expect_err("a mismatch");
    assert_eq!(
        (mismatch.position, mismatch.expected.as_str(), mismatch.found.as_str()),
        (position, expected, found)
    );
}

/// Events as `id Kind <source data`, effects as `+ …`, the end as `= …`.
pub(crate) fn lines(turn: &TurnResult) -> Vec<String> {
    let mut lines: Vec<String> = turn.events.iter().map(event_line).collect();
    lines.extend(turn.effects.iter().map(effect_line));
    lines.extend(turn.end.iter().map(end_line));
    lines
}

fn event_line(event: &Event) -> String {
    let row = StoredEvent::encode(event);
    let source = row.source.map(|source| format!(" <{}", source.0)).unwrap_or_default();
    match event.body {
        EventBody::OrchestrationStarted(_) => format!("{} {}", row.id.0, row.kind),
        _ => format!("{} {}{source} {}", row.id.0, row.kind, row.data),
    }
}

fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::ScheduleActivity { event, name, input, .. } => {
            format!("+ activity {} {name} {}", event.0, input.as_str())
        }
        Effect::CreateTimer { event, fire_at_ms } => format!("+ timer {} at {fire_at_ms}", event.0),
        Effect::StartChild { event, instance, name, .. } => {
            format!("+ child {} {instance} {name}", event.0)
        }
        Effect::StartDetached { instance, name, .. } => format!("+ detached {instance} {name}"),
        Effect::CancelActivity { event } => format!("+ cancel activity {}", event.0),
        Effect::CancelTimer { event } => format!("+ cancel timer {}", event.0),
        Effect::CancelChild { instance, reason } => format!("+ cancel child {instance}: {reason}"),
        Effect::SetStatus { status } => format!("+ status {status:?}"),
        Effect::SetValue { key, value, at_ms } => format!("+ value {key}={value} at {at_ms}"),
        Effect::ClearValue { key } => format!("+ clear {key}"),
        Effect::ClearValues => "+ clear all".to_owned(),
        Effect::ReadValue { event, instance, key } => format!("+ read {} {instance} {key}", event.0),
        Effect::TellParent { parent, result } => match result {
            Ok(value) => format!("+ tell {} ok {}", parent.instance, value.as_str()),
            Err(error) => format!("+ tell {} error {}", parent.instance, error.as_str()),
        },
    }
}

fn end_line(end: &End) -> String {
    match end {
        End::Completed { output } => format!("= completed {}", output.as_str()),
        End::Failed { error } => format!("= failed {}", error.as_str()),
        End::Cancelled { error } => format!("= cancelled {}", error.as_str()),
        End::ContinuedAsNew { input, version, carried } => {
            let carried: Vec<String> = carried
                .messages
                .iter()
                .map(|message| format!("{:?} {} {}", message.kind, message.name, message.data.as_str()))
                .collect();
            format!("= continued {} {version:?} [{}]", input.as_str(), carried.join(", "))
        }
    }
}

pub(crate) const WAITING: &str = r#""waiting""#;

pub(crate) fn completed(output: &str) -> String {
    format!(r#"{{"completed":{{"output":{output}}}}}"#)
}

pub(crate) fn activity(step: u32, name: &str, input: &str) -> String {
    format!(r#"{{"activity":{{"step":{step},"name":"{name}","input":{input}}}}}"#)
}

pub(crate) fn timer(step: u32, delay_ms: u64) -> String {
    format!(r#"{{"timer":{{"step":{step},"delayMs":{delay_ms}}}}}"#)
}

pub(crate) fn event(step: u32, name: &str) -> String {
    format!(r#"{{"event":{{"step":{step},"name":"{name}"}}}}"#)
}

pub(crate) fn queue(step: u32, name: &str) -> String {
    format!(r#"{{"queue":{{"step":{step},"name":"{name}"}}}}"#)
}

pub(crate) fn child(step: u32, name: &str, input: &str) -> String {
    format!(r#"{{"child":{{"step":{step},"name":"{name}","input":{input}}}}}"#)
}

pub(crate) fn detached(step: u32, name: &str, instance: &str) -> String {
    format!(r#"{{"detached":{{"step":{step},"name":"{name}","instance":"{instance}","input":1}}}}"#)
}

pub(crate) fn cancel(step: u32, seq: u32) -> String {
    format!(r#"{{"cancel":{{"step":{step},"seq":{seq}}}}}"#)
}

pub(crate) fn status(step: u32, text: &str) -> String {
    format!(r#"{{"status":{{"step":{step},"status":"{text}"}}}}"#)
}

pub(crate) fn set(step: u32, key: &str, value: &str, at: i64) -> String {
    format!(r#"{{"set":{{"step":{step},"key":"{key}","value":"{value}","at":{at}}}}}"#)
}

pub(crate) fn clear(step: u32, key: &str) -> String {
    format!(r#"{{"clear":{{"step":{step},"key":"{key}"}}}}"#)
}

pub(crate) fn clear_all(step: u32) -> String {
    format!(r#"{{"clearAll":{{"step":{step}}}}}"#)
}

pub(crate) fn read(step: u32, instance: &str, key: &str) -> String {
    format!(r#"{{"read":{{"step":{step},"instance":"{instance}","key":"{key}"}}}}"#)
}

pub(crate) fn local(step: u32, name: &str) -> String {
    format!(r#"{{"local":{{"step":{step},"name":"{name}"}}}}"#)
}

pub(crate) fn done(source: u32, result: &str) -> MessageBody {
    MessageBody::ActivityCompleted { execution: 1, source: EventId(source), result: json(result) }
}

pub(crate) fn failed(source: u32, error: &str) -> MessageBody {
    MessageBody::ActivityFailed { execution: 1, source: EventId(source), error: json(error) }
}

pub(crate) fn fired(source: u32) -> MessageBody {
    MessageBody::TimerFired { execution: 1, source: EventId(source) }
}

pub(crate) fn child_done(source: u32, result: &str) -> MessageBody {
    MessageBody::ChildCompleted { execution: 1, source: EventId(source), result: json(result) }
}

pub(crate) fn raised(name: &str, data: &str) -> MessageBody {
    MessageBody::EventRaised { name: name.to_owned(), data: json(data) }
}

pub(crate) fn queued(name: &str, data: &str) -> MessageBody {
    MessageBody::QueueMessage { name: name.to_owned(), data: json(data) }
}

pub(crate) fn cancel_request(reason: &str) -> MessageBody {
    MessageBody::CancelRequested { reason: reason.to_owned() }
}
