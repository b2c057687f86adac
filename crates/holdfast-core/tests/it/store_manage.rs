//! Lists, trees, deleting and pruning.
//!
//! length: one small world serves every rule of this room, and each needs it whole.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    error::ErrorKind,
    limits,
    manage::{Manager, Retention},
    provider::Provider,
    store::{
        commit::{CommitOutcome, Start, TurnEnd},
        manage::{self, Deleted, Filter, Position, Pruned, RootFilter, TreeRow},
    },
};
use holdfast_replay::ParentLink;

use crate::{store_harness::*, support::TestDatabase};

const NO_FILTER: Filter = Filter {
    statuses: None,
    name: None,
    version: None,
    parked: None,
    error_code: None,
    tag: None,
    parent: None,
    id_prefix: None,
    created_after_ms: None,
    created_before_ms: None,
};

impl Store {
    /// A manager of this schema.
    async fn manager(&self) -> (Manager, Arc<Provider>) {
        let database = TestDatabase::get();
        let provider =
            Provider::connect(database.url(), &self.schema, database.pool_config()).await.expect("connect");
        (Manager::new(Arc::clone(&provider)), provider)
    }

    /// Ids of a list in steps of `limit` over stretches of `stretch`.
    async fn listed(&self, filter: &Filter, limit: i64, stretch: i64) -> Vec<String> {
        let (mut ids, mut place) = (Vec::new(), None);
        loop {
            let step = manage::list(&self.session, &self.statements, filter, place.as_ref(), limit, stretch)
                .await
                .unwrap_or_else(|error| panic!("list: {}", error.full_text()));
            let last = step
                .found
                .last()
                .map(|row| Position { created_at_ms: row.created_at_ms, instance: row.instance.clone() });
            let full = step.found.len() == usize::try_from(limit).expect("small");
            ids.extend(step.found.into_iter().map(|row| row.instance));
            place = if full { last } else { step.end };
            if place.is_none() {
                return ids;
            }
        }
    }

    /// A tree with its root apart.
    async fn tree(&self, root: &str) -> (TreeRow, Vec<TreeRow>) {
        let tree = manage::tree(&self.session, &self.statements, root).await.expect("a tree");
        (tree.iter().find(|member| member.instance == root).expect("the root").clone(), tree)
    }

    /// Rows of every table that belong to an instance.
    async fn rows_of(&self, instance: &str) -> i64 {
        let parts: Vec<String> =
            ["instance", "execution", "history", "turn_queue", "inbox", "activity_queue"]
                .iter()
                .map(|table| format!("(select count(*) from @{table} where instance = '{instance}')"))
                .collect();
        self.number(&parts.join(" + ")).await
    }

    /// An instance that continued as new so often, each closed execution with one event.
    async fn continued(&self, instance: &str, times: i64) {
        self.start(instance).await;
        let node = self.node("continuing").await;
        for _ in 0..times {
            let mut turn = turn_of(&self.claim_one(&node).await, &node);
            turn.end = Some(TurnEnd::ContinuedAsNew { input: "1".to_owned(), version: None, carried: None });
            assert_eq!(self.commit_one(turn.item()).await, done(true));
        }
    }
}

fn child_start(child: &str, parent: &str) -> Start {
    let link = ParentLink { instance: parent.to_owned(), execution: 1, event: event_id(2) };
    Start { parent: Some(link), ..start_of(child) }
}

fn prefix(text: &str) -> Filter {
    Filter { id_prefix: Some(text.to_owned()), ..NO_FILTER }
}

#[tokio::test]
async fn instances_are_listed_newest_first_each_once_whatever_the_step() {
    let store = Store::new().await;
    store.commit(&(0..9).map(|number| start(&format!("i{number}"))).collect::<Vec<_>>()).await;
    store.run("update @instance set created_at = timestamptz 'epoch' + (substr(instance, 2)::int / 3) * interval '1 ms'").await;
    let expected = ["i8", "i7", "i6", "i5", "i4", "i3", "i2", "i1", "i0"];
    for limit in 1..11 {
        for stretch in [1, 2, 4, 9, 10, 100] {
            assert_eq!(store.listed(&NO_FILTER, limit, stretch).await, expected, "{limit} of {stretch}");
        }
    }
}

