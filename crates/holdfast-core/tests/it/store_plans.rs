//! Plans at 100 000 rows: every hot statement finds its rows by index, and a claim reads only what it takes.

use std::fmt::Write as _;

use holdfast_core::pool::Statement;

use crate::store_harness::*;

/// Read whole on purpose: one row for each runtime, migration, chore.
const SMALL_TABLES: [&str; 3] = [" on node", " on migration", " on chore"];

/// Statements that read their whole index: leases of owners that are gone can be anywhere among the owned rows.
const SWEEPS: [&str; 3] = ["turn/recover", "activity/recover", "session/recover"];

/// Statements that count whole tables because that is what they are asked for.
const COUNTS: [&str; 3] = ["manage/read_metrics", "audit/list_malformed", "audit/list_orphans"];

/// Where a claim looks.
#[derive(Debug, Clone, Copy)]
enum Look {
    Whole,
    FromMark,
    Suspects,
}

impl Store {
    /// 100 000 instances of which each waits for a message, with an activity, a timer and an event.
    async fn fill(&self) {
        self.run(
            "insert into @instance (instance, name, input) select 'i' || n, 'checkout', '1' from generate_series(1, 100000) n;
             update @instance set parent_instance = 'i' || (substr(instance, 2)::int % 100), parent_execution = 1, parent_event = 2
               where substr(instance, 2)::int > 50000;
             insert into @execution (instance, execution, status)
               select 'i' || n, 1, 'ContinuedAsNew' from generate_series(1, 100000) n;
             insert into @turn_queue (instance, name, version, due_at)
               select 'i' || n, 'checkout', '1.0.0', now() + n * interval '1 s' from generate_series(3600, 103599) n;
             insert into @activity_queue (instance, execution, event, name, input, due_at)
               select 'i' || n, 1, 2, 'charge', '1', now() + n * interval '1 s' from generate_series(3600, 103599) n;
             insert into @ended_activity (id, name, input, status, fence, attempt, deliveries, retention_ms, scheduled_at, keep_until)
               select 'i' || n, 'charge', '1', 'Completed', 1, 1, 1, 1, now(), now() + n * interval '1 s' from generate_series(1, 100000) n;
             insert into @inbox (instance, kind, execution, source, due_at)
               select 'i' || n, 'TimerFired', 1, 3, now() + n * interval '1 s' from generate_series(3600, 103599) n;
             insert into @history_turn (instance, execution, event_id, events, at_ms, kinds, data)
               select 'i' || n, 1, 1, 1, 1, 'OrchestrationStarted', '{}' from generate_series(1, 100000) n",
        )
        .await;
    }

    /// 100 000 turns and activities of one name and tag that are due for a minute.
    async fn backlog(&self, name: &str, tag: &str) {
        self.run(&format!(
            "insert into @turn_queue (instance, name, version, due_at)
               select 'i' || n, '{name}', '1.0.0', now() - interval '1 min' from generate_series(1, 100000) n;
             insert into @activity_queue (instance, execution, event, name, input, due_at, tag)
               select 'i' || n, 1, 2, '{name}', '1', now() - interval '1 min', {tag} from generate_series(1, 100000) n"
        ))
        .await;
    }

