//! Golden histories: files that are never edited. Each holds rows, the activation they give, the reply of the code
//! that wrote them, and replies of other code with the mismatch each must give.

use std::{fs, path::Path};

use holdfast_replay::{EventId, Execution, FrameId, StoredEvent};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Golden {
    /// What the history shows, for people.
    about: String,
    instance: String,
    execution: i64,
    rows: Vec<Row>,
    activation: Box<RawValue>,
    reply: Box<RawValue>,
    #[serde(default)]
    others: Vec<Other>,
}

#[derive(Deserialize)]
struct Row(u32, String, Option<u32>, i64, Box<RawValue>);

#[derive(Deserialize)]
struct Other {
    reply: Box<RawValue>,
    mismatch: String,
}

impl Golden {
    fn rows(&self) -> Vec<StoredEvent> {
        let row = |Row(id, kind, source, at_ms, data): &Row| StoredEvent {
            id: EventId(*id),
            kind: kind.clone(),
            source: source.map(EventId),
            at_ms: *at_ms,
            data: data.get().to_owned(),
        };
        self.rows.iter().map(row).collect()
    }

    fn replay(&self) -> Execution {
        let events = self.rows().into_iter().map(|row| row.decode().expect("a golden row")).collect();
        Execution::replay(self.instance.clone(), self.execution, events).expect("a golden history")
    }

    fn check(&self, file: &str) {
        let context = format!("{file}: {}", self.about);
        for row in self.rows() {
            assert_eq!(StoredEvent::encode(&row.clone().decode().expect("a golden row")), row, "{context}");
        }
        let mut execution = self.replay();
        let activation = serde_json::to_string(&execution.activation(FrameId(1))).expect("JSON");
        assert_eq!(activation, self.activation.get(), "{context}");
        let turn = execution.complete(serde_json::from_str(self.reply.get()).expect("a reply"));
        let turn = turn.unwrap_or_else(|mismatch| panic!("{context}: {mismatch}"));
        assert!(
            turn.events.is_empty() && turn.effects.is_empty() && turn.end.is_none(),
            "{context}: {turn:?}"
        );
        for other in &self.others {
            let mut execution = self.replay();
            execution.activation(FrameId(1));
            let reply = serde_json::from_str(other.reply.get()).expect("a reply");
            let mismatch = execution.complete(reply).expect_err("a mismatch");
            assert_eq!(mismatch.to_string(), other.mismatch, "{context}");
        }
    }
}

#[test]
fn golden_histories_replay_as_on_the_day_they_were_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 6, "golden histories are never taken away");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let golden: Golden =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        golden.check(&file.display().to_string());
    }
}
