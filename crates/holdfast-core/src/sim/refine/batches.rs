//! The random commands that commit: batches of clients' items, of turns and of activities, new ones and ones of before.

use holdfast_replay::{EventId, MessageBody};

use super::{
    super::{
        model::{Model, source},
        program::Dice,
    },
    answers::{self, real_items},
    book::{TaskLease, TurnLease, remember},
    commands::{Run, Step, both},
    sides::ask,
    turns::{any_instance, any_name, any_tag, draw, open_activities, payload},
};
use crate::store::{
    ActivityKey,
    commit::{
        ActivityCommit, ActivityEnd, ActivityOutcome, CommitItem, CommitOutcome, Enqueue, NewStandalone,
        Send, Start, StartLease, TurnCommit,
    },
    message::event_number,
};

impl Run<'_> {
    /// Starts, events and cancels of clients alone.
    pub(super) async fn clients(&mut self) -> Step {
        let items = (0..=self.dice.below(4)).map(|_| self.client_item()).collect();
        self.commit(items, false).await
    }

    pub(super) fn client_item(&mut self) -> CommitItem {
        let instance = any_instance(&mut self.dice);
        let dedup_key = (!self.dice.one_in(3)).then(|| format!("k{}", self.dice.below(6)));
        match self.dice.below(8) {
            6..=7 => self.enqueue(),
            0..=2 => CommitItem::Start(self.client_start(instance)),
            3 => {
                let body = MessageBody::CancelRequested { reason: "\"client\"".to_owned() };
                CommitItem::Send(Send { instance, body, dedup_key })
            }
            _ => {
                let data = payload(self.book.value());
                let body = MessageBody::EventRaised { name: "e".to_owned(), data };
                CommitItem::Send(Send { instance, body, dedup_key })
            }
        }
    }

    fn enqueue(&mut self) -> CommitItem {
        let task = |run: &mut Self| NewStandalone {
            id: format!("j{}", run.dice.below(4)),
            name: "a".to_owned(),
            input: run.book.value(),
            retry: run.dice.one_in(3).then(|| r#"{"maxAttempts":3}"#.to_owned()),
            timeout_ms: run.dice.one_in(3).then_some(500),
            tag: any_tag(&mut run.dice),
            delay_ms: run.dice.below(2).cast_signed() * 300,
            retention_ms: [0, 0, -1, 2_000][usize::try_from(run.dice.below(4)).unwrap_or(0)],
        };
        let tasks = (0..=self.dice.below(2)).map(|_| task(self)).collect();
        CommitItem::Enqueue(Enqueue { tasks, named: self.dice.one_in(2) })
    }

    fn client_start(&mut self, instance: String) -> Start {
        let mut start = Start {
            instance,
            name: any_name(&mut self.dice),
            version: self.dice.one_in(3).then(|| "1".to_owned()),
            input: self.dice.below(2).to_string(),
            delay_ms: self.dice.one_in(5).then(|| self.dice.below(2_000).cast_signed()),
            start_at_ms: self
                .dice
                .one_in(8)
                .then(|| self.sides.model.now - 500 + self.dice.below(2_000).cast_signed()),
            ..Start::default()
        };
        if start.delay_ms.is_none() && start.start_at_ms.is_none() && self.dice.one_in(2) {
            start.lease = Some(StartLease { node: self.any_node(), lease_ms: self.lease_ms() });
        }
        start
    }

    /// A batch of turns and activities that were claimed some time, and of what clients send at the same time.
    pub(super) async fn settle(&mut self) -> Step {
        let mut items = Vec::new();
        let mut ends: Vec<ActivityKey> = Vec::new();
        for _ in 0..self.dice.below(3) {
            let Some(task) = pick(&mut self.dice, &self.book.tasks) else { break };
            if !ends.contains(&task.key) {
                let item = self.task_item(&task);
                ends.push(task.key);
                items.push(item);
            }
        }
        for _ in 0..self.dice.below(3) {
            let Some(lease) = pick(&mut self.dice, &self.book.turns) else { break };
            if let Some((key, item)) = self.rowless_item(&lease)
                && !ends.contains(&key)
            {
                ends.push(key);
                items.push(item);
            }
        }
        let mut settled: Vec<String> = Vec::new();
        for _ in 0..=self.dice.below(3) {
            let Some(lease) = pick(&mut self.dice, &self.book.turns) else { break };
            if !settled.contains(&lease.instance) {
                settled.push(lease.instance.clone());
                let turn = draw(&mut self.dice, &self.sides.model, &mut self.book, &lease, &ends);
                items.push(CommitItem::Turn(Box::new(turn)));
            }
        }
        for _ in 0..self.dice.below(3) {
            items.push(self.client_item());
        }
        // Clients' items may come first.
        if self.dice.one_in(2) {
            items.reverse();
        }
        if items.is_empty() {
            return Ok(());
        }
        let again = self.dice.one_in(10);
        self.commit(items, again).await
    }

    pub(super) fn task_item(&mut self, task: &TaskLease) -> CommitItem {
        let (execution, source) = (task.key.execution, EventId(task.key.event.unsigned_abs()));
        let value = payload(self.book.value());
        let outcome = match self.dice.below(5) {
            1 if execution == 0 => ActivityOutcome::StandaloneEnded(ActivityEnd::Failed(value)),
            2 if execution == 0 => ActivityOutcome::StandaloneEnded(ActivityEnd::Poisoned(value)),
            3.. if execution == 0 => ActivityOutcome::StandaloneEnded(ActivityEnd::Completed(value)),
            0 => ActivityOutcome::Retry {
                delay_ms: self.dice.below(3).cast_signed() * 400,
                attempt: task.attempt + 1,
            },
            1 => ActivityOutcome::Ended(MessageBody::ActivityFailed { execution, source, error: value }),
            _ => ActivityOutcome::Ended(MessageBody::ActivityCompleted { execution, source, result: value }),
        };
        let heartbeat = self.dice.one_in(4).then(|| payload(self.book.value()));
        CommitItem::Activity(ActivityCommit {
            key: task.key.clone(),
            fence: task.fence,
            node: task.node.clone(),
            outcome,
            rowless: false,
            rides: self.dice.one_in(3),
            heartbeat,
        })
    }

    /// The result of an activity that ran under the lease of its instance's turn; it may have a row all the same.
    fn rowless_item(&mut self, lease: &TurnLease) -> Option<(ActivityKey, CommitItem)> {
        let open = open_activities(&self.sides.model, &lease.instance, lease.execution);
        let event = pick(&mut self.dice, &open)?;
        let key = ActivityKey { instance: lease.instance.clone(), execution: lease.execution, event };
        let task = TaskLease { key: key.clone(), fence: lease.fence, node: lease.node.clone(), attempt: 1 };
        let mut item = self.task_item(&task);
        if let CommitItem::Activity(activity) = &mut item {
            activity.rowless = true;
            if let ActivityOutcome::Retry { .. } = activity.outcome {
                let (execution, source) = (lease.execution, EventId(event.unsigned_abs()));
                let result = payload(self.book.value());
                activity.outcome =
                    ActivityOutcome::Ended(MessageBody::ActivityCompleted { execution, source, result });
            }
        }
        Some((key, item))
    }

    /// A batch of before, as if its answer had been lost.
    pub(super) async fn run_again(&mut self) -> Step {
        match pick(&mut self.dice, &self.book.batches) {
            Some(items) => self.commit(items, true).await,
            None => Ok(()),
        }
    }

    pub(super) async fn commit(&mut self, items: Vec<CommitItem>, again: bool) -> Step {
        self.say(|| format!("commit, again {again}: {}", brief(&items)));
        let real = real_items(&items, &self.names);
        let before = self.sides.model.clone();
        let answer =
            both(ask!(self.sides, |fake| fake.commit(&items, again), |side| side.commit(&real, again)))?;
        let Some((fake, real)) = answer else {
            let fences = self.sides.model.fences;
            self.sides.model = Model { fences, ..before };
            return Ok(());
        };
        // Whoever runs something again is promised more than the tables tell; the simulation checks that.
        self.sides.model.wrong.clear();
        self.agree("commit", answers::outcomes(&fake), answers::outcomes(&real))?;
        for (item, outcome) in items.iter().zip(&fake) {
            self.note(item, outcome);
        }
        remember(&mut self.book.batches, items);
        Ok(())
    }

    /// What a settled turn leaves: its next fence, and the activities that its node took.
    pub(super) fn note(&mut self, item: &CommitItem, outcome: &CommitOutcome) {
        if let (CommitItem::Start(start), CommitOutcome::Begun { fence, .. }) = (item, outcome)
            && let Some(StartLease { node, .. }) = &start.lease
        {
            let lease = TurnLease {
                instance: start.instance.clone(),
                fence: *fence,
                node: node.clone(),
                name: start.name.clone(),
                version: start.version.clone(),
                execution: 1,
                history_len: 0,
                parent: None,
                parked: false,
                poisoned: false,
                messages: Vec::new(),
            };
            return remember(&mut self.book.turns, lease);
        }
        if let (CommitItem::Turn(turn), CommitOutcome::Kept) = (item, outcome) {
            return self.note_kept(turn);
        }
        let (CommitItem::Turn(turn), CommitOutcome::Settled(settled)) = (item, outcome) else { return };
        for task in &settled.handed {
            let key =
                ActivityKey { instance: turn.instance.clone(), execution: turn.execution, event: task.event };
            let lease = TaskLease { key, fence: task.fence, node: turn.node.clone(), attempt: 1 };
            remember(&mut self.book.tasks, lease);
        }
        if turn.end.is_none() && turn.park.is_none() {
            let lease = TurnLease {
                instance: turn.instance.clone(),
                fence: settled.next,
                node: turn.node.clone(),
                name: turn.name.clone(),
                version: Some(turn.version.clone()),
                execution: turn.execution,
                history_len: turn.history_len,
                parent: self.sides.model.instances.get(&turn.instance).and_then(|row| row.parent.clone()),
                parked: false,
                poisoned: false,
                messages: Vec::new(),
            };
            remember(&mut self.book.turns, lease);
        }
    }

    /// A turn whose lease goes on: the next one begins behind its events.
    fn note_kept(&mut self, turn: &TurnCommit) {
        for lease in self.book.turns.iter_mut().filter(|lease| lease.fence == turn.fence) {
            lease.history_len = lease.history_len.max(turn.history_len);
            lease.version = Some(turn.version.clone());
            lease.messages.retain(|(id, body)| {
                let used = |(execution, event)| {
                    execution == turn.execution && turn.results.contains(&event_number(EventId(event)))
                };
                !turn.consumed.contains(id) && !source(body).is_some_and(used)
            });
        }
    }
}

/// Items without what is empty in them.
fn brief(items: &[CommitItem]) -> String {
    let text = format!("{items:?}");
    let said =
        |part: &&str| !part.ends_with(": []") && !part.ends_with(": None") && !part.ends_with(": false");
    text.split(", ").filter(said).collect::<Vec<_>>().join(", ")
}

/// One of them, the newest most of the time.
fn pick<T: Clone>(dice: &mut Dice, of: &[T]) -> Option<T> {
    if of.is_empty() {
        return None;
    }
    let count = of.len() as u64;
    let back = dice.below(count).min(dice.below(count)).min(dice.below(count));
    Some(of[of.len() - 1 - usize::try_from(back).unwrap_or(0)].clone())
}
