//! Starts, messages, timers and children: nothing is lost, nothing comes twice (C6).

use holdfast_core::store::{
    commit::{CommitItem, CommitOutcome, NewTimer, Send, Start, TurnCommit},
    turn,
};
use holdfast_replay::{MessageBody, ParentLink, Payload};

use crate::store_harness::*;

fn child_of(parent: &TurnCommit, event: i32, instance: &str) -> Start {
    Start {
        parent: Some(ParentLink {
            instance: parent.instance.clone(),
            execution: parent.execution,
            event: event_id(event),
        }),
        ..start_of(instance)
    }
}

fn cancel(instance: &str) -> Send {
    Send {
        instance: instance.to_owned(),
        dedup_key: None,
        body: MessageBody::CancelRequested { reason: "no need".to_owned() },
    }
}

#[tokio::test]
async fn a_start_twice_exists_with_the_same_input() {
    let store = Store::new().await;
    store.start("order").await;
    assert_eq!(store.commit_one(start("order")).await, CommitOutcome::Exists { same: true });
    let other = CommitItem::Start(Start { input: "{\"n\":1}".to_owned(), ..start_of("order") });
    assert_eq!(store.commit_one(other).await, CommitOutcome::Exists { same: false });
    let other = CommitItem::Start(Start { name: "other".to_owned(), ..start_of("order") });
    assert_eq!(store.commit_one(other).await, CommitOutcome::Exists { same: false });
    let batch = [start("new"), start("new"), start("order")];
    let same = CommitOutcome::Exists { same: true };
    assert_eq!(store.commit(&batch).await, [CommitOutcome::Created, same.clone(), same]);
    assert_eq!(store.number("select count(*) from @turn_queue").await, 2);
}

#[tokio::test]
async fn concurrent_starts_create_one_instance() {
    let store = Store::new().await;
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(store.another().await);
    }
    let starts = others.iter().map(|other| other.commit_one(start("order")));
    let outcomes = futures_util::future::join_all(starts).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == CommitOutcome::Created).count(), 1);
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == CommitOutcome::Exists { same: true }).count(),
        7
    );
}

#[tokio::test]
async fn a_message_to_an_unknown_id_is_kept_until_its_start() {
    let store = Store::new().await;
    let node = store.node("a").await;
    assert_eq!(store.send("early", "go").await, done(true));
    assert!(store.claim(&request(&node)).await.is_empty());
    assert_eq!(store.look(&node).await, NOTHING);
    store.start("early").await;
    assert_eq!(store.claim_one(&node).await.instance, "early");
    assert_eq!(store.inbox("early").await.len(), 1);
}

#[tokio::test]
async fn a_message_and_a_start_of_one_batch_meet() {
    let store = Store::new().await;
    let node = store.node("a").await;
    let batch = [CommitItem::Send(event("order", "go")), start("order")];
    assert_eq!(store.commit(&batch).await, [done(true), CommitOutcome::Created]);
    store.claim_one(&node).await;
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn a_message_to_an_ended_instance_says_so() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let batch = [CommitItem::Send(event("order", "late")), turn_of(&claimed, &node).completed().item()];
    assert_eq!(
        store.commit(&batch).await,
        [CommitOutcome::AlreadyEnded, done(false)],
        "it ended in this very batch"
    );
    assert_eq!(store.send("order", "late").await, CommitOutcome::AlreadyEnded);
    assert_eq!(store.commit_one(start("order")).await, CommitOutcome::Exists { same: true });
    for table in ["turn_queue", "inbox"] {
        assert_eq!(store.number(&format!("select count(*) from @{table}")).await, 0, "{table}");
    }
}

#[tokio::test]
async fn messages_of_one_sender_keep_their_order() {
    let store = Store::new().await;
    store.start("order").await;
    let batch: Vec<_> =
        (0..20).map(|number| CommitItem::Send(event("order", &format!("e{number}")))).collect();
    store.commit(&batch).await;
    let names: Vec<_> = store
        .inbox("order")
        .await
        .into_iter()
        .map(|(_, body)| match body {
            MessageBody::EventRaised { name, .. } => name,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, (0..20).map(|number| format!("e{number}")).collect::<Vec<_>>());
    assert_eq!(read_part(&store, 3, i64::MAX).await, 3);
}

#[tokio::test]
async fn messages_are_read_until_they_have_so_many_bytes_and_the_first_always_comes() {
    let store = Store::new().await;
    store.start("order").await;
    for number in 0..4 {
        let data = Payload::of(&"x".repeat(98));
        let body = MessageBody::EventRaised { name: format!("e{number}"), data };
        store.commit(&[CommitItem::Send(Send { instance: "order".to_owned(), body, dedup_key: None })]).await;
    }
    assert_eq!(read_part(&store, 10, 1).await, 1);
    assert_eq!(read_part(&store, 10, 100).await, 1);
    assert_eq!(read_part(&store, 10, 101).await, 2);
    assert_eq!(read_part(&store, 10, 1000).await, 4);
}

async fn read_part(store: &Store, limit: i64, bytes: i64) -> usize {
    let ids = ["order".to_owned()];
    turn::inbox(&store.session, &store.statements, &ids, limit, bytes).await.expect("an inbox").len()
}

#[tokio::test]
async fn a_message_wakes_a_waiting_instance_and_cuts_no_live_lease() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 0).await;
    assert!(store.claim(&request(&node)).await.is_empty());
    store.send("order", "go").await;
    let claimed = store.claim_one(&node).await;
    let due = "select extract(epoch from due_at) * 1000000 from @turn_queue";
    let before = store.number(due).await;
    store.send("order", "more").await;
    assert_eq!(store.number(due).await, before);
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = vec![store.inbox("order").await[0].0];
    assert_eq!(store.commit_one(turn.item()).await, done(true), "derived when the lease is settled");
    assert_eq!(store.claim_one(&node).await.instance, "order");
}

