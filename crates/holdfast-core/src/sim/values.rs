//! What a commit batch of the model does to values: drops, then keeps, then answers reads.

use holdfast_replay::{EventId, MessageBody, Payload};

use super::{
    commit::Standing,
    model::{InboxRow, Model},
};

impl Model {
    pub(super) fn change_values(&mut self, standing: &[Standing<'_>]) {
        for (_, turn) in standing {
            let all = turn.values.all_cleared;
            self.values.retain(|(instance, key), _| {
                let dropped = all || turn.values.keys.get(key).is_some_and(Option::is_none);
                *instance != turn.instance || !dropped
            });
        }
        for (_, turn) in standing {
            for (key, change) in &turn.values.keys {
                if let Some(kept) = change {
                    self.values.insert((turn.instance.clone(), key.clone()), kept.clone());
                }
            }
        }
        for (_, turn) in standing {
            for read in &turn.reads {
                let kept = self.values.get(&(read.instance.clone(), read.key.clone()));
                let null = || Payload::from_text("null".to_owned()).expect("JSON");
                let result = kept.map_or_else(null, |(value, _)| Payload::string(value));
                let source = EventId(read.event.unsigned_abs());
                let body = MessageBody::ActivityCompleted { execution: turn.execution, source, result };
                self.put_message(&turn.instance, InboxRow { due_at: self.now, body });
            }
        }
    }
}
