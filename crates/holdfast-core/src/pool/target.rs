//! What a connection URL means: every parameter that libpq knows is honoured or refused by name, none is ignored.

use std::time::Duration;

use tokio_postgres::config::{ChannelBinding, SslNegotiation, TargetSessionAttrs};

use super::{
    places::{Host, Places},
    security::Security,
    url::{Secret, UrlParts, parse, refused},
};
use crate::error::Result;

/// A database, and how to get there. Equal values mean the same pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) hosts: Vec<Host>,
    pub(super) database: Option<String>,
    pub(super) application_name: Option<String>,
    pub(super) options: Option<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) session: SessionAttrs,
    pub(super) shuffle: bool,
    pub(super) socket: SocketOptions,
    pub(super) channel_binding: Binding,
    pub(super) direct_negotiation: bool,
    pub(super) security: Security,
    /// A parameter says that a transaction pooler stands between.
    pub(super) pooler_named: bool,
}

/// Which servers of several are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum SessionAttrs {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
}

/// Whether authentication is bound to the encrypted channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Binding {
    Disable,
    #[default]
    Prefer,
    Require,
}

/// How a dead peer is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SocketOptions {
    pub(super) keepalives: bool,
    pub(super) idle: Duration,
    pub(super) interval: Duration,
    pub(super) retries: u32,
    pub(super) user_timeout: Duration,
}

impl Default for SocketOptions {
    /// A dead peer is noticed after 60 s of silence, or 20 s after sending into the void.
    fn default() -> Self {
        Self {
            keepalives: true,
            idle: Duration::from_secs(30),
            interval: Duration::from_secs(10),
            retries: 3,
            user_timeout: Duration::from_secs(20),
        }
    }
}

impl Target {
    /// Reads a URL.
    pub(super) fn from_url(url: &str) -> Result<Self> {
        let UrlParts { user, password, hosts, database, params } = parse(url)?;
        let mut target = Self {
            user,
            password,
            hosts: Vec::new(),
            database,
            application_name: None,
            options: None,
            connect_timeout: None,
            session: SessionAttrs::default(),
            shuffle: false,
            socket: SocketOptions::default(),
            channel_binding: Binding::default(),
            direct_negotiation: false,
            security: Security::default(),
            pooler_named: false,
        };
        let mut places = Places::of(hosts);
        for (key, value) in &params {
            let known = places.set(key, value)?
                || target.set_login(key, value)?
                || target.set_connection(key, value)?
                || target.set_socket(key, value)?
                || target.security.set(key, value)?;
            if !known {
                refuse(key)?;
            }
        }
        target.security.check()?;
        target.hosts = places.hosts()?;
        Ok(target)
    }

