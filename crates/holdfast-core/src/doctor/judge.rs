//! Judges facts. Pure: the same facts give the same findings.
//!
//! length: one rule after the other, read as a list, with their tests.

use std::time::Duration;

use super::{
    Finding,
    facts::{Server, Table, Transactions, Work},
};
use crate::{
    config::EngineConfig,
    store::{coverage::Unserved, replay_version},
};

/// The oldest version that the statements are written for.
const OLDEST_SERVER: i32 = 130_000;

/// A difference of clocks below this is of no interest: nothing but shown times depends on it.
const SKEW_MS: i64 = 5_000;

/// A transaction older than this keeps dead rows of the queues alive, which every claim then steps over.
const OLD_TRANSACTION_SECONDS: i64 = 300;

/// Work that waits this long although it is due is not just queued.
const OVERDUE_SECONDS: i64 = 60;

/// Dead rows that a table may have before vacuum is late, and how many for each live one.
const DEAD_ROWS: i64 = 10_000;

/// Ended instances without retention that are worth a word.
const MANY_ENDED: i64 = 10_000;

/// A lease should be this many round trips long: claiming, loading and committing take about ten.
const ROUND_TRIPS_PER_LEASE: u32 = 20;

/// Below this a lease ends in any pause of the process, however near the server is.
const SHORT_LEASE: Duration = Duration::from_millis(50);

/// Idle claims each second, of all nodes, above which polling is a load of its own.
const CLAIMS_PER_SECOND: f64 = 500.0;

pub(super) fn server(server: &Server, local_ms: i64, is_local: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    found.push(if server.version_number >= OLDEST_SERVER {
        Finding::ok("version", format!("PostgreSQL {}", server.version))
    } else {
        Finding::error(
            "version",
            format!("PostgreSQL {} is older than 13", server.version),
            "Upgrade the server to PostgreSQL 13 or newer.",
        )
    });
    found.push(match (server.is_encrypted, is_local) {
        (true, _) => Finding::ok("tls", "the session is encrypted"),
        (false, true) => Finding::ok("tls", "the session is not encrypted, and goes to this machine"),
        (false, false) => Finding::warning(
            "tls",
            "the session to another machine is not encrypted (or a pooler in between hides that it is)",
            "Add sslmode=verify-full to the URL, with sslrootcert when the authority is a private one.",
        ),
    });
    if server.is_read_only {
        found.push(Finding::error(
            "writable",
            "the server is read-only: a standby, or one that refuses writes",
            "Connect to the primary; with several hosts in the URL add target_session_attrs=read-write.",
        ));
    }
    let skew = server.now_ms - local_ms;
    found.push(if skew.abs() <= SKEW_MS {
        Finding::ok("clock", format!("clocks differ by {skew} ms"))
    } else {
        Finding::warning(
            "clock",
            format!("this machine's clock differs from the server's by {skew} ms"),
            "Synchronise the clocks (NTP). Leases and timers use the server's clock only; times in logs will not agree.",
        )
    });
    if !server.has_autovacuum {
        found.push(Finding::error(
            "autovacuum",
            "autovacuum is off on the server",
            "Set autovacuum = on and track_counts = on: without it the queues grow slower with every item.",
        ));
    }
    found
}

