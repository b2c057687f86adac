//! Connects, reads the facts and has them judged. Whatever fails on the way is a finding, never an error.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    Finding,
    facts::{Server, Table, Transactions, Work},
    judge,
};
use crate::{
    config::EngineConfig,
    error::{Error, ErrorKind, Result},
    pool::{CallerClass, MaxClients, Pool, PoolConfig, PoolerMode, SessionPurpose},
    store::{Statements, coverage, doctor, migrate},
};

/// How long the direct session's own hint may take.
const HINT_LIMIT: Duration = Duration::from_secs(2);

/// From the first look at the holder to the look at the other session: the holder is busy for 200 ms.
const HOLD_LEAD: Duration = Duration::from_millis(50);

/// Rounds of looking for a pooler: one that hands out its sessions in turn shows itself after a few.
const POOLER_ROUNDS: usize = 4;

/// Round trips that are timed.
const TIMED: usize = 5;

/// Checks the deployment behind a URL. Dropping the future closes what it opened.
pub async fn examine(url: &str, schema: &str, pool: PoolConfig, runtime: &EngineConfig) -> Vec<Finding> {
    let max_clients = pool.max_clients.most();
    let expects_pooler = match Pool::expects_pooler(url, &pool) {
        Ok(expects) => expects,
        Err(error) => return vec![unreachable(&error)],
    };
    // Few sessions of its own, one try each: a full or broken server is what is looked for. No named statements: they
    // would fail behind a pooler that nobody told of.
    let own = PoolConfig {
        max_clients: MaxClients::Given(2),
        retry_attempts: 0,
        application_name: "holdfast-doctor".to_owned(),
        pooled: PoolerMode::Yes,
        ..pool
    };
    let pool = match Pool::connect(url, own).await {
        Ok(pool) => pool,
        Err(error) => return vec![unreachable(&error)],
    };
    let mut found = vec![Finding::ok("reachable", format!("{} answers", pool.stats().url))];
    let look = Look { pool: Arc::clone(&pool), statements: Statements::new(schema), schema, expects_pooler };
    if let Err(error) = look.everything(max_clients, runtime, &mut found).await {
        found.push(Finding::error(
            "check",
            error.full_text(),
            "The check could not go on: mend this and run it again.",
        ));
    }
    pool.close().await;
    found
}

struct Look<'a> {
    pool: Arc<Pool>,
    statements: Statements,
    schema: &'a str,
    expects_pooler: bool,
}

