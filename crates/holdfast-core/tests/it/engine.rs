//! The engine as a whole, with a stand-in for JavaScript: every wiring once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use holdfast_core::{
    client::{Client, Sent, StartOutcome},
    config::EngineConfig,
    error::ErrorKind,
    pool::SessionPurpose,
    provider::{MigrateMode, Provider, ProviderConfig},
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};

use crate::support::{
    TestDatabase,
    host::{Code, Move, Seen, sequence},
    world::{World, all, hangs, run, start, steps},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_of_steps_runs_to_its_end_and_is_recorded_once() {
    let world = World::new(steps(), EngineConfig::default()).await;
    assert!(world.start("s", "steps", json!(3)).await.created);
    assert_eq!(world.output("s").await, json!(3));
    assert_eq!(
        world.kinds("s", 1).await,
        [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityCompleted",
            "ActivityScheduled",
            "ActivityCompleted",
            "ActivityScheduled",
            "ActivityCompleted",
            "OrchestrationCompleted"
        ]
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_turn_reads_no_history() {
    let world = World::new(steps(), EngineConfig::default()).await;
    world.start("warm", "steps", json!(20)).await;
    assert_eq!(world.output("warm").await, json!(190));
    let counters = world.provider.counters();
    assert_eq!(counters.history_rows_read.get(), 0);
    assert_eq!(counters.cold_turns.get(), 1);
    assert_eq!(counters.warm_turns.get(), 20);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_cache_every_turn_replays_to_the_same_end() {
    let mut config = EngineConfig::default();
    config.cache.sticky_cache_size = 0;
    let world = World::new(steps(), config).await;
    world.start("cold", "steps", json!(10)).await;
    assert_eq!(world.output("cold").await, json!(45));
    assert_eq!(world.provider.counters().warm_turns.get(), 0);
    assert!(world.host.activations.lock().expect("no panic").iter().all(|cold| *cold));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_commands_and_timers_join() {
    let commands = vec![
        json!({ "activity": { "name": "work", "input": 7 } }),
        json!({ "timer": { "delayMs": 150 } }),
        json!({ "activity": { "name": "work", "input": 8 } }),
    ];
    let world = World::new(steps().program("all", all(commands)), EngineConfig::default()).await;
    world.start("a", "all", Value::Null).await;
    assert_eq!(world.output("a").await, json!([7, null, 8]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_closes_ends_the_waits_of_its_clients() {
    let world = World::new(steps(), EngineConfig::default()).await;
    let client = world.client.clone();
    let waiting = tokio::spawn(async move { client.wait("nobody", Duration::MAX).await });
    while world.provider.wakes().instances().watched().is_empty() {
        tokio::task::yield_now().await;
    }
    let client = world.client.clone();
    world.stop().await;
    let error = waiting.await.expect("no panic").expect_err("the wait ends");
    assert_eq!(error.kind(), ErrorKind::Closed);
    let error = client.wait("nobody", Duration::MAX).await.expect_err("a later wait does not begin");
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_claimed_anew_before_its_commit_was_told_still_runs() {
    // Results arrive all the time, so the row is due again the moment a commit frees it.
    let commands = (0..100).map(|n| json!({ "activity": { "name": "work", "input": n } })).collect();
    let world = World::new(steps().program("wide", all(commands)), EngineConfig::default()).await;
    let ids: Vec<String> = (0..20).map(|n| format!("wide-{n}")).collect();
    for id in &ids {
        world.start(id, "wide", Value::Null).await;
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!((0..100).collect::<Vec<_>>()));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reaches_its_wait_also_when_raised_before_the_start() {
    let waits = |seen: &Seen| match seen.events.first() {
        _ if seen.commands == 0 => Move::Ask(vec![json!({ "event": { "name": "go" } })]),
        Some((_, data)) => Move::End(json!({ "completed": { "output": data } })),
        None => Move::Wait,
    };
    let world = World::new(steps().program("waits", waits), EngineConfig::default()).await;
    let event = |data: i32| MessageBody::EventRaised { name: "go".to_owned(), data: Payload::of(&data) };
    world.start("late", "waits", Value::Null).await;
    assert_eq!(world.client.send("late".to_owned(), event(1)).await.expect("send"), Sent::Accepted);
    assert_eq!(world.output("late").await, json!(1));
    assert_eq!(world.client.send("late".to_owned(), event(2)).await.expect("send"), Sent::AlreadyEnded);
    assert_eq!(world.client.send("early".to_owned(), event(3)).await.expect("send"), Sent::Accepted);
    world.start("early", "waits", Value::Null).await;
    assert_eq!(world.output("early").await, json!(3));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_tells_its_parent_how_it_ended() {
    let commands = vec![
        json!({ "child": { "name": "steps", "input": 4 } }),
        json!({ "child": { "name": "steps", "instance": "taken", "input": 1 } }),
    ];
    let world = World::new(steps().program("parent", all(commands)), EngineConfig::default()).await;
    world.start("taken", "steps", json!(0)).await;
    world.end("taken").await;
    world.start("p", "parent", Value::Null).await;
    let results = world.output("p").await;
    assert_eq!(results[0], json!(6));
    assert_eq!(results[1]["error"]["code"], json!("INSTANCE_EXISTS"), "{results}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continue_as_new_goes_on_with_a_new_history() {
    let loops = |seen: &Seen| match seen.input.as_i64() {
        Some(left) if left > 0 => Move::End(json!({ "continued": { "input": left - 1 } })),
        _ => Move::End(json!({ "completed": { "output": seen.execution } })),
    };
    let world = World::new(steps().program("loops", loops), EngineConfig::default()).await;
    world.start("l", "loops", json!(3)).await;
    assert_eq!(world.output("l").await, json!(4));
    assert_eq!(world.kinds("l", 1).await, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    assert_eq!(world.kinds("l", 4).await, ["OrchestrationStarted", "OrchestrationCompleted"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_activity_is_tried_again_by_its_policy_without_a_turn() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let code = steps().body("shaky", move |job| {
        let attempt = counted.fetch_add(1, Ordering::Relaxed) + 1;
        assert_eq!(job["attempt"], json!(attempt));
        if attempt < 3 { Err(json!({ "name": "Error", "message": "not yet" })) } else { Ok(json!("at last")) }
    });
    let retry = json!({ "maxAttempts": 3, "backoff": "fixed", "baseDelayMs": 10, "jitterPercent": 0 });
    let commands = vec![json!({ "activity": { "name": "shaky", "input": null, "retry": retry } })];
    let world = World::new(code.program("tries", all(commands)), EngineConfig::default()).await;
    world.start("t", "tries", Value::Null).await;
    assert_eq!(world.output("t").await, json!(["at last"]));
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    assert_eq!(world.provider.counters().turns_settled.get(), 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_its_time_limit_fails_with_a_timeout() {
    let mut config = EngineConfig::default();
    config.activity.cancellation_grace_period = Duration::from_millis(20);
    let commands = vec![json!({ "activity": { "name": "hangs", "input": null, "timeoutMs": 50 } })];
    let world = World::new(steps().silent("hangs").program("limits", all(commands)), config).await;
    world.start("x", "limits", Value::Null).await;
    let results = world.output("x").await;
    assert_eq!(results[0]["error"]["code"], json!("TIMEOUT"), "{results}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_instance_ends_cancelled() {
    let code = steps().silent("hangs").program("cancelled", all(hangs()));
    let world = World::new(code, EngineConfig::default()).await;
    world.start("c", "cancelled", Value::Null).await;
    let cancel = MessageBody::CancelRequested { reason: "enough".to_owned() };
    assert_eq!(world.client.send("c".to_owned(), cancel).await.expect("send"), Sent::Accepted);
    let row = world.end("c").await;
    assert_eq!(row.status, "Cancelled");
    assert!(row.error.expect("an error").contains("enough"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_1_ms_lease_and_a_6_s_claim_settle() {
    let database = TestDatabase::get();
    let schema = database.schema();
    let connected = Provider::connect(database.url(), &schema, database.pool_config()).await;
    let provider = connected.expect("connect");
    let client = Client::new(Arc::clone(&provider));
    start(&client, "slow", "steps", json!(3)).await;
    let blocker = provider.pool().open_session(SessionPurpose::Migration).await.expect("a session");
    let lock = format!("begin; lock table \"{schema}\".turn_queue in exclusive mode");
    blocker.batch(&lock).await.expect("lock");
    let mut config = EngineConfig::default();
    config.lease.orchestrator_lock_timeout = Duration::from_millis(1);
    config.lease.worker_lock_timeout = Duration::from_millis(1);
    let (engine, host) = run(&provider, steps(), config).await;
    tokio::time::sleep(Duration::from_millis(6_400)).await;
    assert_eq!(provider.counters().turns_claimed.get(), 0, "the claim waits for the table");
    blocker.batch("commit").await.expect("unlock");
    let world = World { provider, engine, host, client, schema, application: String::new() };
    assert_eq!(world.output("slow").await, json!(3));
    let counters = world.provider.counters();
    assert_eq!(counters.claims_failed.get(), 0, "a slow claim is not a lost one");
    assert_eq!(counters.poisoned.get(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runtimes_share_the_work_and_nothing_runs_twice() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let code = Code::default().program("steps", sequence).body("work", move |job| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(job["input"].clone())
    });
    let world = World::new(code.clone(), EngineConfig::default()).await;
    let database = TestDatabase::get();
    let connected = Provider::connect(database.url(), &world.schema, database.pool_config()).await;
    let other = connected.expect("connect");
    let mut config = EngineConfig::default();
    config.liveness.worker_node_id = Some("other".to_owned());
    let (engine, host) = run(&other, code, config).await;
    for i in 0..40 {
        world.start(&format!("i{i}"), "steps", json!(3)).await;
    }
    for i in 0..40 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(3));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 120);
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    other.close(Duration::from_secs(5)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_runtime_hands_back_what_it_did_not_finish() {
    let code = steps().silent("hangs").program("waits", all(hangs()));
    let world = World::new(code, EngineConfig::default()).await;
    world.start("h", "waits", Value::Null).await;
    while world.provider.counters().activities_claimed.get() == 0 {
        tokio::task::yield_now().await;
    }
    let World { provider, engine, host, client, schema, application } = world;
    engine.shutdown(Duration::from_millis(50)).await;
    host.ended().await;
    let code = steps().body("hangs", |_| Ok(json!("done"))).program("waits", all(hangs()));
    let (engine, host) = run(&provider, code, EngineConfig::default()).await;
    let world = World { provider, engine, host, client, schema, application };
    assert_eq!(world.output("h").await, json!(["done"]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_of_an_id_tells_whether_it_is_the_same() {
    let world = World::new(steps(), EngineConfig::default()).await;
    assert_eq!(world.start("d", "steps", json!(1)).await, StartOutcome { created: true, same: true });
    assert_eq!(world.start("d", "steps", json!(1)).await, StartOutcome { created: false, same: true });
    assert_eq!(world.start("d", "steps", json!(2)).await, StartOutcome { created: false, same: false });
    assert_eq!(world.output("d").await, json!(0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_refuses_a_schema_that_is_not_there_and_changes_nothing() {
    let database = TestDatabase::get();
    let schema = database.schema();
    let verify = || ProviderConfig { pool: database.pool_config(), migrate: MigrateMode::Verify };
    for _ in 0..2 {
        let refused = Provider::connect(database.url(), &schema, verify()).await;
        let error = refused.err().expect("an empty schema is refused");
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(error.to_string().contains("migrate 'apply'"), "{error}");
    }
    let applied = Provider::connect(database.url(), &schema, database.pool_config()).await.expect("apply");
    applied.close(Duration::from_secs(1)).await;
    let verified = Provider::connect(database.url(), &schema, verify()).await.expect("verify");
    verified.close(Duration::from_secs(1)).await;
}
