//! The pool against a real server, one file for each subject.

mod admission;
mod breaker;
mod encryption;
mod events;
mod network;
mod pooler;
mod recovery;
mod sessions;
mod transactions;

use std::{future::Future, sync::Arc, time::Duration};

use holdfast_core::{
    error::Result,
    pool::{CallerClass, Lease, Pool, PoolConfig, Row, Session, Statement, ToSql, Type},
};

use crate::support::TestDatabase;

/// A statement outside any family.
fn statement(text: &str, types: &'static [Type]) -> Statement {
    Statement { name: "test/statement", text: text.to_owned(), types: types.into() }
}

async fn ask(session: &Session, text: &str) -> Result<Vec<Row>> {
    session.query(&statement(text, &[]), &[]).await
}

async fn number(session: &Session, text: &str) -> i64 {
    ask(session, text).await.expect("an answer")[0].get(0)
}

async fn own_pid(session: &Session) -> i32 {
    ask(session, "select pg_backend_pid()").await.expect("an answer")[0].get(0)
}

async fn lease(pool: &Arc<Pool>) -> Lease {
    pool.acquire(CallerClass::Ordinary).await.expect("a session")
}

async fn pool(change: impl FnOnce(&mut PoolConfig)) -> Arc<Pool> {
    let database = TestDatabase::get();
    let mut config = database.pool_config();
    change(&mut config);
    Pool::connect(database.url(), config).await.expect("the test database answers")
}

/// How many sessions the server has under this application name.
async fn sessions_named(observer: &Session, name: &str) -> i64 {
    let count = statement("select count(*) from pg_stat_activity where application_name = $1", &[Type::TEXT]);
    observer.query(&count, &[&name]).await.expect("an answer")[0].get(0)
}

/// Asks again until the answer is yes; the asking itself takes its time. Fails after half a minute.
async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let asking = async { while !ask().await {} };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A table of this test alone.
struct Table {
    pool: Arc<Pool>,
    name: String,
}

impl Table {
    /// `columns` as in `create table`.
    async fn new(columns: &str) -> Self {
        let database = TestDatabase::get();
        let table = Self { pool: database.pool().await, name: database.schema() };
        lease(&table.pool)
            .await
            .batch(&format!("create table {} ({columns})", table.name))
            .await
            .expect("a table");
        table
    }

    fn insert(&self) -> Statement {
        statement(&format!("insert into {} values ($1)", self.name), &[Type::INT4])
    }

    async fn rows(&self) -> i64 {
        number(&*lease(&self.pool).await, &format!("select count(*) from {}", self.name)).await
    }
}

/// One parameter, as the pool wants them.
fn one(value: &(dyn ToSql + Sync)) -> [&(dyn ToSql + Sync); 1] {
    [value]
}
