//! Batches of many sessions whose instances cross never deadlock, and no message is lost (C3, C6).

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use holdfast_core::store::{
    NodeKey,
    commit::{self, CommitItem, CommitOutcome},
};

use crate::store_harness::*;

const SESSIONS: u64 = 8;
const ROUNDS: usize = 25;
const INSTANCES: u64 = 12;

/// A small random sequence; the seed is printed and taken back from `HOLDFAST_TEST_SEED`.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn seed() -> u64 {
    let given = std::env::var("HOLDFAST_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("HOLDFAST_TEST_SEED={seed}");
    seed
}

/// Claims what is due and commits it in one batch with sends, starts and results that cross other sessions' rows.
async fn round(store: &Store, node: &NodeKey, chance: &mut Chance, sent: &AtomicI64) {
    let mut ask = request(node);
    ask.limit = 4;
    let mut batch = Vec::new();
    for claimed in store.claim(&ask).await {
        let mut turn = turn_of(&claimed, node);
        turn.consumed = store.inbox(&claimed.instance).await.iter().map(|(id, _)| *id).collect();
        for _ in 0..chance.below(3) {
            turn.schedule();
        }
        turn.sends.push(event(&name(chance), "from a turn"));
        turn.starts.push(start_of(&format!("child-{}", chance.below(INSTANCES))));
        batch.push(turn.item());
    }
    for task in store.claim_activities(&ask).await {
        batch.push(result_of(&task, node));
    }
    for _ in 0..3 {
        batch.push(CommitItem::Send(event(&name(chance), "from a client")));
        batch.push(start(&name(chance)));
    }
    for at in (1..batch.len()).rev() {
        batch.swap(at, usize::try_from(chance.below(at as u64 + 1)).expect("a small index"));
    }
    let outcomes = commit::commit(&store.session, &store.statements, &batch, true).await;
    let outcomes =
        outcomes.unwrap_or_else(|error| panic!("no deadlock, no time limit: {}", error.full_text()));
    for (item, outcome) in batch.iter().zip(outcomes) {
        match (item, plain(outcome)) {
            (CommitItem::Send(_) | CommitItem::Activity(_), CommitOutcome::Done { .. }) => {
                sent.fetch_add(1, Ordering::Relaxed);
            }
            (CommitItem::Turn(turn), CommitOutcome::Done { .. }) => {
                let (consumed, told) = (turn.consumed.len(), turn.sends.len());
                let change = i64::try_from(told).expect("few") - i64::try_from(consumed).expect("few");
                sent.fetch_add(change, Ordering::Relaxed);
            }
            (CommitItem::Start(_), CommitOutcome::Created | CommitOutcome::Exists { same: true }) => {}
            (item, outcome) => panic!("{item:?} came to {outcome:?}"),
        }
    }
}

fn name(chance: &mut Chance) -> String {
    format!("i{:02}", chance.below(INSTANCES))
}

#[tokio::test]
async fn concurrent_batches_with_crossing_instances_never_deadlock() {
    let store = Store::new().await;
    let seed = seed();
    let all: Vec<_> = (0..INSTANCES).map(|number| start(&format!("i{number:02}"))).collect();
    store.commit(&all).await;
    let sent = Arc::new(AtomicI64::new(0));
    let mut tasks = Vec::new();
    for number in 0..SESSIONS {
        let own = store.another().await;
        let node = own.node(&format!("n{number}")).await;
        let sent = Arc::clone(&sent);
        tasks.push(tokio::spawn(async move {
            let mut chance = Chance(seed.wrapping_add(number));
            for _ in 0..ROUNDS {
                round(&own, &node, &mut chance, &sent).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("every session ends its rounds");
    }
    assert_eq!(
        store.number("select count(*) from @inbox").await,
        sent.load(Ordering::Relaxed),
        "no message lost"
    );
    let gaps = "select count(*) from (select from @history group by instance having count(*) <> max(event_id)) as gap";
    assert_eq!(store.number(gaps).await, 0, "histories have no gap");
    let orphans = "select count(*) from @turn_queue q where q.owner is null and q.due_at > clock_timestamp()
        and exists (select from @inbox m where m.instance = q.instance)";
    assert_eq!(store.number(orphans).await, 0, "who has a message is due");
}
