//! A provider, a runtime with a stand-in for JavaScript, and a client, on a schema of their own.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    client::{Client, StartOutcome},
    config::EngineConfig,
    dispatch::Handlers,
    engine::Engine,
    pool::{Pool, PoolConfig, Row, SessionPurpose, Statement},
    provider::Provider,
    store::{commit::Start, instance::InstanceRow},
};
use serde_json::{Value, json};

use super::{
    TestDatabase,
    host::{Code, Host, Move, Seen, sequence},
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) provider: Arc<Provider>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) host: Host,
    pub(crate) client: Client,
    pub(crate) schema: String,
    /// The application name of its sessions, or their beginning.
    pub(crate) application: String,
}

impl World {
    pub(crate) async fn new(code: Code, config: EngineConfig) -> Self {
        Self::at(TestDatabase::get().url(), code, config).await
    }

    /// A world whose database is reached by this URL.
    pub(crate) async fn at(url: &str, code: Code, config: EngineConfig) -> Self {
        let database = TestDatabase::get();
        let schema = database.schema();
        let pool = database.pool_config();
        let application = pool.application_name.clone();
        let provider = Provider::connect(url, &schema, pool).await.expect("connect");
        let (engine, host) = run(&provider, code, config).await;
        let client = Client::new(Arc::clone(&provider));
        Self { provider, engine, host, client, schema, application }
    }

    pub(crate) async fn start(&self, instance: &str, name: &str, input: Value) -> StartOutcome {
        start(&self.client, instance, name, input).await
    }

    /// The same, by a start that goes through the queue: its first turn does not begin here at once.
    pub(crate) async fn start_queued(&self, instance: &str, name: &str, input: Value) -> StartOutcome {
        let start = Start { delay_ms: Some(0), ..new_start(instance, name, input) };
        self.client.start(vec![start]).await.remove(0).expect("start")
    }

    pub(crate) async fn end(&self, instance: &str) -> InstanceRow {
        let ended = self.client.wait(instance, PATIENCE).await.expect("wait");
        ended.unwrap_or_else(|| panic!("{instance} did not end"))
    }

    pub(crate) async fn output(&self, instance: &str) -> Value {
        let row = self.end(instance).await;
        assert_eq!(row.status, "Completed", "{row:?}");
        serde_json::from_str(&row.output.expect("an output")).expect("JSON")
    }

    pub(crate) async fn kinds(&self, instance: &str, execution: i64) -> Vec<String> {
        let history = self.client.history(instance, execution).await.expect("history");
        for (index, event) in history.iter().enumerate() {
            assert_eq!(event.id.0 as usize, index + 1, "history is gapless");
        }
        history.into_iter().map(|event| event.kind).collect()
    }

    /// Runs test SQL on a session of its own; `@` stands for the schema.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<Row> {
        sql_at(TestDatabase::get().url(), &self.schema, sql).await
    }

    /// One number of test SQL.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.sql(sql).await[0].get(0)
    }

    /// Waits until the number of test SQL is this one.
    pub(crate) async fn until(&self, sql: &str, wanted: i64) {
        let found = async {
            while self.number(sql).await != wanted {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{sql} never was {wanted}"));
    }

    pub(crate) async fn stop(self) {
        self.engine.shutdown(Duration::from_secs(5)).await;
        self.host.ended().await;
        self.provider.close(Duration::from_secs(5)).await;
    }
}

pub(crate) async fn start(client: &Client, instance: &str, name: &str, input: Value) -> StartOutcome {
    client.start(vec![new_start(instance, name, input)]).await.remove(0).expect("start")
}

fn new_start(instance: &str, name: &str, input: Value) -> Start {
    Start {
        instance: instance.to_owned(),
        name: name.to_owned(),
        input: input.to_string(),
        ..Start::default()
    }
}

pub(crate) async fn run(provider: &Arc<Provider>, code: Code, config: EngineConfig) -> (Arc<Engine>, Host) {
    let handlers = Handlers::parse(&code.handlers()).expect("valid handlers");
    let engine = Engine::start(Arc::clone(provider), config, handlers).await.expect("start");
    let host = Host::run(&engine, code);
    (engine, host)
}

pub(crate) fn steps() -> Code {
    Code::default().program("steps", sequence).body("work", |job| Ok(job["input"].clone()))
}

/// A program that gives its commands at once, waits for all of them and completes with their results in order.
pub(crate) fn all(commands: Vec<Value>) -> impl Fn(&Seen) -> Move + Send + Sync + 'static {
    move |seen| {
        if seen.commands == 0 {
            return Move::Ask(commands.clone());
        }
        if seen.results.len() < commands.len() {
            return Move::Wait;
        }
        let results: Vec<&Value> = (0..commands.len() as u64).map(|seq| &seen.results[&seq]).collect();
        Move::End(json!({ "completed": { "output": results } }))
    }
}

pub(crate) fn hangs() -> Vec<Value> {
    vec![json!({ "activity": { "name": "hangs", "input": null } })]
}

/// Runs test SQL on a session of its own; `@` stands for the schema.
pub(crate) async fn sql_at(url: &str, schema: &str, sql: &str) -> Vec<Row> {
    let pool = Pool::connect(url, PoolConfig::default()).await.expect("connect");
    let session = pool.open_session(SessionPurpose::Migration).await.expect("a session");
    let text = sql.replace('@', &format!("\"{schema}\"."));
    let rows = session.query(&Statement { name: "test/query", text, types: (&[]).into() }, &[]).await;
    rows.unwrap_or_else(|error| panic!("{sql}: {}", error.full_text()))
}
