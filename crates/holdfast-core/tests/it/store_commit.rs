//! Commits: what a turn writes, batches, ends, and running the same item twice (C1, C3, C5).

use holdfast_core::{
    error::ErrorKind,
    store::{
        commit::{self, ActivityOutcome, CommitItem, CommitOutcome, NewTimer, Start, TurnEnd},
        instance,
    },
};

use crate::{
    store_harness::*,
    support::{FaultProxy, TestDatabase},
};

#[tokio::test]
async fn every_statement_is_understood_by_the_server() {
    let store = Store::new().await;
    let all = store.statements.all();
    store.session.prepare_all(&all).await.expect("every statement prepares");
    for statement in all {
        assert!(!statement.text.contains("/*"), "{}: a template is left", statement.name);
    }
}

#[tokio::test]
async fn an_instance_runs_from_start_to_end() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 2).await;
    assert!(store.holds("(select status = 'Running' and version = '1.0.0' from @instance)").await);
    assert!(
        store
            .holds("(select due_at = 'infinity' and owner is null and history_len = 3 from @turn_queue)")
            .await
    );

    let tasks = store.claim_activities(&request(&node)).await;
    assert_eq!(tasks.len(), 2);
    let results: Vec<_> = tasks.iter().map(|task| result_of(task, &node)).collect();
    assert_eq!(
        store.commit(&results).await,
        [done(true), done(true)],
        "two results for one instance in one batch"
    );

    let claimed = store.claim_one(&node).await;
    let messages = store.inbox("order").await;
    assert_eq!(messages.len(), 2);
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = messages.iter().map(|(id, _)| *id).collect();
    turn.append("ActivityCompleted", Some(2));
    turn.append("ActivityCompleted", Some(3));
    assert_eq!(store.commit_one(turn.completed().item()).await, done(false));
    assert!(
        store
            .holds("(select status = 'Completed' and output = '2.0' and history_len = 6 from @instance)")
            .await
    );
    for table in ["turn_queue", "inbox", "activity_queue"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
    let history =
        instance::read_history(&store.session, &store.statements, "order", 1).await.expect("a history");
    assert_eq!(history.iter().map(|event| event.id.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(history[3].source, Some(event_id(2)));
}

#[tokio::test]
async fn an_empty_batch_is_no_work() {
    let store = Store::unmigrated().await;
    assert_eq!(store.commit(&[]).await, []);
}

#[tokio::test]
async fn a_batch_drops_only_the_fenced_item() {
    let store = Store::new().await;
    let (node, other) = (store.node("a").await, store.node("b").await);
    store.commit(&[start("good"), start("taken"), start("target")]).await;
    let claimed = store.claim(&request(&node)).await;
    let find = |id: &str| claimed.iter().find(|turn| turn.instance == id).expect("claimed");
    store.run("update @turn_queue set due_at = now() where instance = 'taken'").await;
    store.claim_one(&other).await;

    let good = scheduling(find("good"), &node, 1);
    let mut taken = scheduling(find("taken"), &node, 1);
    taken.sends = vec![event("target", "never")];
    taken.starts = vec![start_of("never")];
    taken.timers = vec![NewTimer { event: 9, fire_at_ms: 0 }];
    taken.custom_status = Some(Some("never".to_owned()));
    let batch = [taken.item(), CommitItem::Send(event("target", "go")), good.item(), start("new")];
    let outcomes = store.commit(&batch).await;
    assert_eq!(outcomes, [CommitOutcome::Fenced, done(true), done(false), CommitOutcome::Created]);
    assert!(store.holds("(select array_agg(distinct instance) = '{good}' from @history)").await);
    assert!(store.holds("(select array_agg(distinct instance) = '{good}' from @activity_queue)").await);
    assert!(store.holds("(select array_agg(name) = '{go}' from @inbox)").await);
    assert_eq!(
        store
            .number("select count(*) from @instance where instance = 'never' or custom_status is not null")
            .await,
        0
    );
    assert_eq!(store.number("select count(*) from @turn_queue where instance = 'never'").await, 0);
}

#[tokio::test]
async fn a_failed_statement_writes_nothing_of_its_batch() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = scheduling(&claimed, &node, 1);
    turn.events[0].data = "nul \0".to_owned();
    let batch = [CommitItem::Send(event("order", "go")), turn.item()];
    let error = commit::commit(&store.session, &store.statements, &batch, true).await;
    assert_eq!(error.expect_err("NUL is refused").kind(), ErrorKind::Query);
    for table in ["history", "inbox", "activity_queue"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
    assert_eq!(
        store.commit_one(scheduling(&claimed, &node, 1).item()).await,
        done(false),
        "the lease stands"
    );
}

#[tokio::test]
async fn a_commit_run_twice_reports_done() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let turn = scheduling(&claimed, &node, 3).item();
    assert_eq!(store.commit_one(turn.clone()).await, done(false));
    assert_eq!(store.commit_one(turn.clone()).await, done(false), "a turn");

    let tasks = store.claim_activities(&request(&node)).await;
    let result = result_of(&tasks[0], &node);
    assert_eq!(store.commit_one(result.clone()).await, done(true));
    assert_eq!(
        store.commit_one(result.clone()).await,
        done(false),
        "an activity whose message is in the inbox"
    );
    let retry = settling(&tasks[1], &node, ActivityOutcome::Retry { delay_ms: 0, attempt: 2 });
    assert_eq!(store.commit_one(retry.clone()).await, done(true));
    assert_eq!(store.commit_one(retry).await, done(false), "a retry");

    let claimed = store.claim_one(&node).await;
    assert_eq!(store.commit_one(turn.clone()).await, done(false), "a turn whose instance was claimed again");
    let mut last = turn_of(&claimed, &node);
    last.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
    last.append("ActivityCompleted", Some(tasks[0].key.event));
    let last = last.completed().item();
    assert_eq!(store.commit_one(last.clone()).await, done(false));
    assert_eq!(store.commit_one(last).await, done(false), "the last turn of an instance");
    assert_eq!(store.commit_one(result).await, done(false), "an activity whose message became an event");
    assert_eq!(store.commit_one(turn).await, CommitOutcome::Fenced, "another turn was settled since");
    assert_eq!(store.number("select count(*) from @history").await, 6);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_by_running_it_again() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    store.start("second").await;
    let task = store.claim_activity(&node).await;
    let claimed = store.claim_one(&node).await;
    let batch = [result_of(&task, &node), turn_of(&claimed, &node).completed().item(), start("third")];

    let proxy = FaultProxy::start(TestDatabase::get().url()).await;
    let cut_off = store.through(proxy.url()).await;
    cut_off.session.prepare_all(&store.statements.all()).await.expect("every statement prepares");
    proxy.hold_replies_from_commit();
    let lost = tokio::spawn({
        let batch = batch.clone();
        async move { commit::commit(&cut_off.session, &cut_off.statements, &batch, false).await }
    });
    while !store.holds("(select count(*) = 1 from @instance where instance = 'third')").await {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    let error = lost.await.expect("no panic").expect_err("its answer was lost");
    assert_eq!(error.kind(), ErrorKind::CommitUnknown);
    let outcomes = store.commit(&batch).await;
    assert_eq!(outcomes, [done(false), done(false), CommitOutcome::Exists { same: true }]);
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn a_retried_activity_comes_back_with_its_next_attempt() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let task = store.claim_activity(&node).await;
    let wait = settling(&task, &node, ActivityOutcome::Retry { delay_ms: 3_600_000, attempt: 2 });
    assert_eq!(store.commit_one(wait).await, done(false));
    assert!(store.claim_activities(&request(&node)).await.is_empty());
    assert_eq!(
        store
            .number("select round(extract(epoch from due_at - clock_timestamp())) / 60 from @activity_queue")
            .await,
        60
    );
    store.run("update @activity_queue set due_at = now()").await;
    let again = store.claim_activity(&node).await;
    assert_eq!((again.attempt, again.deliveries), (2, 1));
    assert!(again.fence > task.fence);
    assert!(store.inbox("order").await.is_empty());
}

#[tokio::test]
async fn a_cancelled_activity_is_gone_and_its_result_is_fenced() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 2).await;
    let tasks = store.claim_activities(&request(&node)).await;
    store.send("order", "stop").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
    turn.append("ActivityCancelRequested", Some(tasks[0].key.event));
    turn.cancelled_activities = vec![tasks[0].key.event];
    let batch = [turn.item(), result_of(&tasks[0], &node), result_of(&tasks[1], &node)];
    assert_eq!(store.commit(&batch).await, [done(true), CommitOutcome::Fenced, done(true)]);
    assert_eq!(store.inbox("order").await.len(), 1);
    assert_eq!(store.number("select count(*) from @activity_queue").await, 0);
}

