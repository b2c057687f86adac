//! A load for tests of faults, and what must hold after it.

use holdfast_core::store::commit::Start;

use super::world::{World, sql_at};

/// Starts eight instances and returns those that were accepted.
pub(crate) async fn start_some(world: &World, prefix: &str) -> Vec<String> {
    let names: Vec<String> = (0..8).map(|i| format!("{prefix}-{i}")).collect();
    let starts = names.iter().map(|name| one_start(name, 6)).collect();
    let outcomes = world.client.start(starts).await;
    names.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(name, _)| name).collect()
}

fn one_start(instance: &str, steps: i64) -> Start {
    Start {
        instance: instance.to_owned(),
        name: "steps".to_owned(),
        version: None,
        input: steps.to_string(),
        parent: None,
        ..Start::default()
    }
}

/// Histories have no gap, every scheduled task has one completion, nothing is left in a queue.
pub(crate) async fn audit(url: &str, world: &World) {
    let number = async |sql: &str| -> i64 { sql_at(url, &world.schema, sql).await[0].get(0) };
    let gaps = "select count(*) from (select instance, execution from @history group by 1, 2 \
                having count(*) <> max(event_id) or min(event_id) <> 1) broken";
    assert_eq!(number(gaps).await, 0, "gaps in histories");
    let doubles = "select count(*) from (select 1 from @history where source is not null \
                   group by instance, execution, source having count(*) > 1) twice";
    assert_eq!(number(doubles).await, 0, "a step has two results");
    let ends = "select count(*) from (select 1 from @history where kind in \
                ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationCancelled') \
                group by instance, execution having count(*) > 1) twice";
    assert_eq!(number(ends).await, 0, "an execution ended twice");
    for queue in ["turn_queue", "activity_queue", "inbox"] {
        assert_eq!(number(&format!("select count(*) from @{queue}")).await, 0, "{queue}");
    }
}
