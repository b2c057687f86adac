//! Faults inside: answers that cannot be read, rows that cannot be understood, leases that are lost.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    client::Client, config::EngineConfig, dispatch::Handlers, engine::Engine, pool::SessionPurpose,
    provider::Provider,
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{
    TestDatabase,
    host::{Code, Move, Seen},
    world::{PATIENCE, World, all, run, sql_at, start, steps},
};

fn waits(seen: &Seen) -> Move {
    match seen.events.first() {
        _ if seen.commands == 0 => Move::Ask(vec![json!({ "event": { "name": "go" } })]),
        Some((_, data)) => Move::End(json!({ "completed": { "output": data } })),
        None => Move::Wait,
    }
}

fn slow() -> Vec<Value> {
    vec![json!({ "activity": { "name": "slow", "input": null } })]
}

fn go() -> MessageBody {
    MessageBody::EventRaised { name: "go".to_owned(), data: Payload::of(&1) }
}

/// An engine without a host: the test is the host.
async fn bare(config: EngineConfig) -> (Arc<Provider>, Arc<Engine>, Client) {
    bare_in(&TestDatabase::get().schema(), config).await
}

async fn bare_in(schema: &str, config: EngineConfig) -> (Arc<Provider>, Arc<Engine>, Client) {
    let database = TestDatabase::get();
    let connected = Provider::connect(database.url(), schema, database.pool_config()).await;
    let provider = connected.expect("connect");
    let handlers = Handlers::parse(&steps().handlers()).expect("valid handlers");
    let engine = Engine::start(Arc::clone(&provider), config, handlers).await.expect("start");
    let client = Client::new(Arc::clone(&provider));
    (provider, engine, client)
}

async fn next(engine: &Arc<Engine>) -> Value {
    let text = tokio::time::timeout(PATIENCE, engine.next(64)).await.expect("a batch in time");
    serde_json::from_str(&text.expect("the engine runs")).expect("a batch is JSON")
}

