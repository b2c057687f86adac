//! Due work that no live node can run, told apart from work that only waits for a free one.

use holdfast_core::store::coverage::{self, Ability, Unserved};

use crate::store_harness::*;

const LATE: &str = "update @turn_queue set due_at = now() - interval '11 s'";

async fn unserved(store: &Store) -> Vec<(String, String, i64)> {
    let found = coverage::unserved(&store.session, &store.statements).await.expect("a look");
    let mut names: Vec<_> = found
        .into_iter()
        .map(|Unserved { kind, name, tag, waiting, .. }| {
            (kind, tag.map_or(name.clone(), |tag| format!("{name} {tag}")), waiting)
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn work_is_unserved_until_a_live_node_says_that_it_can_run_it() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    assert_eq!(unserved(&store).await, [], "it is not late yet");
    store.run(LATE).await;
    let name = start_of("order").name;
    assert_eq!(unserved(&store).await, [("orchestration".to_owned(), name.clone(), 1)]);
    let ability = Ability { kind: "orchestration", name: &name, version: "1.0.0" };
    for _ in 0..2 {
        coverage::publish(&store.session, &store.statements, &node, &[ability]).await.expect("publish");
    }
    assert_eq!(unserved(&store).await, []);
    store.run("update @turn_queue set version = '2.0.0'").await;
    assert_eq!(unserved(&store).await.len(), 1, "another version is not it");
    store.run("update @turn_queue set version = '1.0.0'").await;
    store.run("update @node set heartbeat_at = now() - interval '2 min'").await;
    assert_eq!(unserved(&store).await.len(), 1, "a silent node serves nobody");
}

#[tokio::test]
async fn an_activity_is_served_by_a_node_that_has_its_name_and_takes_its_tag() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store
        .run(
            "insert into @activity_queue (instance, execution, event, name, input, tag, due_at)
             select 'j', 0, n, 'mail', '1', case when n > 1 then 'gpu' end, now() - interval '11 s'
             from generate_series(1, 3) n",
        )
        .await;
    let plain = ("activity".to_owned(), "mail".to_owned(), 1);
    let tagged = ("activity".to_owned(), "mail gpu".to_owned(), 2);
    assert_eq!(unserved(&store).await, [plain.clone(), tagged.clone()]);
    let said = |kind, name| Ability { kind, name, version: "" };
    let publish = async |abilities: &[Ability<'_>]| {
        coverage::publish(&store.session, &store.statements, &node, abilities).await.expect("publish");
    };
    publish(&[said("activity", "mail"), said("untagged", "")]).await;
    assert_eq!(unserved(&store).await, std::slice::from_ref(&tagged));
    publish(&[said("tag", "gpu")]).await;
    assert_eq!(unserved(&store).await, []);
}

#[tokio::test]
async fn what_a_node_that_is_gone_could_run_is_forgotten() {
    let store = Store::new().await;
    let (gone, node) = (store.node("a").await, store.node("b").await);
    let ability = [Ability { kind: "activity", name: "mail", version: "" }];
    coverage::publish(&store.session, &store.statements, &gone, &ability).await.expect("publish");
    store.run("delete from @node where id = 'a'").await;
    coverage::publish(&store.session, &store.statements, &gone, &ability).await.expect("no node, no word");
    coverage::publish(&store.session, &store.statements, &node, &ability).await.expect("publish");
    assert_eq!(store.number("select count(*) from @node_handler").await, 1);
}

#[tokio::test]
async fn a_history_is_served_by_a_node_that_replays_its_version() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    store.run(LATE).await;
    store.run("update @turn_queue set replay_version = 5").await;
    let name = start_of("order").name;
    let publish = async |kind, name: &str, version: &str| {
        let ability = [Ability { kind, name, version }];
        coverage::publish(&store.session, &store.statements, &node, &ability).await.expect("publish");
    };
    publish("orchestration", &name, "1.0.0").await;
    publish("replay", "0", "4").await;
    assert_eq!(unserved(&store).await.len(), 1);
    publish("replay", "0", "5").await;
    assert_eq!(unserved(&store).await, []);
}