pub(super) fn rights(
    server: &Server,
    schema: &str,
    version: Option<(i32, i32)>,
    tables: &[Table],
) -> Vec<Finding> {
    let Server { role, database, .. } = server;
    if !server.has_schema {
        return vec![if server.may_create_schema {
            Finding::warning(
                "schema",
                format!("schema {schema} does not exist in database {database}"),
                "Nothing to do: the first PostgresProvider.connect() makes it.",
            )
        } else {
            Finding::error(
                "schema",
                format!("schema {schema} does not exist, and role {role} may not create it"),
                format!("Grant CREATE on database {database} to {role}, or create the schema for it."),
            )
        }];
    }
    if !server.may_use_schema {
        let text = format!("role {role} may not use schema {schema}");
        return vec![Finding::error("schema", text, format!("Grant USAGE on schema {schema} to {role}."))];
    }
    let mut found = Vec::new();
    found.push(match version {
        None => Finding::error(
            "schema",
            format!("role {role} cannot read the version of schema {schema}"),
            format!("Grant the rights on its tables to {role}."),
        ),
        Some((has, known)) if has > known => Finding::error(
            "schema",
            format!("schema {schema} has version {has}, this release knows only up to {known}"),
            "Upgrade this process, or give it a schema of its own.",
        ),
        Some((has, known)) if has < known && server.may_create_in_schema => Finding::warning(
            "schema",
            format!("schema {schema} has version {has}, this release needs {known}"),
            "Nothing to do: the first PostgresProvider.connect() brings it up to date.",
        ),
        Some((has, known)) if has < known => Finding::error(
            "schema",
            format!("schema {schema} has version {has}, this release needs {known}, and role {role} may not change it"),
            format!("Grant CREATE on schema {schema} to {role}, or let the owner connect once."),
        ),
        Some((has, _)) => Finding::ok("schema", format!("schema {schema} has version {has}")),
    });
    let without: Vec<&str> =
        tables.iter().filter(|table| !table.has_rights).map(|table| table.name.as_str()).collect();
    found.push(if without.is_empty() {
        Finding::ok("grants", format!("role {role} has the rights it needs"))
    } else {
        Finding::error(
            "grants",
            format!("role {role} may not read and write {}", without.join(", ")),
            format!("Grant SELECT, INSERT, UPDATE and DELETE on all tables of schema {schema} to {role}, and USAGE on its sequences."),
        )
    });
    found
}

pub(super) fn vacuum(tables: &[Table], transactions: &Transactions) -> Vec<Finding> {
    let mut found = Vec::new();
    for table in tables {
        if table.is_vacuum_off {
            found.push(Finding::error(
                "autovacuum",
                format!("autovacuum is off for table {}", table.name),
                format!("Reset the storage parameter autovacuum_enabled of {}.", table.name),
            ));
        }
        if table.dead > DEAD_ROWS && table.dead > 2 * table.live {
            let last = table
                .vacuumed_seconds_ago
                .map_or_else(|| "never".to_owned(), |seconds| format!("{seconds} s ago"));
            found.push(Finding::warning(
                "vacuum",
                format!("table {} has {} dead rows and {} live ones, last vacuum {last}", table.name, table.dead, table.live),
                "See whether autovacuum keeps up (autovacuum_max_workers, autovacuum_vacuum_cost_limit) and what holds it back.",
            ));
        }
    }
    if found.is_empty() {
        found.push(Finding::ok("vacuum", "the tables are vacuumed in time"));
    }
    let old = transactions.oldest_seconds.filter(|seconds| *seconds > OLD_TRANSACTION_SECONDS);
    found.push(match old {
        Some(seconds) => Finding::warning(
            "transactions",
            format!(
                "a transaction of application '{}' is open for {seconds} s and holds back vacuum",
                transactions.oldest_application.as_deref().unwrap_or("")
            ),
            "End it, and set idle_in_transaction_session_timeout for that application.",
        ),
        None => Finding::ok("transactions", "no old transaction holds back vacuum"),
    });
    if transactions.prepared > 0 || transactions.idle_slots > 0 {
        found.push(Finding::warning(
            "vacuum-horizon",
            format!(
                "{} prepared transactions and {} idle replication slots may hold back vacuum",
                transactions.prepared, transactions.idle_slots
            ),
            "Finish or roll back prepared transactions; drop slots that nobody uses.",
        ));
    }
    found
}

pub(super) fn connections(server: &Server, work: &Work, max_clients: usize) -> Finding {
    // A pool, its liveness session, and a listener.
    let each = max_clients as i64 + 2;
    let nodes = work.live_nodes.max(1);
    let room = server.max_connections - server.reserved_connections;
    let text = format!(
        "{nodes} nodes with up to {each} sessions each; the server has room for {room} and has {} now",
        server.sessions
    );
    if nodes * each > room || server.sessions * 10 > room * 9 {
        let advice = "Lower maxClients, run fewer nodes, put a pooler in between, or raise max_connections.";
        return Finding::warning("connections", text, advice);
    }
    Finding::ok("connections", text)
}

