//! Runtimes that find others dead, or themselves: recovery at start, the outage guard, a new epoch.

use std::time::{Duration, Instant};

use holdfast_core::{config::EngineConfig, provider::Provider};
use serde_json::json;
use tokio::sync::watch;

use crate::support::{
    FaultProxy, TestDatabase,
    host::{Code, sequence},
    world::{PATIENCE, World, run, sql_at, steps},
};

/// Fast heartbeats, and leases that no test outlives: only liveness frees anything.
fn quick(interval_ms: u64, stale_ms: u64) -> EngineConfig {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(interval_ms);
    config.liveness.stale_after = Duration::from_millis(stale_ms);
    config.lease.worker_lock_timeout = Duration::from_secs(600);
    config.lease.orchestrator_lock_timeout = Duration::from_secs(600);
    config
}

/// Another node, silent for so many seconds.
async fn silent_node(url: &str, schema: &str, id: &str, seconds: u32) {
    let insert = format!(
        "insert into @node (id, epoch, started_at, heartbeat_at, heartbeat_interval, stale_after) \
         values ('{id}', nextval('@node_epoch_seq'), now(), clock_timestamp() - interval '{seconds} s', '500 ms', '3 s')"
    );
    sql_at(url, schema, &insert).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_up_pass_recovers_a_node_killed_31_s_ago() {
    let config = quick(1_000, 5_000);
    let world = World::new(Code::default().program("steps", sequence).silent("work"), config.clone()).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    // It is not the node that dies here but the row that lets it speak: the engine's goodbye finds nothing of its own.
    // At once: the living engine must not register again and free its work in between.
    let killed = "with renamed as (
        update @node set id = 'killed', heartbeat_at = clock_timestamp() - interval '31 s'
      )
      update @activity_queue set owner = 'killed' where owner is not null";
    world.sql(killed).await;
    // If it went on it could take the work that is freed, and stay silent again.
    world.engine.shutdown(Duration::ZERO).await;
    let young = "select count(*) from (select where pg_postmaster_start_time() > now() - interval '5 s') up";
    world.until(young, 0).await;
    let (engine, host) = run(&world.provider, steps(), config).await;
    assert_eq!(world.output("order").await, json!(0));
    assert_eq!(world.number("select count(*) from @node where id = 'killed'").await, 0);
    engine.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_declared_dead_frees_at_once_what_its_old_epoch_held() {
    let (tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    // Sweeps come once in a stale age: none within this test.
    let world = World::new(code, quick(200, 600_000)).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    let epoch = world.number("select epoch from @node").await;
    world.sql("delete from @node").await;
    world.until("select count(*) from @node", 1).await;
    assert!(world.number("select epoch from @node").await > epoch);
    world.until(&format!("select count(*) from @activity_queue where owner_epoch = {epoch}"), 0).await;
    assert_eq!(world.provider.counters().declared_dead.get(), 1);
    tell.send(true).expect("the body waits");
    assert_eq!(world.end("order").await.status, "Completed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_other_times_judge_each_other_by_the_times_of_whom_they_judge() {
    let (_tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let world = World::new(code, quick(2_000, 600_000)).await;
    world.start("order", "steps", json!(1)).await;
    world.until("select count(*) from @activity_queue where owner is not null", 1).await;
    let (hasty, host) = run(&world.provider, steps(), quick(250, 1_000)).await;
    // To the hasty one a peer of its own kind would be dead by now; it has looked since.
    let old = "select count(*) from @node where stale_after = '10 min' \
               and heartbeat_at < clock_timestamp() - interval '1500 ms'";
    world.until(old, 1).await;
    let beats = world.provider.counters().heartbeats.get() + 3;
    while world.provider.counters().heartbeats.get() < beats {
        tokio::task::yield_now().await;
    }
    let counters = world.provider.counters();
    assert_eq!((counters.nodes_recovered.get(), counters.declared_dead.get()), (0, 0));
    hasty.shutdown(Duration::ZERO).await;
    host.ended().await;
    silent_node(TestDatabase::get().url(), &world.schema, "crashed", 10).await;
    world.until("select count(*) from @node where id = 'crashed'", 0).await;
    assert_eq!(world.provider.counters().nodes_recovered.get(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_missed_heartbeats_nobody_is_recovered_for_the_stale_age() {
    let stale_after = Duration::from_millis(3_000);
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    let world = World::at(proxy.url(), steps(), quick(500, 3_000)).await;
    // Its past is long enough to recover somebody: the guard is what holds it back later.
    silent_node(database.url(), &world.schema, "before", 10).await;
    world.until("select count(*) from @node where id = 'before'", 0).await;
    tokio::time::sleep(stale_after + Duration::from_millis(500)).await;
    proxy.black_hole();
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    silent_node(database.url(), &world.schema, "after", 10).await;
    proxy.cut();
    let back = Instant::now();
    proxy.pass();
    world.until("select count(*) from @node where id = 'after'", 0).await;
    assert!(back.elapsed() >= stale_after, "recovered {:?} after the outage", back.elapsed());
    assert!(back.elapsed() < PATIENCE);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_far_away_is_heard_again_after_its_session_was_lost() {
    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let world = World::at(proxy.url(), steps(), quick(4_000, 60_000)).await;
    let counters = world.provider.counters();
    counted(|| counters.heartbeats.get()).await;
    // A first heartbeat on a session, of two replies, is in time; together with the opening it would not be.
    proxy.delay_replies(Duration::from_millis(1_200));
    let lost = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like '{}%-liveness'",
        world.application
    );
    world.sql(&lost).await;
    let before = counters.heartbeats.get();
    // One may have been on its way.
    counted(|| counters.heartbeats.get().saturating_sub(before + 1)).await;
    proxy.pass();
    world.stop().await;
}

/// Waits for the first of what is counted.
async fn counted(count: impl Fn() -> u64) {
    let first = async {
        while count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, first).await.expect("the first one comes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_none_of_eight_nodes_recovers_another_nor_does_a_new_one() {
    let database = TestDatabase::get();
    let proxy = FaultProxy::start(database.url()).await;
    // A busy machine may need several tries for a first heartbeat after the outage; a stale age has room for them.
    let world = World::at(proxy.url(), steps(), quick(2_000, 20_000)).await;
    let mut others = Vec::new();
    for _ in 0..7 {
        let provider =
            Provider::connect(proxy.url(), &world.schema, database.pool_config()).await.expect("connect");
        let (engine, host) = run(&provider, steps(), quick(2_000, 20_000)).await;
        others.push((provider, engine, host));
    }
    for i in 0..16 {
        world.start(&format!("i{i}"), "steps", json!(40)).await;
    }
    proxy.black_hole();
    for provider in others.iter().map(|(provider, ..)| provider).chain([&world.provider]) {
        counted(|| provider.counters().heartbeats_failed.get()).await;
    }
    // As if it had lasted, and had struck all at once also on a machine that is too busy for heartbeats in time.
    world.sql("update @node set heartbeat_at = clock_timestamp() - interval '21 s'").await;
    // It has no past, and finds eight peers that fell silent together.
    let provider =
        Provider::connect(database.url(), &world.schema, database.pool_config()).await.expect("connect");
    let (engine, host) = run(&provider, steps(), quick(2_000, 20_000)).await;
    counted(|| provider.counters().heartbeats.get()).await;
    others.push((provider, engine, host));
    proxy.cut();
    proxy.pass();
    for i in 0..16 {
        assert_eq!(world.output(&format!("i{i}")).await, json!(780));
    }
    let doubles = "select count(*) from (select 1 from @history where source is not null \
                   group by instance, execution, source having count(*) > 1) twice";
    assert_eq!(world.number(doubles).await, 0);
    let mut deaths =
        world.provider.counters().nodes_recovered.get() + world.provider.counters().declared_dead.get();
    for (provider, engine, host) in others {
        deaths += provider.counters().nodes_recovered.get() + provider.counters().declared_dead.get();
        engine.shutdown(Duration::ZERO).await;
        host.ended().await;
        provider.close(Duration::from_secs(1)).await;
    }
    assert_eq!(deaths, 0, "an outage is nobody's death");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_work_of_a_dead_node_does_not_wait_for_each_other_for_ever() {
    let (tell, told) = watch::channel(false);
    let code = Code::default().program("steps", sequence).waiting("work", told);
    let world = World::new(code, quick(500, 600_000)).await;
    let ids = ["a", "b"];
    for id in ids {
        world.start(id, "steps", json!(1)).await;
    }
    let running = "select count(*) from @activity_queue where owner is not null";
    world.until(running, 2).await;
    // Both come back from a dead node: neither may run beside the other until it has run for a while without harm.
    world.engine.shutdown(Duration::ZERO).await;
    world.sql("update @activity_queue set isolated = true, deliveries = 1").await;
    let (_tell_second, second) = (tell.clone(), tell.subscribe());
    let code = Code::default().program("steps", sequence).waiting("work", second);
    let (engine, host) = run(&world.provider, code, quick(500, 600_000)).await;
    world.until(running, 1).await;
    let began = Instant::now();
    world.until(running, 2).await;
    assert!(
        began.elapsed() >= Duration::from_secs(9),
        "the second came {:?} after the first",
        began.elapsed()
    );
    tell.send(true).expect("the bodies wait");
    for id in ids {
        assert_eq!(world.end(id).await.status, "Completed");
    }
    engine.shutdown(Duration::ZERO).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_are_swept_at_their_interval_between_heartbeats() {
    let mut config = quick(600_000, 3_600_000);
    config.session.cleanup_interval = Duration::from_millis(200);
    let world = World::new(steps(), config).await;
    // The first heartbeat sweeps too; this one comes after it.
    while world.provider.counters().heartbeats.get() == 0 {
        tokio::task::yield_now().await;
    }
    world
        .sql("insert into @session (session, owner, leased_until, used_at) values ('s', 'gone', now() - interval '1 s', now())")
        .await;
    world.until("select count(*) from @session", 0).await;
    assert_eq!(world.provider.counters().heartbeats.get(), 1);
    world.stop().await;
}