#[tokio::test]
async fn a_filter_keeps_what_it_says_also_when_most_stretches_hold_nothing() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&(0..30).map(|number| start(&format!("i{number:02}"))).collect::<Vec<_>>()).await;
    store.run("update @turn_queue set due_at = 'infinity' where instance <> 'i07'").await;
    store.run("update @instance set created_at = timestamptz 'epoch' + substr(instance, 2)::int * interval '1 ms'").await;
    store.run("update @instance set name = 'other', version = '2.0.0' where instance = 'i11'").await;
    let claimed = store.claim_one(&node).await;
    store.commit_one(turn_of(&claimed, &node).completed().item()).await;

    let completed = Filter { statuses: Some(vec!["Completed".to_owned()]), ..NO_FILTER };
    assert_eq!(store.listed(&completed, 5, 3).await, ["i07"]);
    let other = Filter { name: Some("other".to_owned()), ..NO_FILTER };
    assert_eq!(store.listed(&other, 5, 3).await, ["i11"]);
    let version = Filter { version: Some("2.0.0".to_owned()), ..NO_FILTER };
    assert_eq!(store.listed(&version, 5, 3).await, ["i11"]);
    assert_eq!(store.listed(&prefix("i2"), 4, 3).await.len(), 10);
    assert_eq!(store.listed(&prefix("i%"), 4, 3).await, [""; 0]);
    let between = Filter { created_after_ms: Some(3), created_before_ms: Some(6), ..NO_FILTER };
    assert_eq!(store.listed(&between, 1, 1).await, ["i05", "i04"]);
}

#[tokio::test]
async fn children_are_listed_by_their_parent_and_a_tree_holds_every_generation() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("root").await;
    for (parent, children) in [("root", vec!["a", "b"]), ("a", vec!["a1"]), ("a1", vec!["a2"])] {
        let claimed = store.claim_one(&node).await;
        assert_eq!(claimed.instance, parent);
        let mut turn = turn_of(&claimed, &node);
        turn.starts = children.iter().map(|child| child_start(child, parent)).collect();
        store.commit_one(turn.item()).await;
        store.run("update @turn_queue set due_at = 'infinity' where instance = 'b'").await;
    }
    let of_root = Filter { parent: Some("root".to_owned()), ..NO_FILTER };
    assert_eq!(store.listed(&of_root, 1, 1).await, ["b", "a"]);
    let (root, tree) = store.tree("root").await;
    let mut ids: Vec<_> = tree.iter().map(|member| member.instance.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "a1", "a2", "b", "root"]);
    assert!(root.parent.is_none() && !root.ended);
    assert_eq!(store.tree("a").await.1.len(), 3);
    assert!(manage::tree(&store.session, &store.statements, "nobody").await.expect("a tree").is_empty());
    let (manager, provider) = store.manager().await;
    assert_eq!(manager.tree("a").await.expect("a tree")[0], "a");
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_deleted_tree_leaves_no_row_and_others_lose_none() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "root", 2).await;
    store.with_activities(&node, "other", 1).await;
    store.send("root", "go").await;
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    turn.starts = vec![child_start("kid", "root")];
    store.commit_one(turn.item()).await;
    store.run("insert into @activity_queue (instance, execution, event, name, input) values ('root', 0, 0, 'charge', '1')").await;
    let others = store.rows_of("other").await;
    let (root, tree) = store.tree("root").await;

    let refused = manage::delete_tree(&store.session, &store.statements, &root, &tree, false).await;
    assert_eq!(refused.expect("an answer"), None, "it runs");
    let deleted = manage::delete_tree(&store.session, &store.statements, &root, &tree, true).await;
    let expected = Deleted { instances: 2, executions: 2, events: 3, messages: 3 };
    assert_eq!(deleted.expect("an answer"), Some(expected));
    assert_eq!(store.rows_of("root").await, 1, "the standalone activity of the same name is nobody's");
    assert_eq!(store.rows_of("kid").await, 0);
    assert_eq!(store.rows_of("other").await, others);
}

#[tokio::test]
async fn a_tree_that_grew_since_it_was_read_is_left_alone() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("root").await;
    let (root, tree) = store.tree("root").await;
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    turn.starts = vec![child_start("kid", "root")];
    store.commit_one(turn.item()).await;
    let rows = store.rows_of("root").await;
    let stale = manage::delete_tree(&store.session, &store.statements, &root, &tree, true).await;
    assert_eq!(stale.expect("an answer"), None);
    assert_eq!(store.rows_of("root").await, rows);

    let (root, tree) = store.tree("root").await;
    let whole = manage::delete_tree(&store.session, &store.statements, &root, &tree, true).await;
    assert_eq!(whole.expect("an answer").map(|deleted| deleted.instances), Some(2));
    store.start("root").await;
    let again = manage::delete_tree(&store.session, &store.statements, &root, &tree[..1], true).await;
    assert_eq!(again.expect("an answer"), None, "another life of the same id is not the one that was read");
}