#[tokio::test]
async fn a_standalone_activity_ends_without_an_instance() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.run("insert into @activity_queue (instance, execution, event, name, input) values ('job', 0, 0, 'charge', '1')").await;
    let task = store.claim_activity(&node).await;
    assert_eq!(store.commit_one(result_of(&task, &node)).await, done(false));
    for table in ["activity_queue", "inbox", "turn_queue"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
}

#[tokio::test]
async fn continue_as_new_archives_the_execution() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.append("OrchestrationContinuedAsNew", None);
    turn.custom_status = Some(Some("half".to_owned()));
    turn.end = Some(TurnEnd::ContinuedAsNew {
        input: "\"next\"".to_owned(),
        version: None,
        carried: Some("[]".to_owned()),
    });
    assert_eq!(store.commit_one(turn.item()).await, done(true), "due now");
    assert_eq!(store.commit_one(turn.item()).await, done(false), "run twice");
    assert!(
        store
            .holds(
                "(select execution = 1 and status = 'ContinuedAsNew' and version = '1.0.0' and input = '{\"n\":1.0}'
                    and output = '\"next\"' and started_at is not null from @execution)"
            )
            .await
    );
    let next = store.claim_one(&node).await;
    assert_eq!((next.execution, next.history_len, next.version.as_deref()), (2, 0, None));
    assert_eq!(next.last_fence, claimed.fence);
    let started = next.start.as_ref().expect("no history of this execution");
    assert_eq!((started.input.as_str(), started.carried.as_deref()), ("\"next\"", Some("[]")));
    assert_eq!(started.custom_status.as_deref(), Some("half"));
    assert_eq!(store.commit_one(turn_of(&next, &node).completed().item()).await, done(false));
    assert!(
        store
            .holds(
                "(select execution = 2 and status = 'Completed' and started_at is not null from @instance)"
            )
            .await
    );
    assert_eq!(store.number("select count(*) from @history where execution = 2").await, 2);
}

