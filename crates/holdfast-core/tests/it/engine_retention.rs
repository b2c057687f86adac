//! What a runtime does beside its work: throws away what was kept long enough, looks at the depths of the queues, and
//! says when its claims are slow.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    client::Sent,
    config::EngineConfig,
    store::sweep::{Chore, claim},
    telemetry::Event,
};
use holdfast_replay::{MessageBody, Payload};
use serde_json::{Value, json};

use crate::{
    store_harness::Store,
    support::world::{PATIENCE, World, run, steps},
};

/// From one round of chores to the next.
const ROUND: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);

async fn counted(enough: impl Fn() -> bool) {
    let counted = async {
        while !enough() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("it is counted");
}

impl World {
    async fn tell(&self, instance: &str) {
        let data = Payload::from_text("1".to_owned()).expect("JSON");
        let body = MessageBody::EventRaised { name: "go".to_owned(), data };
        assert_eq!(self.client.send(instance.to_owned(), body).await.expect("send"), Sent::Accepted);
    }

    /// The chore is due at once, whoever did it last.
    async fn due(&self) {
        self.sql("update @chore set due_at = '-infinity'").await;
    }

    fn heard(&self, name: &str) -> Vec<Event> {
        self.provider.events().take().into_iter().filter(|event| event.name == name).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_ended_long_ago_go_with_all_they_have() {
    let world = World::new(steps(), EngineConfig::default()).await;
    world.provider.events().listen(Arc::new(|| {}));
    for (id, input) in [("old", json!(2)), ("young", json!(2))] {
        world.start(id, "steps", input).await;
        world.output(id).await;
    }
    // A root that ended long ago with a child that still runs stays.
    world.start("parent", "steps", json!(0)).await;
    world.output("parent").await;
    world
        .sql(
            "insert into @instance (instance, name, status, input, parent_instance, parent_execution, parent_event)
             values ('child', 'steps', 'Running', '1', 'parent', 1, 2)",
        )
        .await;
    world
        .sql("update @instance set created_at = created_at - interval '3 h', finished_at = finished_at - interval '2 h' where instance in ('old', 'parent')")
        .await;
    assert_eq!(world.provider.counters().expired.get(), 0, "off by default");

    let mut config = EngineConfig::default();
    config.retention.retention = Some(HOUR);
    config.liveness.worker_node_id = Some("sweeps".to_owned());
    world.due().await;
    let (engine, host) = run(&world.provider, steps(), config).await;
    world.until("select count(*) from @instance where instance = 'old'", 0).await;
    world.until("select count(*) from @history where instance = 'old'", 0).await;
    assert_eq!(
        world.number("select count(*) from @instance where instance in ('young', 'parent', 'child')").await,
        3
    );
    counted(|| world.provider.counters().expired.get() >= 1).await;
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    assert_eq!(world.provider.counters().expired.get(), 1);
    let told = world.heard("instances-expired");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].fields["instances"], 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_for_instances_that_were_never_started_are_dropped_and_told() {
    let world = World::new(steps(), EngineConfig::default()).await;
    for id in ["gone", "gone", "half", "young"] {
        world.tell(id).await;
    }
    world
        .sql("update @turn_queue set created_at = created_at - interval '25 h' where instance in ('gone', 'half')")
        .await;
    world.sql("update @inbox set due_at = due_at - interval '25 h' where instance in ('gone', 'half')").await;
    world.tell("half").await;
    world.provider.events().listen(Arc::new(|| {}));
    world.due().await;
    let mut config = EngineConfig::default();
    config.liveness.worker_node_id = Some("sweeps".to_owned());
    let (engine, host) = run(&world.provider, steps(), config).await;
    let counters = world.provider.counters();
    counted(|| counters.unknown_dropped.get() >= 3).await;
    assert_eq!(world.number("select count(*) from @turn_queue where instance = 'gone'").await, 0);
    assert_eq!(world.number("select count(*) from @inbox where instance = 'gone'").await, 0);
    assert_eq!(world.number("select count(*) from @inbox where instance = 'half'").await, 1, "the young one");
    assert_eq!(world.number("select count(*) from @turn_queue where instance in ('half', 'young')").await, 2);
    let told = world.heard("messages-dropped");
    assert_eq!(
        (&told[0].fields["messages"], &told[0].fields["instances"]),
        (&json!(3), &json!(2)),
        "{told:?}"
    );
    // The id is free.
    assert!(world.start("gone", "steps", Value::from(0)).await.created);
    world.output("gone").await;
    engine.shutdown(Duration::from_secs(5)).await;
    host.ended().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_at_a_time_has_a_chore() {
    let store = Store::new().await;
    let other = store.another().await;
    let (first, second) = tokio::join!(
        claim(&store.session, &store.statements, &[Chore::Ended], ROUND),
        claim(&other.session, &other.statements, &[Chore::Ended], ROUND),
    );
    let taken = [first.expect("claim"), second.expect("claim")];
    assert_eq!(taken.iter().flat_map(|taken| &taken.chores).count(), 1, "{taken:?}");
    let both = [Chore::Ended, Chore::Unknown];
    let rest = claim(&store.session, &store.statements, &both, ROUND).await.expect("claim");
    assert_eq!(rest.chores, [Chore::Unknown], "another chore is another's");
    assert_eq!(rest.before(Chore::Unknown, Duration::from_millis(1)), Some(rest.now_ms - 1));
    assert_eq!(rest.before(Chore::Ended, Duration::ZERO), None);
    let refused = claim(&store.session, &store.statements, &both, ROUND).await.expect("claim");
    assert!(refused.chores.is_empty() && !refused.some, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chore_with_nothing_to_do_is_had_and_not_done() {
    let store = Store::new().await;
    let chores = [Chore::Jobs, Chore::Unserved];
    let had = async || {
        store.run("update @chore set due_at = '-infinity'").await;
        let taken = claim(&store.session, &store.statements, &chores, ROUND).await.expect("claim");
        assert!(taken.some);
        taken.chores
    };
    assert_eq!(had().await, []);
    let ended = |keep: &str| {
        format!(
            "insert into @ended_activity (id, name, input, status, fence, attempt, deliveries, retention_ms, scheduled_at, keep_until)
             values ('{keep}', 'mail', '1', 'Completed', 1, 1, 1, 0, now(), '{keep}')"
        )
    };
    store.run(&ended("infinity")).await;
    assert_eq!(had().await, [], "it is kept for ever");
    store.run(&ended("-infinity")).await;
    assert_eq!(had().await, [Chore::Jobs]);
    store.run("delete from @ended_activity").await;
    for (tag, session) in [("null", "null"), ("'gpu'", "null"), ("null", "'s'")] {
        let due = |ago: &str| {
            format!(
                "insert into @activity_queue (instance, execution, event, name, input, due_at, tag, session)
                 values ('{ago}', 1, 2, 'mail', '1', now() - interval '{ago}', {tag}, {session})"
            )
        };
        store.run(&due("5 s")).await;
        assert_eq!(had().await, [], "it is not late: {tag}, {session}");
        store.run(&due("11 s")).await;
        assert_eq!(had().await, [Chore::Unserved], "{tag}, {session}");
        store.run("delete from @activity_queue").await;
    }
    store.run("insert into @turn_queue (instance, name, due_at) values ('late', 'flow', now() - interval '11 s')").await;
    assert_eq!(had().await, [Chore::Unserved]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_depths_of_the_queues_are_seen_at_their_interval() {
    let mut config = EngineConfig::default();
    config.telemetry.gauge_poll_interval = Duration::from_millis(20);
    let world = World::new(steps(), config).await;
    let depth = |name: &str| {
        let all: Value = serde_json::from_str(&world.engine.metrics_json()).expect("JSON");
        all[name].clone()
    };
    counted(|| depth("orchQueueDepth") == json!(0)).await;
    // Nobody here runs it.
    world
        .sql(
            "insert into @activity_queue (instance, execution, event, name, input)
             select 'w' || n, 1, 2, 'elsewhere', '1' from generate_series(1, 3) n",
        )
        .await;
    counted(|| depth("workerQueueDepth") == json!(3)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_that_near_a_lease_are_told() {
    let mut config = EngineConfig::default();
    config.lease.orchestrator_lock_timeout = Duration::from_millis(1);
    let world = World::new(steps(), config).await;
    world.provider.events().listen(Arc::new(|| {}));
    for number in 0..40 {
        world.start_queued(&format!("s{number}"), "steps", json!(1)).await;
        world.output(&format!("s{number}")).await;
    }
    let told = world.heard("claims-slow");
    assert_eq!(told.len(), 1, "once a minute: {told:?}");
    assert_eq!(told[0].fields["option"], "orchestratorLockTimeoutMs");
    world.stop().await;
}