#[tokio::test]
async fn a_message_sent_during_a_turn_is_not_orphaned() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 0).await;
    store.run("update @turn_queue set due_at = now()").await;
    let claimed = store.claim_one(&node).await;
    let sender = store.another().await;
    sender.run("begin; select from @turn_queue for no key update").await;
    sender
        .run("insert into @inbox (instance, kind, name, data) values ('order', 'EventRaised', 'go', '1')")
        .await;
    let settling = store.another().await;
    let turn = turn_of(&claimed, &node).item();
    let settle = tokio::spawn(async move { settling.commit_one(turn).await });
    while !store
        .holds(&format!(
            "exists (select from pg_locks l join pg_stat_activity a using (pid)
              where not l.granted and a.query like '%\"{}\".turn_queue%')",
            store.schema
        ))
        .await
    {
        tokio::task::yield_now().await;
    }
    sender.run("commit").await;
    assert_eq!(settle.await.expect("no panic"), done(true));
    store.claim_one(&node).await;
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn a_turn_that_sends_to_an_instance_settled_in_the_same_batch_wakes_it() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&[start("a"), start("b"), start("c")]).await;
    let claimed = store.claim(&request(&node)).await;
    let mut turns: Vec<_> = claimed.iter().map(|claimed| turn_of(claimed, &node)).collect();
    turns.sort_by(|a, b| a.instance.cmp(&b.instance));
    turns[1].sends = vec![event("a", "from b"), event("c", "from b")];
    let batch: Vec<_> = turns.iter().map(TurnWords::item).collect();
    assert_eq!(store.commit(&batch).await, [done(true), done(false), done(true)]);
    let mut woken: Vec<_> =
        store.claim(&request(&node)).await.into_iter().map(|turn| turn.instance).collect();
    woken.sort();
    assert_eq!(woken, ["a", "c"]);
    assert_eq!((store.inbox("a").await.len(), store.inbox("c").await.len()), (1, 1));
}

#[tokio::test]
async fn a_result_and_a_message_of_one_batch_meet_the_turn_they_cross() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 1).await;
    let task = store.claim_activity(&node).await;
    store.send("order", "first").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = vec![store.inbox("order").await[0].0];
    let batch = [result_of(&task, &node), turn.item(), CommitItem::Send(event("order", "second"))];
    assert_eq!(store.commit(&batch).await, [done(true), done(true), done(true)]);
    store.claim_one(&node).await;
    assert_eq!(store.inbox("order").await.len(), 2);
}

#[tokio::test]
async fn a_timer_is_a_message_due_later() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    let at = claimed.now_ms + 3_600_123;
    turn.timers = vec![
        NewTimer { event: 2, fire_at_ms: at },
        NewTimer { event: 3, fire_at_ms: i64::MAX },
        NewTimer { event: 4, fire_at_ms: claimed.now_ms + 7_200_000 },
    ];
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    assert_eq!(
        store.number("select extract(epoch from due_at) * 1000000 from @turn_queue").await,
        at * 1_000
    );
    let due = store.look(&node).await.next.expect("a timer").as_millis();
    assert!((3_500_000..=3_600_123).contains(&due));
    assert!(store.inbox("order").await.is_empty(), "not due yet");

    store
        .run("update @inbox set due_at = now() where source = 2; update @turn_queue set due_at = now()")
        .await;
    let claimed = store.claim_one(&node).await;
    let fired = store.inbox("order").await;
    assert_eq!(fired[0].1, MessageBody::TimerFired { execution: 1, source: event_id(2) });
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = vec![fired[0].0];
    turn.cancelled_timers = vec![3];
    assert_eq!(store.commit_one(turn.item()).await, done(false));
    assert!(store.holds("(select array_agg(source) = '{4}' from @inbox)").await);
    assert!(store.holds("(select due_at < now() + interval '3 hours' from @turn_queue)").await);
}

