//! Tags: which tasks a node takes, and that a backlog nobody serves costs the others nothing.

use holdfast_core::store::{TagFilter, activity::Lane};

use crate::store_harness::*;

impl Store {
    /// One task for each tag; an empty text is none.
    async fn tagged(&self, tags: &[&str]) {
        for tag in tags {
            let value = if tag.is_empty() { "null".to_owned() } else { format!("'{tag}'") };
            self.run(&format!(
                "insert into @activity_queue (instance, execution, event, name, input, tag) values ('{tag}', 1, 2, '{ACTIVITY}', '1', {value})"
            ))
            .await;
        }
    }
}

fn named(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

#[tokio::test]
async fn each_filter_takes_its_tags_and_no_other() {
    let cases = [
        (TagFilter::default_only(), "", ""),
        (TagFilter::any(), "", "cpu gpu"),
        (TagFilter::tags(named(&["gpu", "tpu"])), "", "gpu"),
        (TagFilter::default_and(named(&["cpu"])), "", "cpu"),
    ];
    for (filter, plain, tagged) in cases {
        let store = Store::new().await;
        let node = store.node("a").await;
        store.tagged(&["", "cpu", "gpu"]).await;
        let due = store.look_by(&node, &filter).await;
        assert_eq!((due.activities, due.tagged), (filter.untagged, !tagged.is_empty()), "{filter:?}");
        let claimed = store.claim_tagged(&request(&node), &filter, Lane::Plain).await;
        assert_eq!(claimed[0].key.instance, plain, "{filter:?}");
        let claimed = store.claim_tagged(&request(&node), &filter, Lane::Tagged).await;
        let mut found: Vec<_> = claimed.into_iter().map(|task| task.key.instance).collect();
        found.sort();
        assert_eq!(found.join(" "), tagged, "{filter:?}");
    }
}

#[tokio::test]
async fn a_suspect_is_claimed_by_those_who_take_its_tag() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store.tagged(&["gpu"]).await;
    store.run("update @activity_queue set isolated = true").await;
    let mut alone = request(&node);
    alone.isolated = true;
    let (others, own) = (TagFilter::default_and(named(&["cpu"])), TagFilter::tags(named(&["gpu"])));
    assert!(!store.look_by(&node, &others).await.activity_suspects);
    assert!(store.claim_tagged(&alone, &others, Lane::Plain).await.is_empty());
    assert!(store.look_by(&node, &own).await.activity_suspects);
    assert_eq!(store.claim_tagged(&alone, &own, Lane::Plain).await.len(), 1);
}

#[tokio::test]
async fn a_claim_of_several_tags_takes_the_oldest_and_no_more_than_it_may() {
    let store = Store::new().await;
    let node = store.node("a").await;
    store
        .run(
            "insert into @activity_queue (instance, execution, event, name, input, tag, due_at)
             select 'i' || n, 1, 2, 'charge', '1', case n % 2 when 0 then 'cpu' else 'gpu' end, now() - n * interval '1 s'
             from generate_series(1, 20) n",
        )
        .await;
    let mut few = request(&node);
    few.limit = 5;
    let filter = TagFilter::tags(named(&["cpu", "gpu"]));
    let claimed = store.claim_tagged(&few, &filter, Lane::Tagged).await;
    let mut found: Vec<_> = claimed.into_iter().map(|task| task.key.instance).collect();
    found.sort();
    assert_eq!(found, ["i16", "i17", "i18", "i19", "i20"]);
    let rest = store.claim_tagged(&request(&node), &filter, Lane::Tagged).await;
    assert_eq!(rest.len(), 15, "what was locked and not taken is free");
}
