//! The promise that an item's owner hears of its end, whatever becomes of the worker that has it; and what others hear of
//! items that are tried again and again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use crate::{
    commit::{Settled, committer::closed, queue::Pending},
    error::{Error, Result},
    store::commit::CommitOutcome,
    telemetry::{Events, Level},
};

/// The engine's own items are never lost: they are tried again until the provider closes, at most [`limits::RETRY_MAX`] apart.
/// From the fourth run on that is told, each time when they have had twice as many.
pub(super) fn of_delay(events: &Events, again: &[Pending], error: &Error) {
    let runs = again.iter().map(|pending| pending.runs).max().unwrap_or(0);
    if runs < 4 || !runs.is_power_of_two() {
        return;
    }
    let text = format!(
        "{} items were not committed in {runs} runs and are tried again: {}",
        again.len(),
        error.text_without_data()
    );
    let fields = json!({ "items": again.len(), "runs": runs, "code": error.kind().code() });
    events.emit("commits-delayed", Level::Warn, text, fields);
}

/// From here on it is not known whether the item was written: a lease that is gone does not tell.
pub(super) fn after_unknown(settled: Settled) -> Settled {
    Box::new(|outcome| {
        settled(match outcome {
            Ok(CommitOutcome::Fenced) => Ok(CommitOutcome::Overtaken),
            outcome => outcome,
        });
    })
}

/// Tells what became of an item also when its worker panicked with it: it is as if the provider were closed, its lease
/// goes back.
pub(super) struct Told(Option<Settled>);

impl Told {
    pub(super) fn new(settled: Settled) -> Self {
        Self(Some(settled))
    }

    pub(super) fn tell(mut self, outcome: Result<CommitOutcome>) {
        if let Some(settled) = self.0.take() {
            settled(outcome);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(settled) = self.0.take() {
            // It may run while a panic unwinds: a second one would end the process. The first was reported.
            let _ = catch_unwind(AssertUnwindSafe(|| settled(Err(closed()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use holdfast_replay::{MessageBody, Payload};

    use super::*;
    use crate::{
        error::ErrorKind,
        store::commit::{CommitItem, Send},
    };

    fn pending(runs: u32) -> Pending {
        let body = MessageBody::EventRaised { name: "e".to_owned(), data: Payload::null() };
        let item = CommitItem::Send(Send { instance: "i".to_owned(), body, dedup_key: None });
        Pending { item, bytes: 0, runs, place: None, settled: Box::new(|_| ()) }
    }

    #[test]
    fn a_delay_is_told_from_the_fourth_run_on_and_at_each_doubling() {
        let events = Events::default();
        events.listen(Arc::new(|| ()));
        let error = Error::new(ErrorKind::Unavailable, "connection refused");
        let told: Vec<u32> = (1..=40)
            .filter(|runs| {
                of_delay(&events, &[pending(1), pending(*runs)], &error);
                !events.take().is_empty()
            })
            .collect();
        assert_eq!(told, [4, 8, 16, 32]);
        of_delay(&events, &[pending(8), pending(2)], &error);
        let event = events.take().remove(0);
        assert_eq!((event.name, event.level), ("commits-delayed", Level::Warn));
        assert_eq!(
            serde_json::Value::Object(event.fields),
            json!({ "items": 2, "runs": 8, "code": "UNAVAILABLE" })
        );
    }

    #[test]
    fn a_lease_that_is_gone_after_a_lost_answer_is_no_proof_that_nothing_was_written() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let tell = |outcome| {
            let heard = Arc::clone(&heard);
            let settled: Settled = Box::new(move |outcome| {
                heard.lock().expect("not poisoned").push(outcome.expect("an outcome"))
            });
            after_unknown(after_unknown(settled))(Ok(outcome));
        };
        tell(CommitOutcome::Fenced);
        tell(CommitOutcome::Done { more_work: true });
        let expected = [CommitOutcome::Overtaken, CommitOutcome::Done { more_work: true }];
        assert_eq!(*heard.lock().expect("not poisoned"), expected);
    }
}
