//! How a history lies in its table, and that everybody reads from it what was appended (I1, I15).

use holdfast_core::{
    error::ErrorKind,
    limits,
    store::{commit, instance, manage, turn},
};
use holdfast_replay::event::StoredEvent;

use crate::store_harness::*;

impl Store {
    /// Commits a turn that appends events with these texts; gives them back.
    async fn appended(&self, texts: &[String]) -> Vec<StoredEvent> {
        let node = self.node("a").await;
        self.start("order").await;
        let mut turn = turn_of(&self.claim_one(&node).await, &node);
        for (text, number) in texts.iter().zip(0..) {
            turn.append("ActivityCompleted", (number % 2 == 1).then_some(number));
            turn.events.last_mut().expect("just appended").data.clone_from(text);
        }
        assert_eq!(self.commit_one(turn.item()).await, done(false));
        turn.events
    }

    /// What the view shows.
    async fn viewed(&self) -> Vec<StoredEvent> {
        let event = |row: &holdfast_core::pool::Row| StoredEvent {
            id: event_id(row.get("event_id")),
            kind: row.get("kind"),
            source: row.get::<_, Option<i32>>("source").map(event_id),
            at_ms: row.get("at_ms"),
            data: row.get("data"),
        };
        let rows = "select event_id, kind, source, at_ms, data from @history where instance = 'order' and execution = 1";
        self.rows(&format!("{rows} order by event_id")).await.iter().map(event).collect()
    }

    /// All who read a history read these events.
    async fn all_read(&self, events: &[StoredEvent]) {
        let ids = |events: &[StoredEvent]| events.iter().map(|event| event.id.0).collect::<Vec<_>>();
        let check = |who: &str, read: &[StoredEvent]| {
            assert_eq!(ids(read), ids(events), "{who}");
            assert!(read == events, "{who} reads other events");
        };
        let keys = [("order".to_owned(), 1)];
        let turns = turn::history(&self.session, &self.statements, &keys).await;
        let turns = turns.expect("a history").into_iter();
        check("a turn", &turns.map(|(_, event)| event.expect("an event")).collect::<Vec<_>>());
        let client = instance::read_history(&self.session, &self.statements, "order", 1);
        check("a client", &client.await.expect("a history"));
        check("the view", &self.viewed().await);
    }
}

#[tokio::test]
async fn texts_come_back_byte_for_byte() {
    let store = Store::new().await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let texts = [
        r#"{"result":"\u0000 \u001e \ud800 ä\"\\","b":1,"a":2,"a":3}"#.to_owned(),
        "{\"result\":1e400, \t\"n\":1.000 }".to_owned(),
        deep(10_000),
        deep(1_000_000),
        format!("\"{}\"", "x".repeat(10 << 20)),
        "null".to_owned(),
        "not \u{1e} JSON @ 1, no engine writes it".to_owned(),
        "{}".to_owned(),
    ];
    let events = store.appended(&texts).await;
    store.all_read(&events).await;
    assert_eq!(store.number("select count(*) from @history_turn").await, 7, "the first two lie together");
}

#[tokio::test]
async fn many_events_of_a_turn_lie_in_rows_of_bounded_size() {
    let store = Store::new().await;
    let texts: Vec<_> = (0..1000).map(|number| format!("{{\"result\":{number}}}")).collect();
    let events = store.appended(&texts).await;
    store.all_read(&events).await;
    let longest =
        store.number("select max(octet_length(data) + octet_length(kinds)) from @history_turn").await;
    assert!(longest > 1000 && longest <= limits::HISTORY_ROW_BYTES as i64, "{longest} bytes");
    assert!(store.number("select max(pg_column_size(t.*)) from @history_turn t").await < 2000);
    assert!(store.number("select count(*) from @history_turn").await < 40);
    let stats = manage::stats(&store.session, &store.statements, "order");
    let stats = stats.await.expect("sizes").expect("it is there");
    let bytes: usize = events.iter().map(|event| event.data.len()).sum();
    assert_eq!((stats.events, stats.bytes), (1001, bytes as i64));
}

#[tokio::test]
async fn two_turns_never_append_behind_the_same_length() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.with_activities(&node, "order", 2).await;
    store.send("order", "go").await;
    let claimed = store.claim_one(&node).await;
    assert_eq!(claimed.history_len, 3);
    let mut stale = scheduling(&claimed, &node, 3);
    for event in &mut stale.events {
        event.id.0 -= 3;
    }
    let error = commit::commit(&store.session, &store.statements, &[stale.item()], true).await;
    let error = error.expect_err("the key is taken");
    assert_eq!(error.kind(), ErrorKind::Query);
    assert!(error.full_text().contains("history_turn_pkey"), "{}", error.full_text());
    assert_eq!(store.viewed().await.len(), 3);
}