    /// The plan of a statement as a session that has prepared it would use it.
    async fn plan(&self, statement: &Statement) -> String {
        let name = statement.name.replace('/', "_");
        let types: Vec<&str> = statement.types.iter().map(|kind| kind.name()).collect();
        let (types, nulls) = if types.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("({})", types.join(", ")), format!("({})", vec!["null"; types.len()].join(", ")))
        };
        self.session
            .batch(&format!("prepare {name}{types} as {}", statement.text))
            .await
            .expect("it prepares");
        self.session
            .batch(self.statements.settings().replace(", true)", ", false)").as_str())
            .await
            .expect("settings");
        let plan = self.lines(&format!("explain execute {name}{nulls}")).await;
        self.session.batch(&format!("reset all; deallocate {name}")).await.expect("settings");
        plan
    }

    async fn lines(&self, sql: &str) -> String {
        let mut text = String::new();
        for row in self.rows(sql).await {
            writeln!(text, "{}", row.get::<_, String>(0)).expect("writing to a string");
        }
        text
    }

    /// Pages that a claim reads, and rows it takes.
    async fn claim_cost(&self, family: &str, epoch: i64, look: Look) -> (i64, i64, String) {
        let verb = if matches!(look, Look::Suspects) { "claim_suspects" } else { "claim" };
        let names = match family {
            "turn" => "array['checkout'], array['checkout' || chr(64) || '1.0.0']",
            _ => "array['charge']",
        };
        let back = match look {
            Look::Whole => ", 3000000000000",
            Look::FromMark => ", 2000",
            Look::Suspects if family == "activity" => ", true, true, '{}', false",
            Look::Suspects => "",
        };
        let replay = if family == "turn" { ", 0, 1000000" } else { "" };
        let args = format!("'a', {epoch}, {names}, 32, false, 60000, 1000, 60000, 10{back}{replay}");
        self.cost(&format!("{family}/{verb}"), &args).await
    }

    /// Pages that a statement reads, and rows that it returns.
    async fn cost(&self, name: &str, args: &str) -> (i64, i64, String) {
        let all = self.statements.all();
        let statement = all.iter().find(|statement| statement.name == name).expect("a statement");
        let types: Vec<&str> = statement.types.iter().map(|kind| kind.name()).collect();
        let text = format!("prepare measured({}) as {}", types.join(", "), statement.text);
        self.session.batch(&text).await.expect("it prepares");
        let settings = self.statements.settings().replace(", true)", ", false)");
        self.session.batch(&settings).await.expect("settings");
        let plan =
            self.lines(&format!("explain (analyze, buffers, timing off) execute measured({args})")).await;
        self.session.batch("reset all; deallocate measured").await.expect("settings");
        let whole = plan.lines().find(|line| line.contains("Buffers:")).expect("the first node's pages");
        let pages = first_number(whole, "shared hit=") + first_number(whole, "read=");
        (pages, first_number(&plan, "actual rows="), plan)
    }
}

/// The number behind the first mark; 0 when it is not there.
fn first_number(text: &str, mark: &str) -> i64 {
    let Some((_, rest)) = text.split_once(mark) else { return 0 };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// What is wrong with a plan: a table read whole, or an index read whole.
fn faults(plan: &str) -> Vec<String> {
    let lines: Vec<&str> = plan.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if SMALL_TABLES.iter().any(|table| line.contains(table)) {
            continue;
        }
        if line.contains("Seq Scan") || line.contains("Bitmap Heap Scan") {
            found.push((*line).to_owned());
        }
        let bounded = lines.get(at + 1).is_some_and(|next| next.contains("Index Cond"));
        if (line.contains("Index Scan") || line.contains("Index Only Scan")) && !bounded {
            found.push(format!("{line} without a bound"));
        }
    }
    found
}

async fn check_all(store: &Store, when: &str) {
    for statement in store.statements.all().into_iter().chain(store.statements.all_for_one()) {
        if SWEEPS.contains(&statement.name)
            || COUNTS.contains(&statement.name)
            || statement.name.starts_with("migrate/")
            || statement.name.starts_with("doctor/")
        {
            continue;
        }
        let plan = store.plan(statement).await;
        assert_eq!(faults(&plan), [""; 0], "{} {when}:\n{plan}", statement.name);
    }
}

#[tokio::test]
async fn every_statement_uses_an_index_on_empty_and_on_large_tables() {
    let store = Store::new().await;
    check_all(&store, "on tables that are empty").await;
    store.fill().await;
    check_all(&store, "on tables without statistics").await;
    store
        .run("analyze @instance, @execution, @turn_queue, @activity_queue, @ended_activity, @inbox, @history_turn")
        .await;
    check_all(&store, "on large tables").await;
}

