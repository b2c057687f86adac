//! Sessions: who owns one, how it is taken, kept and lost, and that a backlog of them costs the others nothing.

use holdfast_core::store::{
    NodeKey, TagFilter,
    activity::{self, ClaimedActivity, Lane, Terms},
    node, session,
};

use crate::store_harness::*;

impl Store {
    async fn on_session(&self, session: &str, count: i32) {
        self.run(&format!(
            "insert into @activity_queue (instance, execution, event, name, input, session)
             select '{session}', 1, n, '{ACTIVITY}', '1', '{session}' from generate_series(2, {count} + 1) n"
        ))
        .await;
    }

    async fn claim_on_session(&self, node: &NodeKey, new_sessions: i64, limit: i64) -> Vec<ClaimedActivity> {
        let takes = Terms {
            tags: &TagFilter::default(),
            new_sessions,
            session_timeout_ms: LONG_MS,
            spares_last: false,
        };
        let mut request = request(node);
        request.limit = limit;
        let names = [ACTIVITY.to_owned()];
        activity::claim(&self.session, &self.statements, &request, &names, &takes, Lane::InSession)
            .await
            .unwrap_or_else(|error| panic!("claim: {}", error.full_text()))
    }

    async fn owner(&self, session: &str) -> Option<String> {
        let rows = self.rows(&format!("select owner from @session where session = '{session}'")).await;
        rows.first().and_then(|row| row.get(0))
    }
}

#[tokio::test]
async fn the_first_claim_takes_the_session_and_others_leave_its_tasks() {
    let store = Store::new().await;
    let (a, b) = (store.node("a").await, store.node("b").await);
    store.on_session("s", 3).await;
    assert!(store.look(&b).await.in_session);
    assert_eq!(store.claim_on_session(&a, 1, 1).await.len(), 1);
    assert_eq!(store.owner("s").await.as_deref(), Some("a"));
    assert!(!store.look(&b).await.in_session);
    assert!(store.claim_on_session(&b, 10, 10).await.is_empty());
    assert_eq!(store.claim_on_session(&a, 0, 10).await.len(), 2, "an owned session needs no room");
}

#[tokio::test]
async fn a_claim_takes_no_more_new_sessions_than_it_may() {
    let store = Store::new().await;
    let a = store.node("a").await;
    for session in ["s", "t", "u"] {
        store.on_session(session, 2).await;
    }
    assert!(store.claim_on_session(&a, 0, 10).await.is_empty());
    assert_eq!(store.claim_on_session(&a, 2, 10).await.len(), 4);
    assert_eq!(store.number("select count(*) from @session where owner = 'a'").await, 2);
}

#[tokio::test]
async fn a_session_whose_lease_is_over_is_taken_with_its_suspects() {
    let store = Store::new().await;
    let (a, b) = (store.node("a").await, store.node("b").await);
    store.on_session("s", 2).await;
    assert_eq!(store.claim_on_session(&a, 1, 1).await.len(), 1);
    store.run("update @session set leased_until = now() - interval '1 s'").await;
    store.run("update @activity_queue set isolated = true, due_at = now(), owner = null, owner_epoch = null, leased_at = null").await;
    assert!(store.look(&b).await.in_session);
    assert!(store.claim_on_session(&b, 1, 10).await.is_empty(), "suspects are claimed alone");
    let takes = Terms {
        tags: &TagFilter::default(),
        new_sessions: 1,
        session_timeout_ms: LONG_MS,
        spares_last: false,
    };
    let mut alone = request(&b);
    alone.isolated = true;
    let names = [ACTIVITY.to_owned()];
    let claimed =
        activity::claim(&store.session, &store.statements, &alone, &names, &takes, Lane::InSession).await;
    assert_eq!(claimed.expect("a claim").len(), 1);
    assert_eq!(store.owner("s").await.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_renewal_keeps_what_is_used_and_lets_go_what_is_idle() {
    let store = Store::new().await;
    let a = store.node("a").await;
    for session in ["used", "fresh", "idle"] {
        store.on_session(session, 1).await;
    }
    assert_eq!(store.claim_on_session(&a, 3, 10).await.len(), 3);
    store.run("update @session set leased_until = now() + interval '1 s'").await;
    store.run("update @session set used_at = now() - interval '1 hour' where session <> 'fresh'").await;
    let in_use = ["used".to_owned()];
    let renewed = session::renew(&store.session, &store.statements, &a, &in_use, LONG_MS, 60_000).await;
    assert_eq!(renewed.expect("a renewal"), 2);
    let kept = "select count(*) from @session where leased_until > now() + interval '30 s'";
    assert_eq!(store.number(&format!("{kept} and session in ('used', 'fresh')")).await, 2);
    assert_eq!(store.number(kept).await, 2);
    assert!(
        store.holds("(select used_at > now() - interval '1 min' from @session where session = 'used')").await
    );
    store.run("update @session set leased_until = now() - interval '1 s' where session = 'idle'").await;
    assert_eq!(session::sweep(&store.session, &store.statements).await.expect("a sweep"), 1);
    assert_eq!(store.owner("used").await.as_deref(), Some("a"));
}

#[tokio::test]
async fn the_sessions_of_a_dead_node_are_free_and_those_of_its_id_stay() {
    let store = Store::new().await;
    let (a, b) = (store.node("a").await, store.node("b").await);
    store.on_session("s", 1).await;
    store.claim_on_session(&a, 1, 1).await;
    let again = store.node("a").await;
    node::goodbye(&store.session, &store.statements, &a).await.expect("a goodbye");
    assert_eq!(store.owner("s").await.as_deref(), Some("a"), "its successor goes on");
    store.run(&format!("delete from @node where id = 'a' and epoch = {}", again.epoch)).await;
    node::sweep(&store.session, &store.statements).await.expect("a sweep");
    assert_eq!(store.owner("s").await, None);
    assert_eq!(store.claim_on_session(&b, 1, 1).await.len(), 1);
}

#[tokio::test]
async fn two_nodes_that_claim_at_once_share_no_session() {
    let store = Store::new().await;
    let (a, b) = (store.node("a").await, store.node("b").await);
    for n in 0..20 {
        store.on_session(&format!("s{n}"), 5).await;
    }
    let other = store.another().await;
    let (first, second) =
        tokio::join!(store.claim_on_session(&a, 20, 100), other.claim_on_session(&b, 20, 100));
    assert_eq!(first.len() + second.len(), 100);
    let mixed = "select count(*) from @activity_queue q join @session s on s.session = q.session where s.owner <> q.owner";
    assert_eq!(store.number(mixed).await, 0);
}
