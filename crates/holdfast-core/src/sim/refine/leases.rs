//! The random commands that keep, give back and free leases, those of nodes, and those that only ask.

use std::time::Duration;

use super::{
    answers::{real_fences, told},
    commands::{ACTIVITIES, HANDLERS, NAMES, Run, Step, both, same, strings},
    sides::ask,
    turns::{any_instance, payload},
};
use crate::store::{
    ActivityKey, Fence, NodeKey,
    activity::Beat,
    look::LookOrder,
    node::{Along, HeartbeatTimes, NodeTimes, Recovery},
    turn::RenewRequest,
};

impl Run<'_> {
    pub(super) async fn register(&mut self, number: u64) -> Step {
        let id = format!("node-{number}");
        let times = NodeTimes { interval_ms: 1_000, stale_after_ms: 5_000 };
        self.say(|| format!("register {id}"));
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.register(&id, times)))? {
            same("register", &fake, &real)?;
            self.book.nodes.push(fake);
        }
        Ok(())
    }

    pub(super) async fn goodbye(&mut self) -> Step {
        let node = self.any_node();
        self.say(|| format!("goodbye {node:?}"));
        both(ask!(self.sides, |side| side.goodbye(&node))).map(drop)
    }

    /// Fences of a node's leases, of turns or of activities; some of them are gone.
    pub(super) fn some_fences(&mut self, turns: bool) -> (NodeKey, Vec<Fence>) {
        let node = self.any_node();
        let held: Vec<Fence> = if turns {
            self.book.turns.iter().filter(|lease| lease.node == node).map(|lease| lease.fence).collect()
        } else {
            self.book.tasks.iter().filter(|lease| lease.node == node).map(|lease| lease.fence).collect()
        };
        let fences = held.into_iter().filter(|_| !self.dice.one_in(3)).collect();
        (node, fences)
    }

    pub(super) async fn renew(&mut self) -> Step {
        let turns = self.dice.one_in(2);
        let (node, fences) = self.some_fences(turns);
        let times =
            RenewRequest { lock_timeout_ms: self.lease_ms(), backoff_base_ms: 100, backoff_max_ms: 1_000 };
        self.say(|| format!("renew, turns {turns}: {node:?} {fences:?} {times:?}"));
        let real = real_fences(&fences, &self.names);
        let answer = if turns {
            ask!(self.sides, |fake| fake.renew_turns(&node, &fences, &times), |side| side
                .renew_turns(&node, &real, &times))
        } else {
            ask!(self.sides, |fake| fake.renew_activities(&node, &fences, &times), |side| side
                .renew_activities(&node, &real, &times))
        };
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("renewed", &told(&fake, false, &self.names), &told(&real, true, &self.names))
    }

    pub(super) async fn give_back(&mut self) -> Step {
        let (turns, releases, flag) = (self.dice.one_in(2), self.dice.one_in(2), self.dice.one_in(2));
        let (node, fences) = self.some_fences(turns);
        if turns && self.dice.one_in(3) {
            self.say(|| format!("cut off {node:?} {fences:?}"));
            let real = real_fences(&fences, &self.names);
            let answer = ask!(self.sides, |fake| fake.cut_off_turns(&node, &fences), |side| side
                .cut_off_turns(&node, &real));
            let Some((fake, real)) = both(answer)? else { return Ok(()) };
            return same("cut off", &fake, &real);
        }
        let delay = if flag { 0 } else { 900 };
        self.say(|| format!("give back, turns {turns}, release {releases}, {flag}: {node:?} {fences:?}"));
        let real = real_fences(&fences, &self.names);
        let answer = match (turns, releases) {
            (true, true) => {
                ask!(self.sides, |fake| fake.release_turns(&node, &fences, delay), |side| side
                    .release_turns(&node, &real, delay))
            }
            (true, false) => {
                ask!(self.sides, |fake| fake.abandon_turns(&node, &fences, flag), |side| side
                    .abandon_turns(&node, &real, flag))
            }
            (false, true) => {
                ask!(self.sides, |fake| fake.release_activities(&node, &fences, delay), |side| side
                    .release_activities(&node, &real, delay))
            }
            (false, false) => {
                ask!(self.sides, |fake| fake.abandon_activities(&node, &fences, flag), |side| side
                    .abandon_activities(&node, &real, flag))
            }
        };
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("given back", &fake, &real)
    }

    /// What is gone, taken, cancelled, open; nothing is changed.
    pub(super) async fn questions(&mut self) -> Step {
        let turns = self.dice.one_in(2);
        let (node, fences) = self.some_fences(turns);
        let real = real_fences(&fences, &self.names);
        let answer = if turns {
            ask!(self.sides, |fake| fake.gone_turns(&node, &fences), |side| side.gone_turns(&node, &real))
        } else {
            ask!(self.sides, |fake| fake.gone_activities(&node, &fences), |side| side
                .gone_activities(&node, &real))
        };
        if let Some((fake, real)) = both(answer)? {
            same("gone", &told(&fake, false, &self.names), &told(&real, true, &self.names))?;
        }
        let tasks: Vec<(Fence, ActivityKey)> =
            self.book.tasks.iter().map(|task| (task.fence, task.key.clone())).collect();
        let real: Vec<(Fence, ActivityKey)> =
            tasks.iter().map(|(fence, key)| (Fence(self.names.fences.real(fence.0)), key.clone())).collect();
        if let Some((fake, real)) =
            both(ask!(self.sides, |fake| fake.taken(&tasks), |side| side.taken(&real)))?
        {
            same("taken", &told(&fake, false, &self.names), &told(&real, true, &self.names))?;
        }
        let instance = any_instance(&mut self.dice);
        self.say(|| format!("questions of {node:?}, of {instance}"));
        let instances = [instance.clone()];
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.cancels(&instances)))? {
            let bodies = |found: &[(String, holdfast_replay::Message)]| {
                found.iter().map(|(of, message)| (of.clone(), message.body.clone())).collect::<Vec<_>>()
            };
            same("cancels", &bodies(&fake), &bodies(&real))?;
        }
        let execution = self.dice.between(1, 2).cast_signed();
        if let Some((fake, real)) = both(ask!(self.sides, |side| side.open(&instance, execution)))? {
            let sorted = |open: crate::store::turn::Open| {
                let (mut activities, mut children) = (open.activities, open.children);
                activities.sort_unstable();
                children.sort();
                (activities, children, open.last_event)
            };
            same("open", &sorted(fake), &sorted(real))?;
        }
        Ok(())
    }

    pub(super) async fn beat(&mut self) -> Step {
        let mut beats: Vec<Beat> = Vec::new();
        for task in self.book.tasks.clone() {
            if self.dice.one_in(3) || beats.iter().any(|beat| beat.key == task.key) {
                continue;
            }
            beats.push(Beat { key: task.key, fence: task.fence, details: payload(self.book.value()) });
        }
        self.say(|| format!("beat {beats:?}"));
        let real: Vec<Beat> = beats
            .iter()
            .map(|beat| Beat { fence: Fence(self.names.fences.real(beat.fence.0)), ..beat.clone() })
            .collect();
        let Some((fake, real)) = both(ask!(self.sides, |fake| fake.beat(&beats), |side| side.beat(&real)))?
        else {
            return Ok(());
        };
        same("beats", &told(&fake, false, &self.names), &told(&real, true, &self.names))
    }

    /// One, or as many of one node as make others stale.
    pub(super) async fn heartbeats(&mut self) -> Step {
        let (node, turns) = self.some_fences(true);
        self.heartbeat(&node, &turns).await?;
        if self.dice.one_in(2) {
            for _ in 0..self.dice.between(3, 6) {
                self.sides.model.now += 1_500;
                self.sides.tell_time().await?;
                self.heartbeat(&node, &turns).await?;
            }
            if self.dice.one_in(2) {
                return self.sweep().await;
            }
        }
        Ok(())
    }

    async fn heartbeat(&mut self, node: &NodeKey, turns: &[Fence]) -> Step {
        let tasks: Vec<Fence> =
            self.book.tasks.iter().filter(|task| task.node == *node).map(|task| task.fence).collect();
        let recovery = match self.dice.below(4) {
            0 => Recovery::Forbidden,
            _ => Recovery::Allowed {
                clean_ms: self.dice.below(3).cast_signed() * 4_000,
                fresh: self.dice.one_in(2),
            },
        };
        let times = HeartbeatTimes { explicit: self.dice.one_in(2), claim_limit_ms: 2_000, recovery };
        let order = self.dice.one_in(2).then(|| self.order());
        self.say(|| format!("heartbeat {node:?} {turns:?} {tasks:?} {times:?} {order:?}"));
        let look = order.as_ref().map(|order| order.by(node));
        let along = Along { proof_channel: None, look: look.as_ref() };
        self.sides.forget_marks();
        let (real_turns, real_tasks) = (real_fences(turns, &self.names), real_fences(&tasks, &self.names));
        let answer =
            ask!(self.sides, |fake| fake.heartbeat(node, (turns, &tasks), times, along), |side| side
                .heartbeat(node, (&real_turns, &real_tasks), times, along));
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same(
            "heartbeat",
            &(fake.alive, fake.released, fake.outage, fake.due),
            &(real.alive, real.released, real.outage, real.due),
        )?;
        let sorted = |ids: &[String]| {
            let mut ids = ids.to_vec();
            ids.sort();
            ids
        };
        same("recovered", &sorted(&fake.recovered_nodes), &sorted(&real.recovered_nodes))?;
        let names = &self.names;
        same("gone turns", &told(&fake.gone_turns, false, names), &told(&real.gone_turns, true, names))?;
        same(
            "gone tasks",
            &told(&fake.gone_activities, false, names),
            &told(&real.gone_activities, true, names),
        )
    }

    pub(super) async fn sweep(&mut self) -> Step {
        self.say(|| "sweep".to_owned());
        let Some((fake, real)) = both(ask!(self.sides, |side| side.sweep()))? else { return Ok(()) };
        same("swept", &(fake.freed, fake.more), &(real.freed, real.more))
    }

    fn order(&mut self) -> LookOrder {
        LookOrder {
            names: strings(&NAMES),
            handlers: strings(&HANDLERS),
            activities: strings(&ACTIVITIES),
            tags: self.tags(),
            new_sessions: self.dice.one_in(2),
            replay: self.replay(),
        }
    }

    pub(super) async fn look(&mut self) -> Step {
        let (node, order) = (self.any_node(), self.order());
        self.say(|| format!("look {node:?} {order:?}"));
        self.sides.forget_marks();
        let request = order.by(&node);
        let Some((fake, real)) = both(ask!(self.sides, |side| side.look(&request)))? else { return Ok(()) };
        same("look", &fake, &real)
    }

    pub(super) async fn release_unknown(&mut self) -> Step {
        let (node, turns) = self.some_fences(true);
        let tasks: Vec<Fence> =
            self.book.tasks.iter().filter(|task| task.node == node).map(|task| task.fence).collect();
        let older = Duration::from_millis(self.dice.below(2) * 1_500);
        self.say(|| format!("release unknown {node:?} {turns:?} {tasks:?} {older:?}"));
        let (real_turns, real_tasks) = (real_fences(&turns, &self.names), real_fences(&tasks, &self.names));
        let answer = ask!(self.sides, |fake| fake.release_unknown(&node, &turns, &tasks, older), |side| side
            .release_unknown(&node, &real_turns, &real_tasks, older));
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("released", &fake, &real)
    }
}
