//! What befalls the database, the network and the processes of one seed, and when it is over.

use std::time::Duration;

use super::{
    program::Dice,
    world::{Happening, World},
};

/// The state of database and network.
#[derive(Debug, Default)]
pub(super) struct Weather {
    /// From then on nothing more happens.
    pub(super) calm_from: u64,
    /// The database cannot be reached.
    pub(super) down: bool,
    /// One answer in so many is lost; 0 for none.
    loses: u64,
    /// Statements take up to so much longer.
    slow_ms: u64,
    /// Heartbeats and renewals are on their way up to so much longer.
    beats_late_ms: u64,
    /// Hints are lost, doubled and late.
    hints_bad: bool,
    /// The database's clock steps now and then.
    steps_clock: bool,
    /// Loops block, and nodes are asked to stop.
    stops_nodes: bool,
}

impl Weather {
    pub(super) fn random(dice: &mut Dice, stops_nodes: bool) -> Self {
        let calm_from = if dice.one_in(8) { 0 } else { dice.between(5_000, 60_000) };
        let steps_clock = dice.one_in(3);
        Self {
            calm_from,
            steps_clock,
            stops_nodes,
            loses: [0, 0, 300, 60][usize::try_from(dice.below(4)).unwrap_or(0)],
            ..Self::default()
        }
    }

    /// How long a message is on its way.
    pub(super) fn way(&self, dice: &mut Dice, what: &str) -> u64 {
        let late = matches!(what, "heartbeat" | "renew turns" | "renew activities");
        if late && self.beats_late_ms > 0 {
            return dice.between(1, self.beats_late_ms);
        }
        if dice.one_in(60) { dice.between(1, 300) } else { dice.between(1, 3) }
    }

    /// How long a statement waits before it is carried out.
    pub(super) fn slowness(&self, dice: &mut Dice, what: &str) -> u64 {
        let applies = !matches!(what, "heartbeat" | "register" | "hint");
        if applies && self.slow_ms > 0 { dice.below(self.slow_ms) } else { 0 }
    }

    /// Whether an answer is lost: at once, with its connection, or for ever.
    pub(super) fn loses_answer(&self, dice: &mut Dice) -> Option<bool> {
        (self.loses > 0 && dice.one_in(self.loses)).then(|| !dice.one_in(4))
    }

    /// After which times a hint comes.
    pub(super) fn hint(&self, dice: &mut Dice) -> Vec<u64> {
        match dice.below(4) {
            _ if !self.hints_bad => vec![dice.between(1, 3)],
            0 => Vec::new(),
            1 => vec![1, dice.between(1, 2_000)],
            2 => vec![dice.between(100, 5_000)],
            _ => vec![2],
        }
    }
}

impl World {
    /// Something happens, as long as the storm lasts; then everything is mended.
    pub(super) fn next_fault(&mut self) {
        if self.now >= self.weather.calm_from {
            return self.mend();
        }
        let next = self.dice.between(200, 6_000);
        self.at(self.now + next, Happening::Fault);
        match self.dice.below(if self.weather.stops_nodes { 15 } else { 11 }) {
            11..=12 => self.ask_one_to_stop(),
            13..=14 => self.block_one(),
            0..=1 => self.stop_one(),
            2..=3 => self.kill_one(),
            4 => self.take_down(),
            5..=6 => self.lock_rows(),
            7 => {
                self.weather.slow_ms = self.dice.between(100, 12_000);
                let time = self.dice.between(500, 15_000);
                self.log(|| "statements are slow".to_owned());
                self.after(time, |world| world.weather.slow_ms = 0);
            }
            8 => {
                self.weather.beats_late_ms = self.dice.between(500, 12_000);
                let time = self.dice.between(1_000, 15_000);
                self.log(|| "heartbeats are late".to_owned());
                self.after(time, |world| world.weather.beats_late_ms = 0);
            }
            9 => {
                self.weather.hints_bad = true;
                let time = self.dice.between(1_000, 20_000);
                self.after(time, |world| world.weather.hints_bad = false);
            }
            _ => self.step_clock(),
        }
    }

    fn any_node(&mut self) -> usize {
        let nodes = self.processes.len() as u64 - 1;
        usize::try_from(1 + self.dice.below(nodes)).unwrap_or(1)
    }

    fn stop_one(&mut self) {
        let number = self.any_node();
        let time = self.dice.between(300, 20_000);
        let until = self.now + time;
        if let Some(process) = &mut self.processes[number] {
            process.stopped_until = until;
        }
        self.log(|| format!("node-{number} is stopped for {time} ms"));
    }

    /// A graceful stop in the middle of what runs; the process comes back.
    fn ask_one_to_stop(&mut self) {
        let number = self.any_node();
        let grace = [0, 300, 3_000, 20_000][usize::try_from(self.dice.below(4)).unwrap_or(0)];
        if let Some(process) = &self.processes[number] {
            process.ground.ask_to_stop(Duration::from_millis(grace));
        }
        self.log(|| format!("node-{number} is asked to stop within {grace} ms"));
    }

    /// The JavaScript loop of a node stands still; its heartbeats go on.
    fn block_one(&mut self) {
        let number = self.any_node();
        let time = self.dice.between(200, 15_000);
        if let Some(process) = &self.processes[number] {
            process.block(Duration::from_millis(time));
        }
        self.log(|| format!("the loop of node-{number} stands still for {time} ms"));
    }

    fn kill_one(&mut self) {
        let number = self.any_node();
        self.kill(number);
        let pause = self.dice.between(100, 15_000);
        self.after(pause, move |world| world.revive(number));
    }

    fn take_down(&mut self) {
        if self.weather.down {
            return;
        }
        let time = self.dice.between(100, 20_000);
        self.log(|| format!("the database is down for {time} ms"));
        self.set_down(true);
        // A failover: another machine with another clock; nothing committed is lost.
        if self.dice.one_in(2) {
            self.step_clock();
        }
        self.after(time, |world| {
            world.set_down(false);
            world.locks.clear();
            world.model.locked.clear();
            world.model.up_since = world.model.now;
        });
    }

    fn set_down(&mut self, down: bool) {
        self.weather.down = down;
        for process in self.processes.iter().flatten() {
            process.set_down(down);
        }
    }

    fn step_clock(&mut self) {
        if !self.weather.steps_clock {
            return;
        }
        let step = i64::try_from(self.dice.between(1, 20_000)).unwrap_or(0);
        let step = if self.dice.one_in(2) { step } else { -step };
        self.model.went_back |= step < 0;
        self.ahead += step;
        self.log(|| "the database's clock steps".to_owned());
    }

    fn lock_rows(&mut self) {
        let ids: Vec<String> = self.model.turns.keys().cloned().collect();
        let until = self.now + self.dice.between(50, 8_000);
        for id in ids {
            if self.dice.one_in(2) && !self.locks.contains_key(&id) {
                self.locks.insert(id.clone(), until);
                self.model.locked.insert(id.clone());
                self.at(
                    until,
                    Happening::Over(Box::new(move |world: &mut Self| {
                        world.locks.remove(&id);
                        world.model.locked.remove(&id);
                    })),
                );
            }
        }
        self.log(|| "somebody locks rows".to_owned());
    }

    fn mend(&mut self) {
        self.log(|| "calm".to_owned());
        self.weather.loses = 0;
        for number in 1..self.processes.len() {
            self.revive(number);
        }
    }
}
