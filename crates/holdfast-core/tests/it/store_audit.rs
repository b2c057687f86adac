//! The audit finds what no statement of the engine writes.

use holdfast_core::store::manage;

use crate::store_harness::*;

#[tokio::test]
async fn a_row_that_the_engine_does_not_write_is_found() {
    let store = Store::new().await;
    store.node("n1").await;
    for instance in ["status", "end", "parked", "parent", "lease", "deliveries", "sound"] {
        store.start(instance).await;
    }
    store.run("insert into @activity_queue (instance, execution, event, name, input) values ('sound', 1, 2, 'charge', '1'), ('sound', 1, 3, 'charge', '1')").await;
    for (change, what) in [
        (
            "update @instance set status = 'Lost' where instance = 'status'",
            "an instance has an unknown status",
        ),
        (
            "update @instance set finished_at = now() where instance = 'end'",
            "an instance has ended without an end, or has an end and goes on",
        ),
        (
            "update @instance set parked_at = now() where instance = 'parked'",
            "an instance is parked without a reason, or after its end",
        ),
        ("update @instance set parent_event = 2 where instance = 'parent'", "an instance has half a parent"),
        ("update @turn_queue set owner = 'n1' where instance = 'lease'", "a turn row has half a lease"),
        (
            "update @turn_queue set deliveries = -1 where instance = 'deliveries'",
            "a turn row has a number of deliveries below 0",
        ),
        (
            "insert into @inbox (instance, kind, execution) values ('sound', 'ActivityCompleted', 1)",
            "a message has half a source",
        ),
        ("update @activity_queue set owner = 'n1' where event = 2", "an activity has half a lease"),
        (
            "update @activity_queue set deliveries = -1 where event = 3",
            "an activity has a number of deliveries below 0",
        ),
        (
            "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data) values ('sound', 1, 0, 1, 0, 'x', '{}')",
            "an event has a number below 1",
        ),
        (
            "insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data) values ('sound', 1, 1, 1, 0, 'x y', '{}')",
            "a row of history has not as many kinds as events",
        ),
        (
            "update @history_turn set events = 2 where event_id = 1",
            "a row of history has not as many texts as events",
        ),
    ] {
        let found = || async {
            let found = manage::audit(&store.session, &store.statements).await.expect("an audit");
            found.iter().filter(|finding| finding.what == what).count()
        };
        assert_eq!(found().await, 0, "{what}");
        store.run(change).await;
        assert_eq!(found().await, 1, "{what}");
    }
}