pub(super) fn load(config: &EngineConfig, nodes: i64, round_trip: Duration) -> Vec<Finding> {
    let mut found = Vec::new();
    let shortest = config.lease.orchestrator_lock_timeout.min(config.lease.worker_lock_timeout);
    let trip = format!("{:.1} ms", round_trip.as_secs_f64() * 1000.0);
    found.push(if shortest >= SHORT_LEASE.max(ROUND_TRIPS_PER_LEASE * round_trip) {
        Finding::ok("leases", format!("a round trip takes {trip}, the shortest lease is {} ms", shortest.as_millis()))
    } else {
        Finding::warning(
            "leases",
            format!("a round trip takes {trip}, and the shortest lease is only {} ms", shortest.as_millis()),
            "Raise orchestratorLockTimeoutMs and workerLockTimeoutMs: work is claimed again before it is done (see docs/tuning.md).",
        )
    });
    let polls = nodes.max(1) as f64 / config.dispatch.poll_interval.as_secs_f64().max(0.001);
    if polls > CLAIMS_PER_SECOND {
        found.push(Finding::warning(
            "polling",
            format!(
                "{nodes} nodes that poll every {} ms make up to {polls:.0} claims a second",
                config.dispatch.poll_interval.as_millis()
            ),
            "Raise dispatcherPollIntervalMs, or run fewer nodes.",
        ));
    }
    found
}

pub(super) fn work(work: &Work, unserved: &[Unserved], config: &EngineConfig) -> Vec<Finding> {
    let mut found = Vec::new();
    found.push(match (work.live_nodes, work.due_turns + work.due_activities) {
        (0, due) if due > 0 => Finding::warning(
            "nodes",
            format!("no node is alive, and {due} items wait"),
            "Start a process with a Runtime.",
        ),
        (live, _) => Finding::ok("nodes", format!("{live} nodes are alive")),
    });
    if work.stale_nodes > 0 {
        found.push(Finding::warning(
            "stale-nodes",
            format!("{} nodes stopped without saying goodbye and were not cleaned up yet", work.stale_nodes),
            "A live node cleans them up within seconds; when it does not, look at its log.",
        ));
    }
    for (what, oldest, due) in [
        ("turns", work.oldest_turn_seconds, work.due_turns),
        ("activities", work.oldest_activity_seconds, work.due_activities),
    ] {
        if let Some(seconds) = oldest.filter(|seconds| *seconds > OVERDUE_SECONDS) {
            found.push(Finding::warning(
                "overdue",
                format!("{due} {what} are due, the oldest for {seconds} s"),
                "There are too few slots, or no node that runs them: add nodes or slots, or register the handler.",
            ));
        }
    }
    found.extend(unserved.iter().map(unserved_work));
    if work.parked > 0 {
        found.push(Finding::warning(
            "parked",
            format!("{} instances are parked: they cannot go on as they are", work.parked),
            "Ask client.explain() for each, mend the cause and resume them; see docs/managing.md.",
        ));
    }
    if work.poisoned > 0 {
        found.push(Finding::warning(
            "poisoned",
            format!("{} instances failed within a day because their deliveries were used up", work.poisoned),
            "Their code kills its process or never ends: see their errors, mend it, then client.retryInstance(id) runs each again where it \
             stood, and client.retryActivity(id) a job.",
        ));
    }
    if config.retention.retention.is_none() && work.ended >= MANY_ENDED {
        found.push(Finding::warning(
            "retention",
            format!("{} or more ended instances are kept, and nothing prunes them", work.ended),
            "Set retentionMs, or prune with client.pruneExecutionsBulk() and client.deleteInstanceBulk().",
        ));
    } else {
        let text = match config.retention.retention {
            Some(age) => format!("ended instances are kept for {} ms", age.as_millis()),
            None => format!("retention is off; {} ended instances are kept", work.ended),
        };
        found.push(Finding::ok("retention", text));
    }
    found
}