#[tokio::test]
async fn a_broken_row_is_an_error_of_its_instance_only() {
    let store = Store::new().await;
    let events = store.appended(&["{}".to_owned(), "{}".to_owned()]).await;
    store
        .run(
            "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data)
             values ('broken', 1, 1, 2, 1, 'TimerFired TimerFired', '{}')",
        )
        .await;
    let keys = [("broken".to_owned(), 1), ("order".to_owned(), 1)];
    let read = turn::history(&store.session, &store.statements, &keys).await.expect("histories");
    let [(broken, error), rest @ ..] = &read[..] else { panic!("rows of both") };
    assert_eq!(broken, "broken");
    assert_eq!(error.as_ref().expect_err("it is broken").kind(), ErrorKind::Corrupt);
    let rest: Vec<_> = rest.iter().map(|(_, event)| event.as_ref().expect("an event")).collect();
    assert_eq!(rest, events.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn the_view_finds_an_execution_by_the_key_of_the_table() {
    let store = Store::new().await;
    let filled = "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data)
        select 'i' || n, 1, 1, 1, 1, 'TimerFired', '{}' from generate_series(1, 10000) n; analyze @history_turn";
    store.run(filled).await;
    let sql = "explain select * from @history h where h.instance = 'i7' and h.execution = 1 and h.kind = 'TimerFired'";
    let plan: String = store.rows(sql).await.iter().map(|row| row.get::<_, String>(0) + "\n").collect();
    let condition = plan.lines().find(|line| line.contains("Index Cond")).unwrap_or_else(|| panic!("{plan}"));
    assert!(condition.contains("instance = 'i7'") && condition.contains("execution = 1"), "{plan}");
}

#[tokio::test]
async fn the_audit_finds_what_no_sound_history_has() {
    let store = Store::new().await;
    let node = store.node("a").await;
    for id in ["sound", "gap", "answered twice", "ended twice", "forgotten", "cancelled", "local", "late"] {
        store.start(id).await;
        store.commit_one(scheduling(&store.claim_one(&node).await, &node, 2).item()).await;
    }
    let write = async |id: &str, event_id: i32, kinds: &str, data: &str| {
        let events = kinds.split(' ').count();
        let kinds = kinds.replace('@', "' || chr(64) || '");
        let insert =
            "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data) values";
        store.run(&format!("{insert} ('{id}', 1, {event_id}, {events}, 1, '{kinds}', E'{data}')")).await;
        let len = event_id - 1 + i32::try_from(events).expect("few");
        store.run(&format!("update @turn_queue set history_len = {len} where instance = '{id}'")).await;
    };
    let audit = async || -> Vec<String> {
        let found = manage::audit(&store.session, &store.statements).await.expect("an audit");
        found.iter().map(|found| format!("{}: {} {:?}", found.instance, found.what, found.event)).collect()
    };
    assert_eq!(audit().await, [""; 0]);
    write("answered twice", 4, "ActivityCompleted@2 ActivityFailed@2", "{}\\x1e{}").await;
    write("ended twice", 4, "OrchestrationFailed", "{}").await;
    write(
        "ended twice",
        5,
        "OrchestrationRetried OrchestrationFailed OrchestrationFailed",
        "{}\\x1e{}\\x1e{}",
    )
    .await;
    write("gap", 5, "ExternalEvent", "{}").await;
    write("gap", 6, "ExternalEvent", "{}").await;
    write("forgotten", 4, "ActivityScheduled TimerCreated TimerFired@5", "{}\\x1e{}\\x1e{}").await;
    write("cancelled", 4, "TimerCreated OrchestrationCancelRequested TimerCreated", "{}\\x1e{}\\x1e{}").await;
    write("local", 4, "ActivityScheduled", r#"{"local":true}"#).await;
    let late = r#"{}\x1e{"reason":"orchestration_terminal_failed"}"#;
    write("late", 4, "ActivityScheduled ActivityCancelRequested@4", late).await;
    assert_eq!(
        audit().await,
        [
            "answered twice: a step has two results Some(2)",
            "cancelled: nobody works on a step that is waited for Some(6)",
            "ended twice: an execution has two ends Some(7)",
            "forgotten: nobody works on a step that is waited for Some(4)",
            "gap: a history has a gap Some(6)",
            "gap: a history is not as long as its turn row says Some(6)",
            "late: nobody works on a step that is waited for Some(4)",
        ]
    );
}