    /// The URL without user, password and parameters.
    pub(super) fn redacted(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::redacted).collect();
        format!("postgresql://{}/{}", hosts.join(","), self.database.as_deref().unwrap_or_default())
    }

    fn set_login(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "user" => self.user = Some(value.to_owned()),
            "password" => self.password = Some(Secret(value.to_owned())),
            "dbname" => self.database = Some(value.to_owned()),
            "application_name" => self.application_name = Some(application_name(value)?),
            "fallback_application_name" => {
                let name = application_name(value)?;
                self.application_name.get_or_insert(name);
            }
            "options" => self.options = Some(value.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_connection(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "connect_timeout" => {
                let seconds: i64 = number(key, value)?;
                // Zero and less mean no limit to libpq; a pool must have one, so its own applies.
                let seconds = u64::try_from(seconds).unwrap_or(0);
                self.connect_timeout = (seconds > 0).then(|| Duration::from_secs(seconds.min(86_400)));
            }
            "target_session_attrs" => {
                self.session = match value {
                    "any" => SessionAttrs::Any,
                    // A primary that is read-only is of no use to an engine that writes.
                    "read-write" | "primary" => SessionAttrs::ReadWrite,
                    "read-only" => SessionAttrs::ReadOnly,
                    _ => return one_of(key, "any, read-write, primary, read-only"),
                };
            }
            "load_balance_hosts" => {
                self.shuffle = match value {
                    "disable" => false,
                    "random" => true,
                    _ => return one_of(key, "disable, random"),
                };
            }
            "channel_binding" => {
                self.channel_binding = match value {
                    "disable" => Binding::Disable,
                    "prefer" => Binding::Prefer,
                    "require" => Binding::Require,
                    _ => return one_of(key, "disable, prefer, require"),
                };
            }
            "sslnegotiation" => {
                self.direct_negotiation = match value {
                    "postgres" => false,
                    "direct" => true,
                    _ => return one_of(key, "postgres, direct"),
                };
            }
            "pool_timeout" => self.pooler_named = true,
            "pgbouncer" => {
                self.pooler_named |= match value {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return one_of(key, "true, false"),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_socket(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "keepalives" => self.socket.keepalives = number::<i64>(key, value)? != 0,
            "keepalives_idle" => set_seconds(&mut self.socket.idle, number(key, value)?),
            "keepalives_interval" => set_seconds(&mut self.socket.interval, number(key, value)?),
            "keepalives_count" | "keepalives_retries" => {
                let count: u32 = number(key, value)?;
                if count > 0 {
                    self.socket.retries = count;
                }
            }
            "tcp_user_timeout" => {
                let millis: u32 = number(key, value)?;
                if millis > 0 {
                    self.socket.user_timeout = Duration::from_millis(millis.into());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn driver_attrs(&self) -> TargetSessionAttrs {
        match self.session {
            SessionAttrs::Any => TargetSessionAttrs::Any,
            SessionAttrs::ReadWrite => TargetSessionAttrs::ReadWrite,
            SessionAttrs::ReadOnly => TargetSessionAttrs::ReadOnly,
        }
    }

    pub(super) fn driver_binding(&self) -> ChannelBinding {
        match self.channel_binding {
            Binding::Disable => ChannelBinding::Disable,
            Binding::Prefer => ChannelBinding::Prefer,
            Binding::Require => ChannelBinding::Require,
        }
    }

    pub(super) fn driver_negotiation(&self) -> SslNegotiation {
        if self.direct_negotiation { SslNegotiation::Direct } else { SslNegotiation::Postgres }
    }
}

fn application_name(value: &str) -> Result<String> {
    // Sessions outside the pool add a suffix, and the server cuts names at 63 bytes.
    if value.is_empty() || value.len() > 48 {
        return Err(refused("parameter application_name must have from 1 to 48 bytes"));
    }
    Ok(value.to_owned())
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T> {
    value.trim().parse().map_err(|_| refused(format_args!("parameter {key} is not a number in range")))
}

/// Zero and less mean the system's default to libpq; ours are shorter for a reason, so they stay.
fn set_seconds(place: &mut Duration, seconds: i64) {
    if let Ok(seconds @ 1..) = u64::try_from(seconds) {
        *place = Duration::from_secs(seconds.min(86_400));
    }
}

pub(super) fn one_of<T>(key: &str, words: &str) -> Result<T> {
    Err(refused(format_args!("parameter {key} must be one of: {words}")))
}

/// Parameters with one meaning that holds anyway are accepted in that meaning; all others are refused by name.
fn refuse(key: &str) -> Result<()> {
    // A name may be part of a password that was not percent-encoded; only plain names are repeated.
    let plain = key.len() <= 40
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte));
    let name = if plain { key } else { "with an unusual name" };
    let instead = match key {
        "schema" | "search_path" | "currentSchema" => "; give the schema to the provider as an option",
        "connection_limit" | "pool_size" | "max" => "; use the pool option maxClients",
        "statement_timeout" | "query_timeout" => "; use the pool option queryTimeoutMs",
        "passfile" | "service" | "servicefile" => "; nothing is read from such files",
        _ => "",
    };
    Err(refused(format_args!("parameter {name} is not supported{instead}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn target(url: &str) -> Target {
        Target::from_url(url).expect(url)
    }

    fn refusal(query: &str) -> String {
        let url = format!("postgres://u:geheim@h/d?{query}");
        let error = Target::from_url(&url).expect_err(query);
        assert_eq!(error.kind(), ErrorKind::Url);
        assert!(!error.full_text().contains("geheim"));
        error.to_string()
    }

    #[test]
    fn spellings_of_one_target_are_equal() {
        let plain = target("postgres://u:p@host/d?connect_timeout=3&options=-cx%3D1");
        assert_eq!(plain, target("postgresql://u:%70@HOST:5432/d?options=-cx=1&connect_timeout=3"));
        assert_ne!(plain, target("postgres://u:q@host/d?connect_timeout=3&options=-cx%3D1"));
    }

    #[test]
    fn passwords_are_never_printed() {
        let target = target("postgres://user:geheim@h/d?password=geheim2");
        let text = format!("{target:?} {}", target.redacted());
        assert!(!text.contains("geheim"), "{text}");
        assert!(!target.redacted().contains("user"));
    }

    #[test]
    fn a_parameter_is_honoured_or_refused_by_name() {
        for name in [
            "passfile",
            "service",
            "require_auth",
            "sslcrl",
            "sslcrldir",
            "sslpassword",
            "requirepeer",
            "krbsrvname",
            "gsslib",
            "replication",
            "schema",
            "connection_limit",
            "min_protocol_version",
            "surprise",
        ] {
            assert!(refusal(&format!("{name}=geheim")).contains(name), "{name}");
        }
        assert!(refusal("connection_limit=4").contains("maxClients"));
        for query in [
            "connect_timeout=x",
            "target_session_attrs=standby",
            "channel_binding=x",
            "sslmode=x",
            "keepalives=x",
            "load_balance_hosts=x",
            "sslnegotiation=x",
            "client_encoding=LATIN1",
            "gssencmode=require",
            "ssl=false",
            "port=x",
            "hostaddr=x",
            "tcp_user_timeout=-1",
            "application_name=",
        ] {
            let name = query.split('=').next().expect("a name");
            assert!(refusal(query).contains(name), "{query}");
        }
    }

    #[test]
    fn what_libpq_knows_has_its_meaning() {
        let target = target(
            "postgres://u@h/d?target_session_attrs=primary&load_balance_hosts=random&channel_binding=require\
             &keepalives=0&keepalives_idle=7&keepalives_count=2&tcp_user_timeout=900&connect_timeout=4\
             &sslnegotiation=direct&sslmode=require&client_encoding=UTF8&gssencmode=prefer&application_name=me",
        );
        assert_eq!(target.session, SessionAttrs::ReadWrite);
        assert_eq!(target.channel_binding, Binding::Require);
        assert!(target.shuffle && target.direct_negotiation && !target.socket.keepalives);
        assert_eq!((target.socket.idle, target.socket.retries), (Duration::from_secs(7), 2));
        assert_eq!(target.socket.user_timeout, Duration::from_millis(900));
        assert_eq!(target.connect_timeout, Some(Duration::from_secs(4)));
        assert_eq!(target.application_name.as_deref(), Some("me"));
    }
}