#[tokio::test]
async fn a_turn_and_an_activity_of_a_deleted_instance_are_fenced_and_create_nothing() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let task = store.claim_activity(&node).await;
    store.send("order", "go").await;
    let claimed = store.claim_one(&node).await;
    let (root, tree) = store.tree("order").await;
    let deleted = manage::delete_tree(&store.session, &store.statements, &root, &tree, true).await;
    assert!(deleted.expect("an answer").is_some());

    let mut turn = scheduling(&claimed, &node, 1);
    turn.starts = vec![child_start("kid", "order")];
    turn.sends = vec![event("order", "late")];
    turn.custom_status = Some(Some("late".to_owned()));
    let late = [turn.item(), result_of(&task, &node), turn.completed().item()];
    assert_eq!(
        store.commit(&late).await,
        [CommitOutcome::Fenced, CommitOutcome::Fenced, CommitOutcome::Fenced]
    );
    assert_eq!(store.rows_of("order").await, 0);
    assert_eq!(store.rows_of("kid").await, 0);
}

#[tokio::test]
async fn an_instance_made_again_takes_nothing_from_its_former_life() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let old_task = store.claim_activity(&node).await;
    store.send("order", "go").await;
    let old_turn = store.claim_one(&node).await;
    let (root, tree) = store.tree("order").await;
    manage::delete_tree(&store.session, &store.statements, &root, &tree, true).await.expect("an answer");

    store.with_activities(&node, "order", 1).await;
    assert_eq!(store.inbox("order").await, [], "the old message is gone");
    let rows = store.rows_of("order").await;
    let late = [result_of(&old_task, &node), turn_of(&old_turn, &node).completed().item()];
    assert_eq!(store.commit(&late).await, [CommitOutcome::Fenced, CommitOutcome::Fenced]);
    assert_eq!(store.rows_of("order").await, rows);

    let new_task = store.claim_activity(&node).await;
    assert_eq!(new_task.key, old_task.key, "the keys are the same, the fences are not");
    assert_eq!(store.commit_one(result_of(&old_task, &node)).await, CommitOutcome::Fenced);
    assert_eq!(store.commit_one(result_of(&new_task, &node)).await, done(true));
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn a_deletion_waits_for_the_commit_that_is_before_it_and_takes_its_rows_along() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let (manager, provider) = store.manager().await;
    let committing = store.another().await;
    committing.run("begin; select from @turn_queue where instance = 'order' for no key update").await;
    let deletion = tokio::spawn(async move { manager.delete("order", true).await });
    let pid = committing.number("select pg_backend_pid()").await;
    store
        .wait_for(&format!("exists (select from pg_stat_activity where {pid} = any (pg_blocking_pids(pid)))"))
        .await;
    committing
        .run(&format!(
            "insert into @instance (instance, name, input, parent_instance, parent_execution, parent_event) values ('kid', 'checkout', '1', 'order', 1, 2);
             insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data) values ('order', 1, 1, 1, 1, 'OrchestrationStarted', '{{}}');
             update @turn_queue set fence = {} + 1000000 where instance = 'order'; commit",
            claimed.fence.0
        ))
        .await;
    let deleted = deletion.await.expect("it ran").expect("it deletes");
    assert_eq!((deleted.instances, deleted.events), (2, 1));
    assert_eq!(store.rows_of("order").await + store.rows_of("kid").await, 0);
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn deletions_and_commits_of_the_same_instances_end_without_leftovers() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let (manager, provider) = store.manager().await;
    for round in 0..10 {
        let ids: Vec<String> = (0..8).map(|number| format!("r{round}-{number}")).collect();
        store.commit(&ids.iter().map(|id| start(id)).collect::<Vec<_>>()).await;
        let claimed = store.claim(&request(&node)).await;
        let turns: Vec<_> = claimed
            .iter()
            .map(|turn| {
                let mut turn = scheduling(turn, &node, 1);
                turn.starts = vec![child_start(&format!("{}-kid", turn.instance), &turn.instance.clone())];
                turn.item()
            })
            .collect();
        let deletions = futures_util::future::join_all(ids.iter().map(|id| manager.delete(id, true)));
        let (_, deleted) = tokio::join!(store.commit(&turns), deletions);
        for outcome in deleted {
            outcome.unwrap_or_else(|error| panic!("{}", error.full_text()));
        }
    }
    for table in ["instance", "history", "activity_queue", "inbox", "execution"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
    assert_eq!(store.number("select count(*) from @turn_queue where name is not null").await, 0);
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_refused_deletion_says_why() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("root").await;
    let mut turn = turn_of(&store.claim_one(&node).await, &node);
    turn.starts = vec![child_start("kid", "root")];
    store.commit_one(turn.completed().item()).await;
    let (manager, provider) = store.manager().await;
    for (id, kind, text) in [
        ("nobody", ErrorKind::NotFound, "Instance nobody not found"),
        (
            "kid",
            ErrorKind::Invalid,
            "Cannot delete sub-orchestration kid directly. Delete the root orchestration instead.",
        ),
        ("root", ErrorKind::StillRunning, "Instance kid is still running. Use force=true or cancel first."),
    ] {
        let error = manager.delete(id, false).await.expect_err("refused");
        assert_eq!((error.kind(), error.full_text().as_str()), (kind, text));
    }
    assert!(!ErrorKind::StillRunning.is_retryable());
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn pruning_keeps_the_newest_executions_and_what_closed_too_late() {
    let store = Store::new().await;
    store.continued("loop", 5).await;
    store.run("update @execution set finished_at = timestamptz 'epoch' + execution * interval '1 s'").await;
    let (manager, provider) = store.manager().await;
    let before = |ms| Retention { keep_last: 1, completed_before_ms: Some(ms) };
    let keep = |keep_last| Retention { keep_last, completed_before_ms: None };
    assert_eq!(manager.executions("loop").await.expect("a list"), [1, 2, 3, 4, 5, 6]);
    let pruned = manager.prune("loop", before(2_000)).await.expect("it prunes");
    assert_eq!(pruned, Pruned { executions: 1, events: 1 });
    manager.prune("loop", keep(3)).await.expect("it prunes");
    assert_eq!(manager.executions("loop").await.expect("a list"), [4, 5, 6]);
    manager.prune("loop", keep(0)).await.expect("it prunes");
    assert_eq!(manager.executions("loop").await.expect("a list"), [6]);
    assert_eq!(manager.prune("loop", keep(1)).await.expect("nothing is left"), Pruned::default());
    assert_eq!(store.number("select count(*) from @history").await, 0, "the current one has no event yet");
    let error = manager.prune("nobody", keep(1)).await.expect_err("unknown");
    assert_eq!(error.full_text(), "Instance nobody not found");
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn pruning_goes_on_when_there_is_more_than_one_statement_takes() {
    let store = Store::new().await;
    store.start("loop").await;
    let closed = limits::PRUNE_BATCH * 2 + 1;
    store.run(&format!(
        "insert into @execution (instance, execution, status) select 'loop', n, 'ContinuedAsNew' from generate_series(1, {closed}) n;
         insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data)
           select 'loop', n, e, 1, 1, 'OrchestrationStarted', '{{}}' from generate_series(1, {closed}) n, generate_series(1, 3) e;
         update @instance set execution = {closed} + 1"
    )).await;
    let (manager, provider) = store.manager().await;
    let pruned = manager.prune("loop", Retention::default()).await.expect("it prunes");
    assert_eq!(pruned, Pruned { executions: closed, events: closed * 3 });
    provider.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn roots_are_found_oldest_first_each_once() {
    let store = Store::new().await;
    store.commit(&(0..9).map(|number| start(&format!("i{number}"))).collect::<Vec<_>>()).await;
    store.run(
        "update @instance set created_at = timestamptz 'epoch' + (substr(instance, 2)::int / 3) * interval '1 ms';
         update @instance set parent_instance = 'i1', parent_execution = 1, parent_event = 2 where instance = 'i4';
         update @instance set status = 'Completed', finished_at = timestamptz 'epoch' + interval '1 s' where instance in ('i2', 'i4');
         update @instance set status = 'Failed', finished_at = timestamptz 'epoch' + interval '9 s' where instance = 'i7'",
    )
    .await;
    let all = RootFilter::default();
    let ended = RootFilter { ended: true, finished_before_ms: None };
    let early = RootFilter { ended: true, finished_before_ms: Some(5_000) };
    for (filter, expected) in [
        (all, vec!["i0", "i1", "i2", "i3", "i5", "i6", "i7", "i8"]),
        (ended, vec!["i2", "i7"]),
        (early, vec!["i2"]),
    ] {
        let (mut ids, mut place) = (Vec::new(), None);
        loop {
            let step = manage::roots(&store.session, &store.statements, filter, place.as_ref(), 2, 3)
                .await
                .expect("a step");
            place = if step.found.len() == 2 { step.found.last().cloned() } else { step.end };
            ids.extend(step.found.into_iter().map(|root| root.instance));
            if place.is_none() {
                break;
            }
        }
        assert_eq!(ids, expected);
    }
    let picked = ["i7", "i4", "i2", "nobody", "i0"].map(str::to_owned);
    let ids = manage::pick_roots(&store.session, &store.statements, &picked, ended).await.expect("ids");
    assert_eq!(ids, ["i7", "i2"]);
}

#[tokio::test]
async fn counts_and_sizes_are_those_of_the_rows() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.continued("loop", 1).await;
    store.with_activities_of_the_one_due(&node).await;
    store.start("idle").await;
    let metrics = manage::metrics(&store.session, &store.statements).await.expect("counts");
    assert_eq!(
        (
            metrics.instances,
            metrics.executions,
            metrics.running,
            metrics.completed,
            metrics.failed,
            metrics.events
        ),
        (2, 3, 2, 0, 0, 4)
    );
    let depths = manage::depths(&store.session, &store.statements).await.expect("counts");
    assert_eq!((depths.turns, depths.activities), (1, 2));
    let stats =
        manage::stats(&store.session, &store.statements, "loop").await.expect("sizes").expect("it is there");
    assert_eq!((stats.events, stats.bytes), (3, 6));
    let closed = manage::execution(&store.session, &store.statements, "loop", 1)
        .await
        .expect("one")
        .expect("it is there");
    assert_eq!(
        (closed.status.as_str(), closed.events, closed.output.as_deref()),
        ("ContinuedAsNew", 1, Some("1"))
    );
    assert!(closed.finished_at_ms >= Some(closed.started_at_ms));
    let current = manage::execution(&store.session, &store.statements, "loop", 2)
        .await
        .expect("one")
        .expect("it is there");
    assert_eq!((current.status.as_str(), current.events, current.finished_at_ms), ("Running", 3, None));
    assert!(manage::execution(&store.session, &store.statements, "loop", 3).await.expect("one").is_none());
}

impl Store {
    /// The one due turn schedules two activities.
    async fn with_activities_of_the_one_due(&self, node: &holdfast_core::store::NodeKey) {
        let claimed = self.claim_one(node).await;
        assert_eq!(self.commit_one(scheduling(&claimed, node, 2).item()).await, done(false));
    }

    /// Until test SQL holds.
    pub(crate) async fn wait_for(&self, condition: &str) {
        for _ in 0..1_000 {
            if self.holds(condition).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {condition}");
    }
}

#[tokio::test]
async fn the_estimate_stands_in_for_a_large_history() {
    let store = Store::new().await;
    let estimate = "update pg_class set reltuples = 2000000 where oid = '@history_turn'::regclass";
    store.run(estimate).await;
    let events = async || manage::metrics(&store.session, &store.statements).await.expect("counts").events;
    assert_eq!(events().await, 2_000_000, "rows of one event, where nothing else is known");
    store
        .run(
            "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data)
               select 'loop', n, 1, 2 + n % 2, 1, 'A A A', '' from generate_series(1, 1000) n",
        )
        .await;
    store.run(estimate).await;
    assert_eq!(events().await, 5_000_000);
}

#[tokio::test]
async fn carried_queue_messages_are_counted() {
    let store = Store::new().await;
    store.start("loop").await;
    let carried = r#"{"messages":[{"kind":"queue","name":"q","data":1},{"kind":"event","name":"e","data":2},{"kind":"queue","name":"q","data":3}]}"#;
    store.run(&format!("update @instance set carried = '{carried}'")).await;
    let (manager, provider) = store.manager().await;
    let stats = manager.stats("loop").await.expect("sizes").expect("it is there");
    assert_eq!((stats.events, stats.carried_messages), (0, 2));
    assert_eq!(manager.stats("nobody").await.expect("sizes"), None);
    provider.close(Duration::from_secs(5)).await;
}
