//! Standalone activities in the store: their keys, their ends under a lease, what is kept of them.

use holdfast_core::store::{
    activity::{self, Beat, ClaimedActivity},
    commit::{ActivityEnd, ActivityOutcome, CommitItem, CommitOutcome, Enqueue, NewStandalone},
    standalone::{self, Source, StandaloneFilter},
};

use crate::store_harness::*;

fn task(id: &str, retention_ms: i64) -> NewStandalone {
    NewStandalone {
        id: id.to_owned(),
        name: ACTIVITY.to_owned(),
        input: "1.0".to_owned(),
        retry: None,
        timeout_ms: None,
        tag: None,
        delay_ms: 0,
        retention_ms,
    }
}

fn enqueue(tasks: &[NewStandalone]) -> CommitItem {
    CommitItem::Enqueue(Enqueue { tasks: tasks.to_vec(), named: true })
}

fn created(created: &[bool]) -> CommitOutcome {
    CommitOutcome::Enqueued { created: created.to_vec() }
}

fn completed() -> ActivityOutcome {
    ActivityOutcome::StandaloneEnded(ActivityEnd::Completed(payload("2.0")))
}

fn failed() -> ActivityOutcome {
    ActivityOutcome::StandaloneEnded(ActivityEnd::Failed(payload(r#"{"name":"Error","message":"no"}"#)))
}

impl Store {
    async fn enqueue(&self, id: &str, retention_ms: i64) {
        assert_eq!(self.commit_one(enqueue(&[task(id, retention_ms)])).await, created(&[true]));
    }

    async fn standalone_counts(&self) -> (i64, i64) {
        let queued = self.number("select count(*) from @activity_queue").await;
        (queued, self.number("select count(*) from @ended_activity").await)
    }

    async fn taken(&self, node: &holdfast_core::store::NodeKey, id: &str) -> ClaimedActivity {
        let claimed = self.claim_activity(node).await;
        assert_eq!((claimed.key.instance.as_str(), claimed.key.execution, claimed.key.event), (id, 0, 0));
        claimed
    }
}

#[tokio::test]
async fn an_id_is_taken_as_long_as_its_task_is_stored() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let both = enqueue(&[task("one", -1), task("two", 0), task("one", -1)]);
    assert_eq!(store.commit_one(both.clone()).await, created(&[true, true, false]));
    assert_eq!(store.commit_one(both.clone()).await, created(&[false, false, false]));
    for claimed in store.claim_activities(&request(&node)).await {
        assert_eq!(store.commit_one(settling(&claimed, &node, completed())).await, done(false));
    }
    assert_eq!(store.standalone_counts().await, (0, 1), "only what is to be kept is kept");
    assert_eq!(store.commit_one(both).await, created(&[false, true, false]));
}

#[tokio::test]
async fn a_task_that_ends_while_it_is_queued_again_is_not_made_anew() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.enqueue("one", -1).await;
    let claimed = store.taken(&node, "one").await;
    // The end is written and not committed while the other client looks and inserts.
    let ending = store.another().await;
    ending
        .run(
            "begin;
             insert into @ended_activity (id, name, input, status, fence, attempt, deliveries, retention_ms, scheduled_at, keep_until)
               values ('one', 'charge', '1.0', 'Completed', 0, 1, 1, -1, now(), 'infinity');
             delete from @activity_queue where instance = 'one'",
        )
        .await;
    let other = store.another().await;
    let again = tokio::spawn(async move { other.commit_one(enqueue(&[task("one", -1)])).await });
    let waits = "select count(*) from pg_locks waiting
       where not granted and exists (
         select from pg_locks held where held.pid = waiting.pid and held.relation = '@activity_queue'::regclass)";
    while store.number(waits).await == 0 {
        tokio::task::yield_now().await;
    }
    ending.run("commit").await;
    assert_eq!(again.await.expect("no panic"), created(&[false]));
    assert_eq!(store.standalone_counts().await, (0, 1));
    assert_eq!(store.commit_one(settling(&claimed, &node, completed())).await, CommitOutcome::Fenced);
}

#[tokio::test]
async fn an_end_needs_its_fence_and_is_told_truthfully_when_its_reply_was_lost() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.enqueue("kept", -1).await;
    let first = store.taken(&node, "kept").await;
    store.run("update @activity_queue set due_at = now()").await;
    let second = store.taken(&other, "kept").await;
    let late = settling(&first, &node, failed());
    assert_eq!(store.commit_one(late.clone()).await, CommitOutcome::Fenced);
    let end = settling(&second, &other, completed());
    assert_eq!(store.commit_one(end.clone()).await, done(false));
    assert_eq!(store.commit_one(end).await, done(false), "the same end again is done");
    assert_eq!(store.commit_one(late).await, CommitOutcome::Fenced);
    let row =
        &standalone::get(&store.session, &store.statements, &["kept".to_owned()]).await.expect("a row")[0];
    assert_eq!((row.status.as_str(), row.result.as_deref()), ("Completed", Some("2.0")));

    store.enqueue("gone", 0).await;
    let claimed = store.taken(&node, "gone").await;
    let end = settling(&claimed, &node, completed());
    assert_eq!(store.commit_one(end.clone()).await, done(false));
    assert_eq!(store.commit_one(end).await, done(false), "nothing says otherwise");
}