impl Look<'_> {
    async fn everything(
        &self,
        max_clients: usize,
        runtime: &EngineConfig,
        found: &mut Vec<Finding>,
    ) -> Result<()> {
        let session = self.pool.acquire(CallerClass::Ordinary).await?;
        let before = now_ms();
        let server: Server = doctor::server(&session, &self.statements).await?;
        let local_ms = before + (now_ms() - before) / 2;
        found.extend(judge::server(&server, local_ms, is_local(&self.pool.stats().url)));
        let mut round_trip = Duration::MAX;
        for _ in 0..TIMED {
            let start = Instant::now();
            doctor::server_session(&session, &self.statements, false).await?;
            round_trip = round_trip.min(start.elapsed());
        }
        let transactions: Transactions = doctor::transactions(&session, &self.statements).await?;
        let has = server.has_schema && server.may_use_schema;
        let version = match has {
            true => migrate::version(&session, &self.statements).await.ok(),
            false => None,
        };
        let known = migrate::known_version();
        let tables: Vec<Table> =
            if has { doctor::tables(&session, &self.statements).await? } else { Vec::new() };
        found.extend(judge::rights(&server, self.schema, version.map(|version| (version, known)), &tables));
        let can_read = version == Some(known) && tables.iter().all(|table| table.has_rights);
        let work: Work =
            if can_read { doctor::work(&session, &self.statements).await? } else { Work::default() };
        let unserved =
            if can_read { coverage::unserved(&session, &self.statements).await? } else { Vec::new() };
        drop(session);
        found.push(self.pooler().await?);
        found.push(self.direct().await);
        found.push(judge::connections(&server, &work, max_clients));
        found.extend(judge::load(runtime, work.live_nodes, round_trip));
        if can_read {
            found.extend(judge::vacuum(&tables, &transactions));
            found.extend(judge::work(&work, &unserved, runtime));
        }
        Ok(())
    }

    /// Whether a transaction pooler is in between: while one session is busy, does the other still have its own server
    /// session?
    async fn pooler(&self) -> Result<Finding> {
        let holder = self.pool.acquire(CallerClass::Ordinary).await?;
        let other = self.pool.acquire(CallerClass::Ordinary).await?;
        let mut is_pooled = false;
        for _ in 0..POOLER_ROUNDS {
            let mine = doctor::server_session(&other, &self.statements, false).await?;
            let busy = doctor::server_session(&holder, &self.statements, true);
            let later = async {
                tokio::time::sleep(HOLD_LEAD).await;
                doctor::server_session(&other, &self.statements, false).await
            };
            let (held, now) = tokio::join!(busy, later);
            is_pooled |= now? != mine || held? == mine;
        }
        Ok(match (is_pooled, self.expects_pooler) {
            (false, _) => Finding::ok("pooler", "sessions are the server's own"),
            (true, true) => Finding::ok("pooler", "a transaction pooler is in between, and known to be"),
            (true, false) => Finding::warning(
                "pooler",
                "a transaction pooler is in between, and the options do not say so",
                "Set pooled: true (HOLDFAST_POOL_POOLED=true) and directUrl (HOLDFAST_DIRECT_URL) to the server itself.",
            ),
        })
    }

    /// Whether a session that is the server's own can be had, and hears hints.
    async fn direct(&self) -> Finding {
        let advice = "Set directUrl (HOLDFAST_DIRECT_URL) to the server itself, past any pooler.";
        match self.hears_itself().await {
            Ok(true) => Finding::ok("direct", "a direct session for LISTEN and heartbeats can be had"),
            Ok(false) => Finding::warning(
                "direct",
                "the direct session hears no hints: a transaction pooler is in between",
                format!("{advice} Without it work of other processes is found by polling."),
            ),
            Err(error) => {
                Finding::error("direct", format!("no direct session: {}", error.full_text()), advice)
            }
        }
    }

    async fn hears_itself(&self) -> Result<bool> {
        let session = self.pool.open_session(SessionPurpose::Listener).await?;
        let Some(mut heard) = session.take_notifications() else { return Ok(false) };
        doctor::listen(&session, &self.statements).await?;
        let sender = self.pool.acquire(CallerClass::Ordinary).await?;
        doctor::notify(&sender, &self.statements).await?;
        let hint = tokio::time::timeout(HINT_LIMIT, heard.recv()).await;
        session.close().await;
        Ok(matches!(hint, Ok(Some(_))))
    }
}

/// Why the server cannot be used at all.
fn unreachable(error: &Error) -> Finding {
    let advice = match error.kind() {
        ErrorKind::Url | ErrorKind::DirectUrl => "Correct the URL.",
        ErrorKind::InvalidOption => "Correct the option.",
        ErrorKind::Capacity => {
            "The server is full: lower maxClients, run fewer nodes, or raise max_connections."
        }
        ErrorKind::Query => "Check user, password and database name, and pg_hba.conf on the server.",
        _ => "Check host, port, network and firewall, and that the server runs.",
    };
    Finding::error("reachable", error.full_text(), advice)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Whether every host of a URL without credentials is this machine.
fn is_local(url: &str) -> bool {
    let hosts = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or("");
    hosts.split(',').all(|host| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        // A socket's folder stands there as a URL has it.
        let is_socket = name.starts_with("%2F");
        is_socket || matches!(name.trim_matches(['[', ']']), "localhost" | "127.0.0.1" | "::1" | "")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_and_loopback_are_this_machine() {
        for url in [
            "postgresql://%2Frun%2Fpg:5432/d",
            "postgresql://localhost:5432/d",
            "postgresql://[::1]:5432,127.0.0.1:5433/d",
        ] {
            assert!(is_local(url), "{url}");
        }
        assert!(!is_local("postgresql://%2Frun%2Fpg:5432,db.example.com:5432/d"));
    }
}
