//! The pool against a real server.

use holdfast_core::pool::{CallerClass, Statement, Type};

use crate::support::TestDatabase;

fn statement(text: &str, types: &'static [Type]) -> Statement {
    Statement { name: "test/statement", text: text.to_owned(), types }
}

#[tokio::test]
async fn a_session_answers() {
    let pool = TestDatabase::get().pool().await;
    let session = pool.acquire(CallerClass::Ordinary).await.expect("a session");
    let rows =
        session.query(&statement("select $1 + 1", &[Type::INT4]), &[&41_i32]).await.expect("an answer");
    assert_eq!(rows[0].get::<_, i32>(0), 42);
}