fn unserved_work(unserved: &Unserved) -> Finding {
    let Unserved { kind, name, version, tag, replay_version, waiting } = unserved;
    let version = version.as_ref().map_or_else(String::new, |version| format!(" version {version}"));
    let tag = tag.as_ref().map_or_else(String::new, |tag| format!(" with tag '{tag}'"));
    let written = replay_version.map(replay_version::text);
    let history = written.map_or_else(String::new, |by| format!(" with a history of holdfast {by}"));
    Finding::warning(
        "unserved",
        format!(
            "{waiting} due items of {kind} '{name}'{version}{tag}{history} wait, and no live node can run them"
        ),
        "Start a node that registers it, or one whose workerTagFilter takes the tag, or whose supportedReplayVersions takes \
         the history.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn facts() -> Server {
        Server {
            version: "15.4".to_owned(),
            version_number: 150_004,
            max_connections: 100,
            reserved_connections: 3,
            sessions: 10,
            is_read_only: false,
            now_ms: 1_000_000,
            has_autovacuum: true,
            is_encrypted: false,
            role: "app".to_owned(),
            database: "main".to_owned(),
            has_schema: true,
            may_create_schema: false,
            may_use_schema: true,
            may_create_in_schema: false,
        }
    }

    #[track_caller]
    fn levels(findings: &[Finding], id: &str, level: Level) {
        let found = findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}"));
        assert_eq!(found.level, level, "{found:?}");
        assert_eq!(found.advice.is_empty(), level == Level::Ok, "{found:?}");
    }

    #[test]
    fn a_server_is_judged_by_version_encryption_role_and_clock() {
        let well = server(&facts(), 1_000_500, true);
        assert!(well.iter().all(|finding| finding.level == Level::Ok), "{well:?}");
        levels(
            &server(&Server { version_number: 120_009, ..facts() }, 1_000_000, true),
            "version",
            Level::Error,
        );
        levels(&server(&facts(), 1_000_000, false), "tls", Level::Warning);
        levels(&server(&Server { is_read_only: true, ..facts() }, 1_000_000, true), "writable", Level::Error);
        levels(&server(&facts(), 990_000, true), "clock", Level::Warning);
        levels(
            &server(&Server { has_autovacuum: false, ..facts() }, 1_000_000, true),
            "autovacuum",
            Level::Error,
        );
    }

    #[test]
    fn sessions_of_all_nodes_must_fit_the_server() {
        let nodes = |live_nodes| Work { live_nodes, ..Work::default() };
        assert_eq!(connections(&facts(), &nodes(9), 8).level, Level::Ok);
        assert_eq!(connections(&facts(), &nodes(10), 8).level, Level::Warning);
        assert_eq!(connections(&Server { sessions: 90, ..facts() }, &nodes(1), 8).level, Level::Warning);
    }

    #[test]
    fn what_holds_back_vacuum_is_found() {
        let table = |live, dead, is_vacuum_off| Table {
            name: "turn_queue".to_owned(),
            live,
            dead,
            vacuumed_seconds_ago: None,
            is_vacuum_off,
            has_rights: true,
        };
        let none = Transactions::default();
        levels(&vacuum(&[table(10, 9_000, false)], &none), "vacuum", Level::Ok);
        levels(&vacuum(&[table(10, 20_000, false)], &none), "vacuum", Level::Warning);
        levels(&vacuum(&[table(0, 0, true)], &none), "autovacuum", Level::Error);
        let old = Transactions { oldest_seconds: Some(3_600), ..Transactions::default() };
        levels(&vacuum(&[], &old), "transactions", Level::Warning);
        let slots = Transactions { idle_slots: 1, ..Transactions::default() };
        levels(&vacuum(&[], &slots), "vacuum-horizon", Level::Warning);
    }

    #[test]
    fn work_that_nobody_does_and_rows_that_nobody_prunes_are_found() {
        let config = EngineConfig::default();
        levels(&work(&Work { live_nodes: 1, ..Work::default() }, &[], &config), "retention", Level::Ok);
        let bad = Work {
            stale_nodes: 1,
            due_activities: 5,
            oldest_activity_seconds: Some(90),
            parked: 2,
            poisoned: 3,
            ended: 100_000,
            ..Work::default()
        };
        let found = work(&bad, &[], &config);
        for id in ["nodes", "stale-nodes", "overdue", "parked", "poisoned", "retention"] {
            levels(&found, id, Level::Warning);
        }
    }
}
