//! Turns that begin without a claim and meet one: what becomes of the claim when the turn does not stand.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use holdfast_core::{
    client::Client, config::EngineConfig, dispatch::Handlers, engine::Engine, provider::Provider,
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};

use crate::support::{
    TestDatabase,
    world::{PATIENCE, sql_at, start},
};

/// An engine whose JavaScript is the test itself, with one instance that waits for the activity `slow` and an event.
struct Hand {
    provider: Arc<Provider>,
    engine: Arc<Engine>,
    client: Client,
    schema: String,
    turns: VecDeque<Value>,
    activities: VecDeque<Value>,
    aborts: VecDeque<Value>,
}

impl Hand {
    async fn new() -> Self {
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
        let engine = Engine::start(Arc::clone(&provider), config, handlers).await.expect("start");
        let client = Client::new(Arc::clone(&provider));
        start(&client, "i", "main", Value::Null).await;
        let (turns, activities, aborts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { provider, engine, client, schema, turns, activities, aborts }
    }

    /// The next of one kind of work.
    async fn pull(&mut self, kind: fn(&mut Self) -> &mut VecDeque<Value>) -> Value {
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

    async fn turn(&mut self) -> Value {
        self.pull(|hand| &mut hand.turns).await
    }

    /// Answers the first turn with its commands, and gives the job that follows.
    async fn begin(&mut self) -> Value {
        let first = self.turn().await;
        let commands = json!([
            { "activity": { "step": 0, "name": "slow", "input": null } },
            { "event": { "step": 0, "name": "go" } },
        ]);
        self.reply(&first, 0, commands, json!("waiting"));
        self.pull(|hand| &mut hand.activities).await
    }

    fn reply(&self, turn: &Value, applied: u32, commands: Value, outcome: Value) {
        let reply = json!({ "h": turn["h"], "n": applied, "c": commands, "o": outcome });
        self.engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    }

    fn finish(&self, job: &Value) {
        self.engine.complete(&json!({ "activities": [{ "h": job["h"], "ok": 1 }] }).to_string(), 0);
    }

    async fn send(&self, name: &str) {
        let body = MessageBody::EventRaised { name: name.to_owned(), data: Payload::null() };
        self.client.send("i".to_owned(), body).await.expect("send");
    }

    /// Waits until a second claim has been taken in: the claimer looks again only after that.
    async fn claimed_again(&self) {
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
    async fn until_waiting(&self, messages: i64) {
        let there = async {
            let count = || sql_at(TestDatabase::get().url(), &self.schema, "select count(*) from @inbox");
            while count().await[0].get::<_, i64>(0) < messages {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.expect("the messages come");
    }

    async fn stop(self) {
        self.engine.shutdown(Duration::ZERO).await;
        self.provider.close(PATIENCE).await;
    }
}

fn is_leased(turn: &Value) -> bool {
    turn.get("l").is_none()
}

fn facts(turn: &Value) -> Vec<&str> {
    turn["f"].as_array().expect("a list").iter().filter_map(|fact| fact["t"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_result_does_not_count_gives_back_the_claim_that_it_went_on_under() {
    let mut hand = Hand::new().await;
    let job = hand.begin().await;
    let taken_by_others = "update @activity_queue set fence = nextval('@fence_seq'), owner = null,
        owner_epoch = null, leased_at = null, due_at = clock_timestamp() + interval '1 hour'";
    sql_at(TestDatabase::get().url(), &hand.schema, taken_by_others).await;
    hand.finish(&job);
    let local = hand.turn().await;
    assert!(!is_leased(&local));
    hand.send("go").await;
    hand.claimed_again().await;
    hand.reply(&local, 1, json!([]), json!("waiting"));
    // The claim's own message is found by the next one, at once and not when the lease is over.
    let next = hand.turn().await;
    assert!(is_leased(&next));
    assert_eq!(facts(&next), ["event"]);
    assert_eq!(hand.provider.counters().leases_lost.get(), 1, "the activity's, and no turn's");
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_comes_to_a_local_step_gives_back_the_claim_that_it_went_on_under() {
    let mut hand = Hand::new().await;
    let job = hand.begin().await;
    hand.finish(&job);
    let local = hand.turn().await;
    assert!(!is_leased(&local));
    hand.send("go").await;
    hand.claimed_again().await;
    // The result of a turn that is late goes to the inbox alone.
    hand.until_waiting(2).await;
    hand.engine.complete(&json!({ "turns": [{ "h": local["h"], "abandon": true }] }).to_string(), 0);
    let next = hand.turn().await;
    assert!(is_leased(&next));
    assert_eq!(facts(&next).len(), 2, "{next}");
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_cancelled_activity_begins_no_turn_and_leaves_the_frame_alone() {
    let mut hand = Hand::new().await;
    let job = hand.begin().await;
    hand.send("go").await;
    let second = hand.turn().await;
    let commands =
        json!([{ "cancel": { "step": 1, "seq": 0 } }, { "event": { "step": 1, "name": "again" } }]);
    hand.reply(&second, 1, commands, json!("waiting"));
    // It is told to stop once the turn is committed.
    hand.pull(|hand| &mut hand.aborts).await;
    hand.finish(&job);
    hand.send("again").await;
    let third = hand.turn().await;
    assert!(is_leased(&third) && third.get("start").is_none(), "{third}");
    assert_eq!(facts(&third), ["event"]);
    assert_eq!(hand.provider.counters().local_turns.get(), 0);
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_a_deleted_instance_does_not_answer_for_the_one_that_has_its_id() {
    let mut hand = Hand::new().await;
    let old = hand.turn().await;
    let deleted = "with deleted as (delete from @turn_queue) delete from @instance";
    sql_at(TestDatabase::get().url(), &hand.schema, deleted).await;
    start(&hand.client, "i", "main", json!("another")).await;
    hand.reply(&old, 0, json!([]), json!({ "completed": { "output": "old" } }));
    let new = hand.turn().await;
    hand.reply(&new, 0, json!([]), json!({ "completed": { "output": "new" } }));
    let end = hand.client.wait("i", PATIENCE).await.expect("wait").expect("an end");
    assert_eq!(end.output.as_deref(), Some("\"new\""));
    hand.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_what_goes_on_here_hears_of_an_end_elsewhere() {
    let mut hand = Hand::new().await;
    hand.turn().await;
    let ended = "update @instance set status = 'Completed', output = '1', finished_at = clock_timestamp()";
    let (waited, ()) = tokio::join!(hand.client.wait("i", PATIENCE), async {
        sql_at(TestDatabase::get().url(), &hand.schema, ended).await;
    });
    assert_eq!(waited.expect("no error").and_then(|row| row.output).as_deref(), Some("1"));
    hand.stop().await;
}
