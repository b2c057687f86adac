//! What clients do in the world of a seed.

use super::{
    program::input,
    world::{Happening, World},
};
use crate::store::commit::Start;

impl World {
    /// A client starts, raises or cancels something.
    pub(super) fn act(&mut self) {
        let known: Vec<String> = self.model.instances.keys().cloned().collect();
        let again = self.dice.between(50, 1_500);
        if self.scene.starts_left > 0 || self.now < self.weather.calm_from {
            self.at(self.now + again, Happening::Client);
        }
        let Some(client) = &mut self.processes[0] else { return };
        match self.dice.below(10) {
            0..=3 if self.scene.starts_left > 0 => {
                let number = self.scene.starts.len();
                let start = Start {
                    instance: format!("i{number}"),
                    name: "program".to_owned(),
                    input: input(self.dice.seed() >> 2 << 2, 0),
                    delay_ms: self.dice.one_in(5).then(|| i64::try_from(self.dice.below(3_000)).unwrap_or(0)),
                    ..Start::default()
                };
                self.scene.starts_left -= 1;
                self.scene.starts.push(start.clone());
                self.scene.calls_open += 1;
                // Also where it runs: there its first turn begins at once.
                let number = usize::try_from(self.dice.below(self.processes.len() as u64)).unwrap_or(0);
                match &mut self.processes[number] {
                    Some(process) if process.stopped_until == 0 => process.start_instance(start),
                    _ => {
                        if let Some(client) = &mut self.processes[0] {
                            client.start_instance(start);
                        }
                    }
                }
            }
            4 if !self.scene.starts.is_empty() => {
                let which = self.dice.below(self.scene.starts.len() as u64);
                let mut start = self.scene.starts[usize::try_from(which).unwrap_or(0)].clone();
                if self.dice.one_in(3) {
                    start.input = "[1,0]".to_owned();
                }
                self.scene.calls_open += 1;
                client.start_instance(start);
            }
            5..=7 if !known.is_empty() => {
                let instance =
                    known[usize::try_from(self.dice.below(known.len() as u64)).unwrap_or(0)].clone();
                self.scene.raised += 1;
                self.scene.calls_open += 1;
                let name = if self.dice.one_in(2) { "a" } else { "b" };
                client.raise(instance, name, self.scene.raised);
            }
            8 if !known.is_empty() && self.dice.one_in(4) => {
                let instance =
                    known[usize::try_from(self.dice.below(known.len() as u64)).unwrap_or(0)].clone();
                self.scene.calls_open += 1;
                client.cancel(instance);
            }
            _ => {}
        }
    }

    /// Clients raise what is waited for, so that everything can end.
    pub(super) fn pump(&mut self) {
        self.at(self.now + 3_000, Happening::Pump);
        let waiting: Vec<String> = self
            .model
            .instances
            .iter()
            .filter(|(id, row)| !row.is_ended() && self.model.messages(id).next().is_none())
            .map(|(id, _)| id.clone())
            .collect();
        let Some(client) = &mut self.processes[0] else { return };
        for instance in waiting {
            for name in ["a", "b"] {
                self.scene.raised += 1;
                self.scene.calls_open += 1;
                client.raise(instance.clone(), name, self.scene.raised);
            }
        }
    }
}