/// Why a body is told to stop when `change` happens to its task.
async fn reason_after(change: &str) -> (Value, u64) {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    let schema = TestDatabase::get().schema();
    let (provider, engine, client) = bare_in(&schema, config).await;
    start(&client, "a", "steps", json!(0)).await;
    let h = next(&engine).await["turns"][0]["h"].clone();
    let work = json!({ "activity": { "step": 0, "name": "work", "input": null } });
    let reply = json!({ "h": h, "n": 0, "c": [work], "o": "waiting" });
    engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    let job = next(&engine).await["activities"][0]["h"].clone();
    let url = TestDatabase::get().url();
    let rows = "select count(*) from @activity_queue where owner is not null";
    while sql_at(url, &schema, rows).await[0].get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    sql_at(url, &schema, change).await;
    let abort = next(&engine).await["aborts"][0].clone();
    assert_eq!(abort["h"], job);
    let told = provider.counters().leases_lost.get();
    engine.shutdown(Duration::ZERO).await;
    provider.close(Duration::from_secs(1)).await;
    (abort["reason"].clone(), told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_hears_whether_its_task_was_taken_or_cancelled() {
    let taken = "update @activity_queue set fence = fence + 1000, owner = 'other'";
    assert_eq!(reason_after(taken).await, (json!("lost"), 1));
    let ended = "with gone as (delete from @activity_queue returning instance, execution, event) insert into @inbox (instance, kind, \
                 execution, source, data) select instance, 'ActivityCompleted', execution, event, 'null' from gone";
    assert_eq!(reason_after(ended).await, (json!("lost"), 1));
    assert_eq!(reason_after("delete from @activity_queue").await, (json!("cancelled"), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_answers_that_cannot_be_read_loses_no_turn() {
    let mut config = EngineConfig::default();
    config.lease.orchestrator_lock_timeout = Duration::from_millis(200);
    let (provider, engine, client) = bare(config).await;
    start(&client, "a", "steps", json!(0)).await;
    let first = next(&engine).await;
    engine.complete("{\"turns\":[", 0);
    let again = next(&engine).await;
    assert_ne!(first["turns"][0]["h"], again["turns"][0]["h"], "a frame of its own");
    let outcome = json!({ "completed": { "output": 1 } });
    let reply = json!({ "h": again["turns"][0]["h"], "n": 0, "c": [], "o": outcome });
    engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    let ended = client.wait("a", PATIENCE).await.expect("wait").expect("ends");
    assert_eq!(ended.status, "Completed");
    engine.shutdown(Duration::from_secs(1)).await;
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_turn_is_replayed_and_its_delivery_counts() {
    let mut config = EngineConfig::default();
    config.lease.orchestrator_lock_timeout = Duration::from_millis(200);
    let (provider, engine, client) = bare(config).await;
    start(&client, "a", "steps", json!(0)).await;
    let first = next(&engine).await["turns"][0]["h"].clone();
    engine.complete(&json!({ "turns": [{ "h": first, "abandon": true }] }).to_string(), 0);
    let again = next(&engine).await["turns"][0]["h"].clone();
    assert_ne!(first, again, "a frame of its own");
    let reply = json!({ "h": again, "n": 0, "c": [], "o": { "completed": { "output": 1 } } });
    engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    let ended = client.wait("a", PATIENCE).await.expect("wait").expect("ends");
    assert_eq!((ended.status.as_str(), provider.counters().unknown_answers.get()), ("Completed", 0));
    engine.shutdown(Duration::from_secs(1)).await;
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_code_has_no_function_for_is_put_back_without_its_delivery() {
    let mut config = EngineConfig::default();
    config.lease.max_attempts = 1;
    config.dispatch.unregistered_backoff_base = Duration::from_millis(20);
    let (provider, engine, client) = bare(config).await;
    start(&client, "a", "steps", json!(0)).await;
    let unregistered = |batch: &Value, kind: &str| {
        let answer = json!({ "h": batch[kind][0]["h"], "unregistered": true });
        engine.complete(&json!({ kind: [answer] }).to_string(), 0);
    };
    for _ in 0..2 {
        unregistered(&next(&engine).await, "turns");
    }
    let work = json!({ "activity": { "step": 0, "name": "work", "input": null } });
    let h = next(&engine).await["turns"][0]["h"].clone();
    let reply = json!({ "h": h, "n": 0, "c": [work], "o": "waiting" });
    engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    for _ in 0..2 {
        unregistered(&next(&engine).await, "activities");
    }
    let job = next(&engine).await["activities"][0].clone();
    assert_eq!((job["delivery"].clone(), provider.counters().unregistered.get()), (json!(1), 4));
    assert_eq!(provider.counters().poisoned.get(), 0);
    engine.shutdown(Duration::ZERO).await;
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_a_turn_that_waits_for_its_answer() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    config.lease.orchestrator_lock_timeout = Duration::from_secs(600);
    let (provider, engine, client) = bare(config).await;
    start(&client, "a", "steps", json!(0)).await;
    let first = next(&engine).await["turns"][0]["h"].clone();
    client
        .send("a".to_owned(), MessageBody::CancelRequested { reason: "enough".to_owned() })
        .await
        .expect("sent");
    let batch = next(&engine).await;
    assert_eq!(batch["evict"], json!([first]), "its steps are told to stop");
    let again = if batch["turns"] == json!([]) { next(&engine).await } else { batch };
    let turn = &again["turns"][0];
    assert_eq!(turn["f"][0]["t"], json!("cancel"));
    // The turn that has read the request may clean up for long.
    let beats = provider.counters().heartbeats.get();
    until(|| provider.counters().heartbeats.get() > beats + 4).await;
    let error = json!({ "name": "CancelledError", "message": "canceled: enough", "code": "CANCELLED" });
    let reply = json!({ "h": turn["h"], "n": 1, "c": [], "o": { "failed": { "error": error } } });
    engine.complete(&json!({ "turns": [reply] }).to_string(), 0);
    let ended = client.wait("a", PATIENCE).await.expect("wait").expect("ends");
    assert_eq!(ended.status, "Cancelled");
    engine.shutdown(Duration::ZERO).await;
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_the_rules_ends_its_own_instance_and_no_other() {
    let (provider, engine, client) = bare(EngineConfig::default()).await;
    start(&client, "bad", "steps", json!(0)).await;
    let bad = next(&engine).await["turns"][0]["h"].clone();
    start(&client, "good", "steps", json!(0)).await;
    let good = next(&engine).await["turns"][0]["h"].clone();
    let outcome = json!({ "completed": { "output": 1 } });
    let bad = json!({ "h": bad, "n": 0, "c": [{ "fly": { "step": 0 } }], "o": "waiting" });
    let good = json!({ "h": good, "n": 0, "c": [], "o": outcome });
    engine.complete(&json!({ "turns": [bad, good] }).to_string(), 0);
    let ended = client.wait("good", PATIENCE).await.expect("wait").expect("ends");
    assert_eq!(ended.status, "Completed");
    let ended = client.wait("bad", PATIENCE).await.expect("wait").expect("ends");
    assert_eq!(ended.status, "Failed");
    assert!(ended.error.expect("an error").contains("fly"));
    engine.shutdown(Duration::from_secs(1)).await;
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_that_waits_for_a_batch_hears_of_the_end() {
    let (provider, engine, _) = bare(EngineConfig::default()).await;
    let waiting = async { tokio::join!(engine.next(1), engine.next(1), engine.next(1)) };
    let stop = engine.shutdown(Duration::from_secs(1));
    let (batches, ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(waiting, stop) }).await.expect("all end");
    assert_eq!(batches, (None, None, None));
    provider.close(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_row_that_cannot_be_read_stops_its_own_instance_only() {
    let mut config = EngineConfig::default();
    config.cache.sticky_cache_size = 0;
    let world = World::new(steps().program("waits", waits), config).await;
    for id in ["corrupt", "healthy"] {
        world.start(id, "waits", Value::Null).await;
    }
    world.until("select count(*) from @history where kind = 'EventWaiting' or event_id = 2", 2).await;
    world.sql("update @history_turn set kinds = kinds || chr(64) || '-1' where instance = 'corrupt'").await;
    for id in ["corrupt", "healthy"] {
        world.client.send(id.to_owned(), go()).await.expect("send");
    }
    assert_eq!(world.output("healthy").await, json!(1));
    let ended = world.end("corrupt").await;
    assert_eq!((ended.status.as_str(), ended.parked_at_ms.is_some()), ("Failed", true));
    assert!(ended.error.expect("an error").contains("CORRUPT"));
    assert_eq!(world.provider.counters().claims_failed.get(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspect_is_served_while_a_backlog_lasts() {
    let database = TestDatabase::get();
    let schema = database.schema();
    let connected = Provider::connect(database.url(), &schema, database.pool_config()).await;
    let provider = connected.expect("connect");
    let client = Client::new(Arc::clone(&provider));
    // A backlog that never ends: every execution is followed by the next.
    let endless = |_: &Seen| Move::End(json!({ "continued": { "input": null } }));
    for i in 0..8 {
        start(&client, &format!("endless-{i}"), "endless", Value::Null).await;
    }
    start(&client, "suspect", "steps", json!(0)).await;
    let mut config = EngineConfig::default();
    config.dispatch.orchestration_concurrency = 2;
    let code: Code = steps().program("endless", endless);
    sql_at(database.url(), &schema, "update @turn_queue set isolated = true where instance = 'suspect'")
        .await;
    let (engine, host) = run(&provider, code, config).await;
    let world = World { provider, engine, host, client, schema, application: String::new() };
    assert_eq!(world.output("suspect").await, json!(0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspect_whose_claim_takes_long_holds_up_no_other_and_takes_no_slot() {
    let database = TestDatabase::get();
    let schema = database.schema();
    let connected = Provider::connect(database.url(), &schema, database.pool_config()).await;
    let provider = connected.expect("connect");
    let client = Client::new(Arc::clone(&provider));
    start(&client, "suspect", "steps", json!(0)).await;
    start(&client, "healthy", "steps", json!(0)).await;
    for sql in [
        "update @turn_queue set isolated = true where instance = 'suspect'",
        "create table @gate ()",
        "create function @wait() returns trigger language plpgsql as $$ begin
           while not exists (select from @gate) loop perform pg_sleep(0.01); end loop;
           return new;
         end $$",
        "create trigger slow_claim before update on @turn_queue for each row
           when (new.instance = 'suspect' and new.owner is not null) execute function @wait()",
    ] {
        sql_at(database.url(), &schema, sql).await;
    }
    let mut config = EngineConfig::default();
    config.dispatch.orchestration_concurrency = 1;
    let (engine, host) = run(&provider, steps(), config).await;
    let world = World { provider, engine, host, client, schema, application: String::new() };
    assert_eq!(world.output("healthy").await, json!(0));
    world.sql("insert into @gate default values").await;
    assert_eq!(world.output("suspect").await, json!(0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_ignores_a_lost_lease_does_not_lose_its_task() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(200);
    config.liveness.stale_after = Duration::from_millis(1_000);
    config.lease.worker_lock_timeout = Duration::from_millis(400);
    config.activity.cancellation_grace_period = Duration::from_millis(1_500);
    let (release, body) = watch::channel(false);
    let code = steps().program("slow", all(slow())).waiting("slow", body);
    let world = World::new(code, config).await;
    world.start("s", "slow", Value::Null).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    // Declared dead, and its lease taken from it.
    world.sql("delete from @node").await;
    world.until("select count(*) from @activity_queue where deliveries >= 2 and owner is not null", 1).await;
    // The grace of the lost lease ends while the body goes on under the new one.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    release.send(true).expect("somebody waits");
    assert_eq!(world.output("s").await, json!(["done"]));
    world.stop().await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_whose_instance_is_locked_stops_no_other_result() {
    let (release, body) = watch::channel(false);
    let code = steps().program("slow", all(slow())).waiting("slow", body);
    let world = World::new(code, EngineConfig::default()).await;
    world.start("locked", "slow", Value::Null).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    let blocker = world.provider.pool().open_session(SessionPurpose::Migration).await.expect("a session");
    let schema = &world.schema;
    let lock = format!("begin; select from \"{schema}\".turn_queue where instance = 'locked' for update");
    blocker.batch(&lock).await.expect("lock");
    release.send(true).expect("somebody waits");
    let outputs = async {
        for i in 0..20 {
            world.start(&format!("free-{i}"), "steps", json!(3)).await;
        }
        for i in 0..20 {
            assert_eq!(world.output(&format!("free-{i}")).await, json!(3));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), outputs).await.expect("the others end meanwhile");
    blocker.batch("commit").await.expect("unlock");
    assert_eq!(world.output("locked").await, json!(["done"]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_somebody_else_has_locked_stops_no_other_instance() {
    let world = World::new(steps().program("waits", waits), EngineConfig::default()).await;
    world.start("locked", "waits", Value::Null).await;
    world.until("select count(*) from @history where instance = 'locked'", 2).await;
    let blocker = world.provider.pool().open_session(SessionPurpose::Migration).await.expect("a session");
    let schema = &world.schema;
    let lock = format!("begin; select from \"{schema}\".turn_queue where instance = 'locked' for update");
    blocker.batch(&lock).await.expect("lock");
    let client = world.client.clone();
    let sent = tokio::spawn(async move { client.send("locked".to_owned(), go()).await });
    let outputs = async {
        for i in 0..20 {
            world.start(&format!("free-{i}"), "steps", json!(3)).await;
        }
        for i in 0..20 {
            assert_eq!(world.output(&format!("free-{i}")).await, json!(3));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), outputs).await.expect("the others end meanwhile");
    blocker.batch("commit").await.expect("unlock");
    let _ = sent.await.expect("no panic");
    world.client.send("locked".to_owned(), go()).await.expect("send");
    assert_eq!(world.output("locked").await, json!(1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_result_is_being_committed_is_told_as_lost_by_the_commit_alone() {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(100);
    let (release, body) = watch::channel(false);
    let code = steps().program("slow", all(slow())).waiting("slow", body);
    let world = World::new(code, config).await;
    world.start("locked", "slow", Value::Null).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    let blocker = world.provider.pool().open_session(SessionPurpose::Migration).await.expect("a session");
    let schema = &world.schema;
    let lock = format!("begin; select from \"{schema}\".turn_queue where instance = 'locked' for update");
    blocker.batch(&lock).await.expect("lock");
    release.send(true).expect("somebody waits");
    let counters = world.provider.counters();
    until(|| counters.commit_retries.get() > 0).await;
    // The row goes as it would with a commit whose answer is on its way: heartbeats find the lease gone.
    world.sql("delete from @activity_queue where instance = 'locked'").await;
    let beats = counters.heartbeats.get();
    until(|| counters.heartbeats.get() >= beats + 3).await;
    assert_eq!(counters.leases_lost.get(), 0);
    blocker.batch("commit").await.expect("unlock");
    until(|| counters.leases_lost.get() == 1).await;
    world.stop().await;
}

async fn until(mut holds: impl FnMut() -> bool) {
    let held = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("in time");
}
