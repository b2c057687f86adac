//! Whom hints wake: as many claimers as there is work, nobody when nobody else listens; and who sends them.

use std::{sync::Arc, time::Duration};

use holdfast_core::{client::Client, config::EngineConfig, engine::Engine, provider::Provider};
use serde_json::json;

use crate::{
    hub::{listens, other, patient, until},
    support::{
        host::{Code, Host, sequence},
        world::{PATIENCE, World, all, hangs, run, start, steps},
    },
};

/// A runtime in a process of its own.
struct Node {
    provider: Arc<Provider>,
    engine: Arc<Engine>,
    host: Host,
}

impl Node {
    async fn on(world: &World, code: Code) -> Self {
        Self::with(world, code, patient()).await
    }

    async fn with(world: &World, code: Code, config: EngineConfig) -> Self {
        let provider = other(world).await;
        let (engine, host) = run(&provider, code, config).await;
        Self { provider, engine, host }
    }

    async fn stop(self) {
        self.engine.shutdown(Duration::from_secs(5)).await;
        self.host.ended().await;
        self.provider.close(Duration::from_secs(5)).await;
    }
}

/// Every process knows that all the others listen.
async fn know_each_other(providers: &[&Arc<Provider>]) {
    let others = Some(providers.len() as u64 - 1);
    for provider in providers {
        until("it knows the others", async || provider.hints().others() == others).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_one_hint_wakes_as_many_claimers_as_there_is_work() {
    const HINTS: u64 = 24;
    let world = World::new(steps(), patient()).await;
    let mut nodes = Vec::new();
    for _ in 1..8 {
        nodes.push(Node::on(&world, steps()).await);
    }
    let mut providers = vec![&world.provider];
    providers.extend(nodes.iter().map(|node| &node.provider));
    know_each_other(&providers).await;
    let client = Client::new(other(&world).await);
    let sum = |count: fn(&Provider) -> u64| providers.iter().map(|provider| count(provider)).sum::<u64>();
    let (claims, looks) = (sum(|one| one.counters().claims.get()), sum(|one| one.counters().looks.get()));
    for at in 0..HINTS {
        let id = format!("order-{at}");
        start(&client, &id, "steps", json!(0)).await;
        let ended = client.wait(&id, PATIENCE).await.expect("no error");
        assert!(ended.is_some(), "a poll could not have found it");
    }
    // One claims, and once more when its turn has ended; the others look at most.
    let (claims, looks) =
        (sum(|one| one.counters().claims.get()) - claims, sum(|one| one.counters().looks.get()) - looks);
    assert!(claims <= HINTS * 4, "{claims} claims for {HINTS} hints; 8 listeners that all claim make 8 each");
    assert!(looks <= HINTS * 9, "{looks} looks for {HINTS} hints");
    let busy = providers.iter().filter(|provider| provider.counters().turns_claimed.get() > 0).count();
    assert!(busy >= 4, "the work went to {busy} of 8");
    for node in nodes {
        node.stop().await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_the_first_cannot_run_is_found_by_those_behind_it() {
    let world = World::new(steps(), patient()).await;
    let mut nodes = Vec::new();
    for _ in 1..4 {
        nodes.push(Node::on(&world, Code::default().program("else", sequence)).await);
    }
    let mut providers = vec![&world.provider];
    providers.extend(nodes.iter().map(|node| &node.provider));
    know_each_other(&providers).await;
    let client = Client::new(other(&world).await);
    for at in 0..8 {
        let id = format!("order-{at}");
        start(&client, &id, "steps", json!(0)).await;
        assert!(client.wait(&id, PATIENCE).await.expect("no error").is_some());
    }
    for node in nodes {
        node.stop().await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hint_about_work_when_no_other_node_is_live() {
    // Nobody here can run what is started, so that it is work for others.
    let world = World::new(steps(), patient()).await;
    listens(&world.provider).await;
    until("it is alone", async || world.provider.hints().others() == Some(0)).await;
    world.start("a", "unknown", json!(0)).await;
    assert_eq!(world.provider.counters().hints_sent.get(), 0);
    let second = Node::on(&world, Code::default().program("unknown", sequence)).await;
    know_each_other(&[&world.provider, &second.provider]).await;
    world.start("b", "unknown", json!(0)).await;
    until("it was told", async || world.provider.counters().hints_sent.get() > 0).await;
    second.stop().await;
    world.stop().await;
}

/// What a node that dies held is told to others by the node that frees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_sends_one() {
    let mut config = patient();
    config.liveness.heartbeat_interval = Duration::from_millis(250);
    config.liveness.stale_after = Duration::from_secs(3);
    config.lease.worker_lock_timeout = Duration::from_secs(600);
    let world = World::new(Code::default().program("asks", all(hangs())), config.clone()).await;
    let second = Node::with(&world, Code::default().silent("hangs"), config).await;
    know_each_other(&[&world.provider, &second.provider]).await;
    world.start("order", "asks", json!(0)).await;
    let held = "select count(*) from @activity_queue where owner is not null";
    world.until(held, 1).await;
    let heard = || {
        [&world.provider, &second.provider].map(|one| one.counters().hints_heard.get()).iter().sum::<u64>()
    };
    let before = heard();
    let killed = "with dead as (
        insert into @node (id, epoch, heartbeat_at, heartbeat_interval, stale_after)
        values ('killed', nextval('@node_epoch_seq'), now() - interval '1 hour', '250 ms', '3 s') returning epoch
      )
      update @activity_queue set owner = 'killed', owner_epoch = dead.epoch from dead where owner is not null";
    world.sql(killed).await;
    let claimed = second.provider.counters();
    // Whoever of the two frees it tells the other.
    until("it is claimed again, and told", async || heard() > before && claimed.activities_claimed.get() > 1)
        .await;
    second.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_sends_one() {
    let world = World::new(steps(), patient()).await;
    let second = Node::on(&world, steps()).await;
    know_each_other(&[&world.provider, &second.provider]).await;
    let heard = || world.provider.counters().hints_heard.get();
    let before = heard();
    second.provider.hints().released(1);
    until("given back work is told", async || heard() > before).await;
    let before = heard();
    second.engine.shutdown(Duration::from_secs(5)).await;
    until("a runtime that stops tells", async || heard() > before).await;
    second.stop().await;
    world.stop().await;
}
