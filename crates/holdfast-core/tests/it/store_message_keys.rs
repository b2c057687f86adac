//! Keys of clients' messages: one message comes once, however often it is sent.

use std::sync::Arc;

use holdfast_core::{
    client::{Client, Sent},
    pool::{MaxClients, PoolConfig},
    provider::Provider,
    store::{
        commit::{CommitItem, CommitOutcome},
        session,
    },
};
use holdfast_replay::MessageBody;

use crate::{
    store_harness::*,
    support::{FaultProxy, TestDatabase, world::sql_at},
};

fn keyed(instance: &str, key: &str) -> CommitItem {
    let mut send = event(instance, "go");
    send.dedup_key = Some(key.to_owned());
    CommitItem::Send(send)
}

#[tokio::test]
async fn a_message_with_a_known_key_is_told_as_delivered_and_comes_once() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let batch = [keyed("order", "k"), keyed("order", "k"), keyed("order", "other"), keyed("early", "k")];
    assert_eq!(store.commit(&batch).await, [done(true), done(true), done(true), done(true)]);
    assert_eq!(store.inbox("order").await.len(), 2);
    assert_eq!(store.number("select count(*) from @inbox where instance = 'early'").await, 1);

    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
    store.commit_one(turn.item()).await;
    assert_eq!(store.commit_one(keyed("order", "k")).await, done(true), "also when it was consumed");
    assert!(store.inbox("order").await.is_empty());

    store.run("update @turn_queue set due_at = now()").await;
    let claimed = store.claim_one(&node).await;
    store.commit_one(turn_of(&claimed, &node).completed().item()).await;
    assert_eq!(store.commit_one(keyed("order", "k")).await, done(true), "also when its instance has ended");
    assert_eq!(store.commit_one(keyed("order", "new")).await, CommitOutcome::AlreadyEnded);
    let both = [keyed("order", "k"), keyed("order", "new")];
    let told = [done(true), CommitOutcome::AlreadyEnded];
    assert_eq!(store.commit(&both).await, told, "each message of a batch by its own key");
}

#[tokio::test]
async fn keys_are_forgotten_after_a_day() {
    let store = Store::new().await;
    store.commit(&[keyed("order", "old"), keyed("order", "new")]).await;
    store.run("update @message_key set sent_at = now() - interval '25 hours' where dedup_key = 'old'").await;
    assert_eq!(session::forget_message_keys(&store.session, &store.statements).await.expect("a sweep"), 1);
    assert_eq!(store.number("select count(*) from @message_key").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_whose_commit_lost_its_answer_is_delivered_once() {
    let database = TestDatabase::get();
    let (schema, proxy) = (database.schema(), FaultProxy::start(database.url()).await);
    let pool = PoolConfig { max_clients: MaxClients::Given(1), ..database.pool_config() };
    let provider = Provider::connect(proxy.url(), &schema, pool).await.expect("connect");
    let client = Client::new(Arc::clone(&provider));
    let body = || MessageBody::EventRaised { name: "go".to_owned(), data: payload("1") };
    // Its statements are prepared: nothing but the answers of the next commit is held back.
    assert_eq!(client.send("order".to_owned(), body()).await.expect("send"), Sent::Accepted);
    // The hint about it has left the only session.
    while provider.counters().hints_sent.get() == 0 {
        tokio::task::yield_now().await;
    }
    let count =
        || async { sql_at(database.url(), &schema, "select count(*) from @inbox").await[0].get::<_, i64>(0) };
    proxy.hold_replies_from_commit();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.send("order".to_owned(), body()).await }
    });
    while count().await < 2 {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    while provider.counters().commit_retries.get() == 0 {
        tokio::task::yield_now().await;
    }
    proxy.pass();
    assert_eq!(sending.await.expect("no panic").expect("no unknown outcome"), Sent::Accepted);
    assert_eq!(count().await, 2);
    provider.close(std::time::Duration::from_secs(5)).await;
}