#[tokio::test]
async fn a_start_that_comes_again_is_the_same_after_the_instance_continued_as_new() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    turn.append("OrchestrationContinuedAsNew", None);
    turn.end = Some(TurnEnd::ContinuedAsNew { input: "\"next\"".to_owned(), version: None, carried: None });
    assert_eq!(store.commit_one(turn.item()).await, done(true));
    let next = Start { input: "\"next\"".to_owned(), ..start_of("order") };
    let outcomes = store.commit(&[start("order"), CommitItem::Start(next)]).await;
    assert_eq!(outcomes, [CommitOutcome::Exists { same: true }, CommitOutcome::Exists { same: false }]);
    store.run("delete from @execution").await;
    assert_eq!(store.commit_one(start("order")).await, CommitOutcome::Exists { same: true }, "pruned");
}

#[tokio::test]
async fn an_instance_that_has_run_waits_for_no_start_when_the_clock_goes_back() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let start = Start { start_at_ms: Some(1), ..start_of("order") };
    assert_eq!(store.commit_one(CommitItem::Start(start)).await, CommitOutcome::Created);
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    turn.append("OrchestrationStarted", None);
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    assert!(store.holds("(select starts_at is null and due_at = 'infinity' from @turn_queue)").await);
}

#[tokio::test]
async fn custom_status_counts_its_versions() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    for (version, status) in [(1, Some("half")), (2, None)] {
        store.send("order", "go").await;
        let claimed = store.claim_one(&node).await;
        let mut turn = turn_of(&claimed, &node);
        turn.consumed = store.inbox("order").await.iter().map(|(id, _)| *id).collect();
        turn.custom_status = Some(status.map(str::to_owned));
        store.commit_one(turn.item()).await;
        let row = instance::get(&store.session, &store.statements, &["order".to_owned()])
            .await
            .expect("a row")
            .remove(0);
        assert_eq!((row.custom_status.as_deref(), row.custom_status_version), (status, version));
    }
}

#[tokio::test]
async fn failed_and_cancelled_ends_keep_their_error() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&[start("f"), start("c"), start("waits")]).await;
    let mut batch = Vec::new();
    for claimed in store.claim(&request(&node)).await {
        let mut turn = turn_of(&claimed, &node);
        turn.append("OrchestrationFailed", None);
        let error = "{\"name\":\"Error\"}".to_owned();
        turn.end = match claimed.instance.as_str() {
            "f" => Some(TurnEnd::Failed { error }),
            "c" => Some(TurnEnd::Cancelled { error }),
            _ => None,
        };
        batch.push(turn.item());
    }
    assert_eq!(store.commit(&batch).await, [done(false), done(false), done(false)]);
    let ids = ["f", "c", "waits", "unknown"].map(str::to_owned);
    let mut rows = instance::get(&store.session, &store.statements, &ids).await.expect("rows");
    rows.sort_by(|a, b| a.instance.cmp(&b.instance));
    let told: Vec<_> = rows.iter().map(|row| (row.status.as_str(), row.error.is_some())).collect();
    assert_eq!(told, [("Cancelled", true), ("Failed", true), ("Running", false)]);
    let ended = instance::ended(&store.session, &store.statements, &ids).await.expect("ids");
    let mut ended: Vec<String> = ended.into_iter().map(|row| row.instance).collect();
    ended.sort();
    assert_eq!(ended, ["c", "f"]);
}
