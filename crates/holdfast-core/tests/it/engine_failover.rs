//! Databases that go away: a primary that dies and whose standby is promoted, a server that is down for longer than a stale age.

use std::{sync::Arc, time::Duration};

use holdfast_core::{config::EngineConfig, engine::Engine, provider::Provider};
use serde_json::json;

use crate::support::{
    TestDatabase, TestServer,
    host::Host,
    load::{audit, start_some},
    world::{World, run, steps},
};

fn quick() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.liveness.heartbeat_interval = Duration::from_millis(500);
    config.liveness.stale_after = Duration::from_secs(3);
    config
}

/// A node in a process of its own, as far as the others can tell.
struct Peer {
    provider: Arc<Provider>,
    engine: Arc<Engine>,
    host: Host,
}

impl Peer {
    async fn start(url: &str, schema: &str) -> Self {
        let pool = TestDatabase::get().pool_config();
        let provider = Provider::connect(url, schema, pool).await.expect("connect");
        let (engine, host) = run(&provider, steps(), quick()).await;
        Self { provider, engine, host }
    }

    async fn stop(self) {
        self.engine.shutdown(Duration::from_secs(5)).await;
        self.host.ended().await;
        self.provider.close(Duration::from_secs(1)).await;
    }
}

/// Nodes that were declared dead, as those tell who did it and those it was done to.
fn deaths(provider: &Provider) -> u64 {
    provider.counters().nodes_recovered.get() + provider.counters().declared_dead.get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_is_reached_through_a_url_with_both_hosts_and_nothing_is_lost() {
    let primary = TestServer::start(|_| String::new());
    let standby = Arc::new(primary.standby());
    let hosts = format!("{},{}", primary.folder().display(), standby.folder().display());
    let url = format!("postgres://postgres@/postgres?host={hosts}&target_session_attrs=read-write");
    let world = World::at(&url, steps(), quick()).await;
    let peer = Peer::start(&url, &world.schema).await;
    let mut ids = Vec::new();
    for round in 0..5 {
        ids.extend(start_some(&world, &format!("before{round}")).await);
    }
    assert_eq!(ids.len(), 40, "the primary takes them");
    let promoted = Arc::clone(&standby);
    let failover = tokio::task::spawn_blocking(move || {
        primary.crash();
        promoted.promote();
        primary
    });
    while !failover.is_finished() {
        ids.extend(start_some(&world, &format!("during{}", ids.len())).await);
    }
    let _primary = failover.await.expect("the standby is promoted");
    while ids.iter().all(|id| !id.starts_with("after")) {
        ids.extend(start_some(&world, "after").await);
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    audit(&standby.url(), &world).await;
    assert_eq!(deaths(&world.provider) + deaths(&peer.provider), 0, "a failover is nobody's death");
    peer.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_stop_of_the_database_none_of_eight_nodes_recovers_another() {
    let server = Arc::new(TestServer::start(|_| "synchronous_commit = on\n".to_owned()));
    let world = World::at(&server.url(), steps(), quick()).await;
    let mut peers = Vec::new();
    for _ in 0..7 {
        peers.push(Peer::start(&server.url(), &world.schema).await);
    }
    let mut ids = Vec::new();
    for round in 0..5 {
        ids.extend(start_some(&world, &format!("before{round}")).await);
    }
    let stopped = Arc::clone(&server);
    let outage = tokio::task::spawn_blocking(move || {
        stopped.crash();
        // Twice the stale age: by their rows all are dead.
        std::thread::sleep(Duration::from_secs(6));
        stopped.start_again();
    });
    outage.await.expect("the server is back");
    // It has no past and finds eight peers that fell silent together.
    peers.push(Peer::start(&server.url(), &world.schema).await);
    while ids.iter().all(|id| !id.starts_with("after")) {
        ids.extend(start_some(&world, "after").await);
    }
    for id in &ids {
        assert_eq!(world.output(id).await, json!(15));
    }
    audit(&server.url(), &world).await;
    let all: u64 = peers.iter().map(|peer| deaths(&peer.provider)).sum();
    assert_eq!(all + deaths(&world.provider), 0, "an outage is nobody's death");
    for peer in peers {
        peer.stop().await;
    }
    world.stop().await;
}