#[tokio::test]
async fn a_cancelled_task_is_gone_for_who_runs_it() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.enqueue("one", 0).await;
    let claimed = store.taken(&node, "one").await;
    let cancel = || standalone::cancel(&store.session, &store.statements, "one", "{}", 60_000);
    assert!(cancel().await.expect("cancelled"));
    assert!(!cancel().await.expect("nothing to cancel"));
    assert_eq!(store.commit_one(settling(&claimed, &node, completed())).await, CommitOutcome::Fenced);
    assert!(store.holds("(select status = 'Cancelled' and keep_until > now() from @ended_activity)").await);
    assert!(standalone::retry(&store.session, &store.statements, "one").await.expect("a retry"));
    assert_eq!(store.standalone_counts().await, (1, 0));
    let again = store.taken(&node, "one").await;
    assert_eq!((again.deliveries, again.attempt), (1, 1));
}

#[tokio::test]
async fn failed_tasks_stay_and_the_others_as_long_as_they_say() {
    let store = Store::new().await;
    let node = store.node("a").await;
    for (id, retention_ms) in [("failed", 0), ("short", 1), ("long", 60_000), ("kept", -1)] {
        store.enqueue(id, retention_ms).await;
        let claimed = store.taken(&node, id).await;
        let outcome = if id == "failed" { failed() } else { completed() };
        assert_eq!(store.commit_one(settling(&claimed, &node, outcome)).await, done(false));
    }
    store.run("update @ended_activity set keep_until = keep_until - interval '1 s'").await;
    assert_eq!(standalone::sweep(&store.session, &store.statements, 10).await.expect("a sweep"), 1);
    let filter = StandaloneFilter::default();
    let list = standalone::list(&store.session, &store.statements, Source::Ended, &filter, None, (10, 10));
    let ids: Vec<String> = list.await.expect("a list").found.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["failed", "kept", "long"]);
}

#[tokio::test]
async fn a_list_goes_on_behind_a_stretch_without_a_match() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "an instance", 5).await;
    store.enqueue("b", 0).await;
    let filter = StandaloneFilter::default();
    let list = |after: Option<&'static str>| {
        standalone::list(&store.session, &store.statements, Source::Queued, &filter, after, (10, 3))
    };
    let first = list(None).await.expect("a list");
    assert!(first.found.is_empty());
    assert_eq!(first.end.as_deref(), Some("an instance"));
    let second = list(Some("an instance")).await.expect("a list");
    assert_eq!(second.found.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(second.end, None);
}

#[tokio::test]
async fn a_heartbeat_needs_its_fence_and_reaches_the_next_try() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.enqueue("one", 0).await;
    let beat = |claimed: &ClaimedActivity, details: &str| Beat {
        key: claimed.key.clone(),
        fence: claimed.fence,
        details: payload(details),
    };
    let first = store.taken(&node, "one").await;
    assert_eq!(first.heartbeat, None);
    store.run("update @activity_queue set due_at = now()").await;
    let second = store.taken(&other, "one").await;
    let beats = [beat(&first, "1"), beat(&second, "2")];
    let written = activity::beat(&store.session, &store.statements, &beats).await.expect("a write");
    assert_eq!(written, [second.fence], "a lease that is gone tells nothing");

    let mut again = settling(&second, &other, ActivityOutcome::Retry { delay_ms: 0, attempt: 2 });
    assert_eq!(store.commit_one(again.clone()).await, done(true));
    let third = store.taken(&node, "one").await;
    assert_eq!(third.heartbeat.as_deref(), Some("2"), "what is stored stays");
    again = settling(&third, &node, ActivityOutcome::Retry { delay_ms: 0, attempt: 3 });
    if let CommitItem::Activity(commit) = &mut again {
        commit.heartbeat = Some(payload("3"));
    }
    assert_eq!(store.commit_one(again).await, done(true));
    assert_eq!(
        store.taken(&node, "one").await.heartbeat.as_deref(),
        Some("3"),
        "what was told since goes along"
    );
}