#[tokio::test]
async fn an_empty_claim_reads_a_bounded_number_of_pages() {
    let store = Store::new().await;
    store.fill().await;
    let node = store.node("a").await;
    for analyzed in [false, true] {
        if analyzed {
            store.run("analyze @turn_queue, @activity_queue").await;
        }
        for family in ["turn", "activity"] {
            for look in [Look::Whole, Look::Suspects] {
                let (pages, rows, plan) = store.claim_cost(family, node.epoch, look).await;
                assert_eq!(rows, 0);
                assert!(pages < 30, "{family} {look:?} {analyzed}: {pages} pages\n{plan}");
            }
        }
    }
}

#[tokio::test]
async fn a_claim_reads_only_what_it_takes_from_a_backlog() {
    let store = Store::new().await;
    store.fill().await;
    store.run("update @turn_queue set due_at = due_at - interval '1 year'; update @activity_queue set due_at = now() - interval '1 s'").await;
    store.run("vacuum analyze @turn_queue").await;
    store.run("vacuum analyze @activity_queue").await;
    let node = store.node("a").await;
    for family in ["turn", "activity"] {
        let (pages, rows, plan) = store.claim_cost(family, node.epoch, Look::Suspects).await;
        assert_eq!(rows, 0);
        assert!(pages < 30, "no suspects among {family} rows: {pages} pages\n{plan}");
        let (pages, rows, plan) = store.claim_cost(family, node.epoch, Look::Whole).await;
        assert_eq!(rows, 32, "{family}");
        assert!(pages < 32 * 40, "32 {family} rows: {pages} pages\n{plan}");
    }
}

#[tokio::test]
async fn a_claim_behind_an_old_snapshot_starts_at_its_mark() {
    let store = Store::new().await;
    store.fill().await;
    let node = store.node("a").await;
    store.run("update @turn_queue set due_at = now() - interval '1 min'").await;
    let reader = store.another().await;
    reader.run("begin isolation level repeatable read; select from @turn_queue limit 1").await;
    store.run("update @turn_queue set due_at = now() + interval '1 hour'").await;
    let (dead, rows, _) = store.claim_cost("turn", node.epoch, Look::Whole).await;
    assert_eq!(rows, 0);
    let (pages, rows, plan) = store.claim_cost("turn", node.epoch, Look::FromMark).await;
    assert_eq!(rows, 0);
    assert!(pages < 30 && dead > 100, "{dead} pages from the beginning, {pages} from the mark\n{plan}");
    reader.run("commit").await;
}

#[tokio::test]
async fn a_look_at_a_large_queue_reads_a_bounded_number_of_pages() {
    let store = Store::new().await;
    store.fill().await;
    let node = store.node("a").await;
    let args = |back: &str| {
        let epoch = node.epoch;
        format!(
            "'a', {epoch}, array['checkout'], array['checkout' || chr(64) || '1.0.0'], array['charge'], true, false, '{{gpu,cpu}}', {back}, {back}, {back}, {back}, true, 0, 1000000"
        )
    };
    for analyzed in [false, true] {
        if analyzed {
            store.run("analyze @turn_queue, @activity_queue").await;
        }
        let (pages, _, plan) = store.cost("dispatch/look", &args("3000000000000")).await;
        assert!(pages < 150, "nothing due, analyzed {analyzed}: {pages} pages\n{plan}");
    }
    let store = Store::new().await;
    store.backlog("foreign", "null").await;
    let (pages, _, plan) = store.cost("dispatch/look", &args("2000")).await;
    assert!(pages < 60, "a foreign backlog below the mark: {pages} pages\n{plan}");
}