#[tokio::test]
async fn a_clock_that_was_set_back_lets_no_message_overtake_another() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("order").await;
    let claimed = store.claim_one(&node).await;
    store
        .commit(&[CommitItem::Send(event("order", "first")), CommitItem::Send(event("order", "second"))])
        .await;
    // As it looks after a step of an hour between the two.
    store
        .run("update @inbox set due_at = now() + interval '1 hour' where id = (select min(id) from @inbox)")
        .await;
    let names: Vec<_> = store.inbox("order").await.into_iter().map(|(_, body)| body).collect();
    assert_eq!(names, [event("order", "first").body, event("order", "second").body]);
    let mut turn = turn_of(&claimed, &node);
    turn.consumed = vec![store.number("select max(id) from @inbox").await];
    assert_eq!(store.commit_one(turn.item()).await, done(true), "what is left is due");
    assert!(store.holds("(select due_at <= now() from @turn_queue)").await);
}

#[tokio::test]
async fn a_child_tells_its_parent_once() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.start("parent").await;
    let claimed = store.claim_one(&node).await;
    let mut turn = turn_of(&claimed, &node);
    turn.append("SubOrchestrationScheduled", None);
    turn.starts = vec![child_of(&turn, 2, "child")];
    assert_eq!(store.commit_one(turn.item()).await, done(false));

    let child = store.claim_one(&node).await;
    let link = child.parent.clone().expect("a parent");
    assert_eq!((link.instance.as_str(), link.execution, link.event), ("parent", 1, event_id(2)));
    let mut last = turn_of(&child, &node).completed();
    let body = MessageBody::ChildCompleted { execution: 1, source: event_id(2), result: payload("2.0") };
    last.sends = vec![Send { instance: "parent".to_owned(), body: body.clone(), dedup_key: None }];
    assert_eq!(store.commit_one(last.item()).await, done(false));
    assert_eq!(store.commit_one(last.item()).await, done(false));
    assert_eq!(store.claim_one(&node).await.instance, "parent");
    let told = store.inbox("parent").await;
    assert_eq!(told.iter().map(|(_, body)| body.clone()).collect::<Vec<_>>(), [body]);
}

#[tokio::test]
async fn a_child_start_with_a_taken_id_tells_the_parent() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&[start("taken"), start("parent")]).await;
    let claimed = store.claim(&request(&node)).await;
    let parent = claimed.iter().find(|turn| turn.instance == "parent").expect("claimed");
    let mut turn = turn_of(parent, &node);
    turn.append("SubOrchestrationScheduled", None);
    turn.append("SubOrchestrationScheduled", None);
    turn.append("OrchestrationChained", None);
    turn.starts = vec![child_of(&turn, 2, "taken"), child_of(&turn, 3, "child"), start_of("taken")];
    turn.sends = vec![cancel("taken"), cancel("child")];
    assert_eq!(store.commit_one(turn.item()).await, done(true), "the refusal is waiting");
    let told = store.inbox("parent").await;
    assert_eq!(told.len(), 1);
    match &told[0].1 {
        MessageBody::ChildFailed { execution: 1, source, error } => {
            assert_eq!(*source, event_id(2));
            assert!(error.as_str().contains("INSTANCE_EXISTS"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(store.inbox("taken").await.is_empty(), "somebody else's instance is not cancelled");
    assert_eq!(store.inbox("child").await.len(), 1);
}

#[tokio::test]
async fn an_unreadable_message_does_not_stop_the_others() {
    let store = Store::new().await;
    store.start("order").await;
    store.run("insert into @inbox (instance, kind) values ('order', 'FromTheFuture')").await;
    store.send("order", "go").await;
    assert_eq!(store.inbox("order").await.len(), 1);
}

#[tokio::test]
async fn history_of_several_executions_comes_in_order() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.commit(&[start("a"), start("b")]).await;
    let batch: Vec<_> = store
        .claim(&request(&node))
        .await
        .iter()
        .map(|claimed| scheduling(claimed, &node, 2).item())
        .collect();
    store.commit(&batch).await;
    let keys = [("b".to_owned(), 1), ("a".to_owned(), 1), ("a".to_owned(), 2)];
    let events = turn::history(&store.session, &store.statements, &keys).await.expect("histories");
    let order: Vec<_> = events
        .iter()
        .map(|(instance, event)| (instance.as_str(), event.as_ref().expect("an event").id.0))
        .collect();
    assert_eq!(order, [("b", 1), ("b", 2), ("b", 3), ("a", 1), ("a", 2), ("a", 3)]);
}
