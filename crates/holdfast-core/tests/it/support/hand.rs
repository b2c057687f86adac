//! An engine whose JavaScript is the test: it pulls work and answers it by hand.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use holdfast_core::{
    client::Client, config::EngineConfig, dispatch::Handlers, engine::Engine, pool::Row, provider::Provider,
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};

use super::{
    TestDatabase,
    world::{PATIENCE, sql_at, start},
};

/// An engine whose JavaScript is the test itself, with one instance that waits for the activity `slow` and an event.
pub(crate) struct Hand {
    pub(crate) provider: Arc<Provider>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) client: Client,
    pub(crate) schema: String,
    pub(crate) turns: VecDeque<Value>,
    pub(crate) activities: VecDeque<Value>,
    pub(crate) aborts: VecDeque<Value>,
}

impl Hand {
    pub(crate) async fn new() -> Self {
        Self::with_rows_after(Duration::from_millis(50)).await
    }

    /// One whose activities get no row unless something asks for it.
    pub(crate) async fn rowless() -> Self {
        Self::with_rows_after(Duration::from_secs(600)).await
    }

    async fn with_rows_after(delay: Duration) -> Self {
        let database = TestDatabase::get();
        let schema = database.schema();
        let provider =
            Provider::connect(database.url(), &schema, database.pool_config()).await.expect("connect");
        let handlers =
            json!({ "orchestrations": [{ "name": "main", "version": "1.0.0" }], "activities": ["slow"] });
        let handlers = Handlers::parse(&handlers.to_string()).expect("valid handlers");
        let mut config = EngineConfig::default();
        // Nothing but what is under test ends a lease while a test runs.
        config.lease.orchestrator_lock_timeout = Duration::from_secs(3600);
        config.lease.activity_row_delay = delay;
        let engine = Engine::start(Arc::clone(&provider), config, handlers).await.expect("start");
        let client = Client::new(Arc::clone(&provider));
        start(&client, "i", "main", Value::Null).await;
        let (turns, activities, aborts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { provider, engine, client, schema, turns, activities, aborts }
    }

    /// The next of one kind of work.
    pub(crate) async fn pull(&mut self, kind: fn(&mut Self) -> &mut VecDeque<Value>) -> Value {
        loop {
            if let Some(found) = kind(self).pop_front() {
                return found;
            }
            let text = tokio::time::timeout(PATIENCE, self.engine.next(64)).await.expect("work comes");
            let mut batch: Value = serde_json::from_str(&text.expect("it runs")).expect("JSON");
            let mut take = |name: &str| batch[name].as_array_mut().map(std::mem::take).unwrap_or_default();
            self.turns.extend(take("turns"));
            self.activities.extend(take("activities"));
            self.aborts.extend(take("aborts"));
        }
    }

    pub(crate) async fn turn(&mut self) -> Value {
        self.pull(|hand| &mut hand.turns).await
    }

    /// Answers the first turn with its commands, and gives the job that follows.
    pub(crate) async fn begin(&mut self) -> Value {
        let first = self.turn().await;
        let commands = json!([
            { "activity": { "step": 0, "name": "slow", "input": null } },
            { "event": { "step": 0, "name": "go" } },
        ]);
        self.reply(&first, 0, commands, json!("waiting"));
        self.pull(|hand| &mut hand.activities).await
    }

    /// The same, and waits until the activity has its row.
    pub(crate) async fn begin_with_row(&mut self) -> Value {
        let job = self.begin().await;
        self.until(1, "select count(*) from @activity_queue where owner is not null").await;
        job
    }

    pub(crate) fn reply(&self, turn: &Value, applied: u32, commands: Value, outcome: Value) {
        let reply = json!({ "h": turn["h"], "n": applied, "c": commands, "o": outcome });
        self.engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    }

    pub(crate) fn finish(&self, job: &Value) {
        self.engine.complete(&json!({ "activities": [{ "h": job["h"], "ok": 1 }] }).to_string(), 0);
    }

    pub(crate) fn fail(&self, job: &Value) {
        let error = json!({ "name": "Error", "message": "no" });
        self.engine.complete(&json!({ "activities": [{ "h": job["h"], "err": error }] }).to_string(), 0);
    }

    pub(crate) async fn send(&self, name: &str) {
        let body = MessageBody::EventRaised { name: name.to_owned(), data: Payload::null() };
        self.client.send("i".to_owned(), body).await.expect("send");
    }

    /// Waits until a second claim has been taken in: the claimer looks again only after that.
    pub(crate) async fn claimed_again(&self) {
        let counters = self.provider.counters();
        let claimed = async {
            // The first turn began with its start, or was claimed.
            while counters.turns_claimed.get() + counters.local_starts.get() < 2 {
                tokio::task::yield_now().await;
            }
            let looks = counters.looks.get();
            while counters.looks.get() == looks {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, claimed).await.expect("the instance is claimed");
    }

    /// Waits until so many messages wait in the inbox.
    pub(crate) async fn until_waiting(&self, messages: i64) {
        self.until(messages, "select count(*) from @inbox").await;
    }

    /// Waits until a statement counts so many at least.
    pub(crate) async fn until(&self, least: i64, count: &str) {
        let there = async {
            while self.number(count).await < least {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.expect(count);
    }

    /// The number that a statement gives.
    pub(crate) async fn number(&self, statement: &str) -> i64 {
        self.sql(statement).await[0].get(0)
    }

    pub(crate) async fn sql(&self, statement: &str) -> Vec<Row> {
        sql_at(TestDatabase::get().url(), &self.schema, statement).await
    }

    pub(crate) async fn stop(self) {
        self.engine.shutdown(Duration::ZERO).await;
        self.provider.close(PATIENCE).await;
    }
}

pub(crate) fn is_leased(turn: &Value) -> bool {
    turn.get("l").is_none()
}

pub(crate) fn facts(turn: &Value) -> Vec<&str> {
    turn["f"].as_array().expect("a list").iter().filter_map(|fact| fact["t"].as_str()).collect()
}