#[tokio::test]
async fn a_tagged_backlog_that_nobody_serves_is_not_read_by_the_others() {
    let store = Store::new().await;
    store.backlog("charge", "'gpu'").await;
    let node = store.node("a").await;
    let epoch = node.epoch;
    for analyzed in [false, true] {
        if analyzed {
            store.run("analyze @activity_queue").await;
        }
        let (pages, rows, plan) = store.claim_cost("activity", epoch, Look::Whole).await;
        assert_eq!(rows, 0);
        assert!(pages < 30, "without tags: {pages} pages\n{plan}");
        let terms =
            format!("'a', {epoch}, array['charge'], 32, false, 60000, 1000, 60000, 10, 3000000000000");
        let (pages, rows, plan) =
            store.cost("activity/claim_tagged", &format!("{terms}, false, '{{cpu,tpu}}'")).await;
        assert_eq!(rows, 0);
        assert!(pages < 30, "of other tags: {pages} pages\n{plan}");
        let look = format!(
            "'a', {epoch}, '{{}}', '{{}}', array['charge'], true, false, '{{cpu,tpu}}', 3000000000000, 3000000000000, 3000000000000, 3000000000000, true, 0, 1000000"
        );
        let (pages, _, plan) = store.cost("dispatch/look", &look).await;
        assert!(pages < 60, "a look for other tags: {pages} pages\n{plan}");
    }
    for tags in ["false, '{gpu,cpu}'", "true, '{}'"] {
        let terms =
            format!("'a', {epoch}, array['charge'], 32, false, 60000, 1000, 60000, 10, 3000000000000");
        let (pages, rows, plan) = store.cost("activity/claim_tagged", &format!("{terms}, {tags}")).await;
        assert_eq!(rows, 32);
        assert!(pages < 32 * 60, "{tags}: {pages} pages\n{plan}");
    }
}

#[tokio::test]
async fn a_backlog_of_sessions_that_nobody_serves_is_not_read_by_the_others() {
    let store = Store::new().await;
    store
        .run(
            "insert into @activity_queue (instance, execution, event, name, input, due_at, session)
               select 'i' || n, 1, 2, 'charge', '1', now() - interval '1 min', 's' || n % 1000 from generate_series(1, 100000) n;
             insert into @session (session, owner, leased_until, used_at)
               select 's' || n, 'other', now() + interval '1 hour', now() from generate_series(0, 999) n",
        )
        .await;
    let node = store.node("a").await;
    let epoch = node.epoch;
    for analyzed in [false, true] {
        if analyzed {
            store.run("analyze @activity_queue, @session").await;
        }
        for look in [Look::Whole, Look::Suspects] {
            let (pages, rows, plan) = store.claim_cost("activity", epoch, look).await;
            assert_eq!(rows, 0);
            assert!(pages < 30, "of no session: {pages} pages\n{plan}");
        }
        let terms = format!("'a', {epoch}, array['charge'], 32, false, 60000, 1000, 60000, 10");
        let (pages, rows, plan) = store
            .cost(
                "activity/claim_in_session",
                &format!("{terms}, 2000, true, false, '{{}}', 10, 30000, false, false"),
            )
            .await;
        assert_eq!(rows, 0);
        assert!(pages < 40, "from the mark: {pages} pages\n{plan}");
        let (_, rows, plan) = store
            .cost(
                "activity/claim_in_session",
                &format!("{terms}, 3000000000000, true, false, '{{}}', 10, 30000, false, false"),
            )
            .await;
        assert_eq!((rows, faults(&plan).join("\n")), (0, String::new()), "{plan}");
        let look = format!(
            "'a', {epoch}, '{{}}', '{{}}', array['charge'], true, false, '{{}}', 2000, 2000, 2000, 2000, true, 0, 1000000"
        );
        let (pages, _, plan) = store.cost("dispatch/look", &look).await;
        assert!(pages < 60, "a look: {pages} pages\n{plan}");
    }
    store.run("update @session set leased_until = now() - interval '1 s'").await;
    let terms = format!("'a', {epoch}, array['charge'], 32, false, 60000, 1000, 60000, 10");
    let (pages, rows, plan) = store
        .cost(
            "activity/claim_in_session",
            &format!("{terms}, 3000000000000, true, false, '{{}}', 10, 30000, false, false"),
        )
        .await;
    assert!(rows > 0 && pages < 4_000, "{rows} rows: {pages} pages\n{plan}");
}
