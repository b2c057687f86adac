//! The pool's options: defaults, bounds and their checks. Nothing is read from the environment here.

use std::{fmt::Display, time::Duration};

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
};

/// Most clients one process may open. Every session costs the server memory and a process, and 32 busy sessions
/// already keep more cores working than a database usually has.
pub const MAX_CLIENTS_CAP: usize = 32;

/// Most callers that may be allowed to wait: beyond this a queue only hides that the database is too slow.
const MAX_WAITING_CAP: usize = 10_000;

/// Longest time limit of an option: one day. Timers beyond it are a mistake of units.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Whether the server is reached through a transaction-mode pooler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PoolerMode {
    /// Recognised by the URL.
    #[default]
    Auto,
    /// Yes: no session state and no named prepared statements.
    Yes,
    /// No: sessions are the server's own.
    No,
}

/// How many sessions a pool may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MaxClients {
    /// [`limits::POOL_CLIENTS`] while a runtime uses the pool, [`limits::CONTROL_CLIENTS`] otherwise.
    #[default]
    ByUse,
    /// So many, whoever uses it.
    Given(usize),
}

impl MaxClients {
    /// Most sessions that there can be.
    pub fn most(self) -> usize {
        match self {
            Self::ByUse => limits::POOL_CLIENTS,
            Self::Given(most) => most,
        }
    }

    /// Most sessions while so many runtimes use the pool.
    pub(super) fn with(self, runtimes: usize) -> usize {
        match self {
            Self::ByUse if runtimes == 0 => limits::CONTROL_CLIENTS,
            _ => self.most(),
        }
    }
}

/// The pool's options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolConfig {
    /// Sessions of the pool at most; default 8, without a runtime 2; never above [`MAX_CLIENTS_CAP`].
    pub max_clients: MaxClients,
    /// Callers that may wait for a session; default 128, the next one is refused at once.
    pub max_waiting: usize,
    /// How long a caller waits for its turn; default 5 s. Opening a session then has `connect_timeout`.
    pub acquire_timeout: Duration,
    /// Client-side time limit of one call; default 15 s. A server-side limit is unsafe behind a pooler.
    pub query_timeout: Duration,
    /// A session unused for this long is closed; default 30 s.
    pub idle_timeout: Duration,
    /// Time limit of opening one session; default 5 s. `connect_timeout` in the URL wins.
    pub connect_timeout: Duration,
    /// How often a long-lived idle session is proved alive; default 60 s.
    pub keep_alive_interval: Duration,
    /// Application name of pooled sessions; default `holdfast`. `application_name` in the URL wins.
    pub application_name: String,
    /// Whether a transaction-mode pooler stands between; default recognised by the URL.
    pub pooled: PoolerMode,
    /// URL for sessions that must be the server's own (liveness, LISTEN, migrations); default derived from the URL.
    pub direct_url: Option<String>,
    /// How often an operation is tried again after a connection error; default 3.
    pub retry_attempts: u32,
    /// First delay between two tries; default 50 ms.
    pub retry_base_delay: Duration,
    /// Longest delay between two tries; default 1 s.
    pub retry_max_delay: Duration,
    /// Connection failures in a row that open the breaker; default 5.
    pub breaker_threshold: u32,
    /// How long the breaker stays open before one trial; default 2 s.
    pub breaker_open: Duration,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            max_clients: MaxClients::ByUse,
            max_waiting: 128,
            acquire_timeout: Duration::from_secs(5),
            query_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            keep_alive_interval: Duration::from_secs(60),
            application_name: "holdfast".to_owned(),
            pooled: PoolerMode::Auto,
            direct_url: None,
            retry_attempts: 3,
            retry_base_delay: Duration::from_millis(50),
            retry_max_delay: Duration::from_secs(1),
            breaker_threshold: 5,
            breaker_open: Duration::from_secs(2),
        }
    }
}

impl PoolConfig {
    /// Checks every rule; the error names the option as JavaScript knows it, the value and the rule.
    pub fn validate(&self) -> Result<()> {
        let max_clients = self.max_clients.most();
        if max_clients > MAX_CLIENTS_CAP {
            let rule = format!(
                "at most {MAX_CLIENTS_CAP}, the hard cap: scale replicas instead of widening one process"
            );
            return Err(invalid("maxClients", max_clients, rule));
        }
        within("maxClients", max_clients, MAX_CLIENTS_CAP)?;
        within("maxWaiting", self.max_waiting, MAX_WAITING_CAP)?;
        within("breakerThreshold", self.breaker_threshold as usize, u32::MAX as usize)?;
        for (name, value) in [
            ("acquireTimeoutMs", self.acquire_timeout),
            ("queryTimeoutMs", self.query_timeout),
            ("idleTimeoutMs", self.idle_timeout),
            ("connectTimeoutMs", self.connect_timeout),
            ("keepAliveIntervalMs", self.keep_alive_interval),
            ("retryBaseDelayMs", self.retry_base_delay),
            ("retryMaxDelayMs", self.retry_max_delay),
            ("breakerOpenMs", self.breaker_open),
        ] {
            if value.as_millis() == 0 || value > LONGEST {
                let rule = format!("from 1 ms to {} ms (one day)", LONGEST.as_millis());
                return Err(invalid(name, value.as_millis(), rule));
            }
        }
        if self.retry_base_delay > self.retry_max_delay {
            let rule = format!("at most retryMaxDelayMs ({})", self.retry_max_delay.as_millis());
            return Err(invalid("retryBaseDelayMs", self.retry_base_delay.as_millis(), rule));
        }
        check_application_name(&self.application_name)
    }
}

fn within(name: &str, value: usize, most: usize) -> Result<()> {
    if value == 0 || value > most {
        return Err(invalid(name, value, format!("a whole number from 1 to {most}")));
    }
    Ok(())
}

fn check_application_name(name: &str) -> Result<()> {
    // The server cuts names at 63 bytes; room is left for the suffix of sessions outside the pool.
    if name.is_empty() || name.len() > 48 || name.contains('\0') {
        let head: String = name.chars().take(80).collect();
        return Err(invalid("applicationName", format!("{head:?}"), "a text of 1 to 48 bytes without NUL"));
    }
    Ok(())
}

fn invalid(option: &str, value: impl Display, rule: impl Display) -> Error {
    Error::new(
        ErrorKind::InvalidOption,
        format!("invalid option {option}: {value} is not allowed; it must be {rule}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut PoolConfig)) -> String {
        let mut config = PoolConfig::default();
        change(&mut config);
        let error = config.validate().expect_err("must be refused");
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        error.to_string()
    }

    #[test]
    fn defaults_are_valid() {
        PoolConfig::default().validate().expect("defaults");
    }

    #[test]
    fn too_many_clients_are_refused_with_both_numbers_and_the_way_out() {
        let text = refused(|config| config.max_clients = MaxClients::Given(33));
        for part in ["maxClients", "33", "32", "scale replicas instead of widening one process"] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
    }

    #[test]
    fn errors_name_the_option() {
        assert!(refused(|config| config.max_clients = MaxClients::Given(0)).contains("maxClients"));
        assert!(refused(|config| config.max_waiting = 0).contains("maxWaiting"));
        assert!(refused(|config| config.query_timeout = Duration::ZERO).contains("queryTimeoutMs"));
        assert!(refused(|config| config.idle_timeout = Duration::MAX).contains("idleTimeoutMs"));
        assert!(
            refused(|config| config.retry_base_delay = Duration::from_secs(2)).contains("retryBaseDelayMs")
        );
        assert!(refused(|config| config.application_name = "x".repeat(49)).contains("applicationName"));
    }
}
