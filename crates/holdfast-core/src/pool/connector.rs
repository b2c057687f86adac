//! Opens sessions: which host, which encryption, which time limits.
//!
//! Each host has the whole connect limit, so a host that accepts and never answers does not hide the next one. Errors
//! name hosts and database, never user or password. It keeps no session.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    io,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio_postgres::{
    Client, Config, NoTls,
    config::{SslMode, TargetSessionAttrs},
    error::SqlState,
    tls::MakeTlsConnect,
};

use super::{
    cancel::Address,
    classify::{classify, engine_error},
    config::PoolConfig,
    driving::Driving,
    endpoint::Endpoints,
    places::{Host, HostName},
    security::{Way, Ways},
    session::{Session, SessionPurpose},
    socket::{self, Socket},
    target::Target,
    together::{Encrypting, Switch, Together},
    url::Secret,
};
use crate::error::{Error, ErrorKind, Result};

/// Opens sessions of one database.
pub(super) struct Connector {
    hot: Route,
    direct: Route,
    query_limit: Duration,
    renewed: Renewed,
}

/// A password that takes the place of the URL's for every session opened from then on.
type Renewed = Arc<Mutex<Option<Secret>>>;

/// One way to the database.
struct Route {
    target: Target,
    ways: Ways,
    redacted: String,
    application_name: String,
    connect_limit: Duration,
    named_statements: bool,
    renewed: Renewed,
}

impl Connector {
    pub(super) fn new(endpoints: Endpoints, config: &PoolConfig) -> Result<Self> {
        let renewed = Renewed::default();
        Ok(Self {
            hot: Route::new(endpoints.hot, !endpoints.hot_pooled, config, &renewed)?,
            direct: Route::new(endpoints.direct, !endpoints.direct_pooled, config, &renewed)?,
            query_limit: config.query_timeout,
            renewed,
        })
    }

    /// Sessions opened from here on show this password; those that are open stay.
    pub(super) fn set_password(&self, password: String) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Secret(password));
    }

    pub(super) fn redacted_url(&self) -> &str {
        &self.hot.redacted
    }

    pub(super) fn direct_target(&self) -> &Target {
        &self.direct.target
    }

    pub(super) fn direct_is_pooled(&self) -> bool {
        !self.direct.named_statements
    }

    pub(super) async fn open_pooled(&self) -> Result<Session> {
        self.hot.open(&self.hot.application_name, self.query_limit).await
    }

    pub(super) async fn open_direct(&self, purpose: SessionPurpose) -> Result<Session> {
        let suffix = match purpose {
            SessionPurpose::Liveness => "liveness",
            SessionPurpose::Listener => "listener",
            SessionPurpose::Migration => "migration",
        };
        let name = format!("{}-{suffix}", self.direct.application_name);
        let opened = self.direct.open(&name, self.query_limit).await;
        match self.direct.redacted == self.hot.redacted {
            true => opened,
            // The URL that the caller gave is not to blame.
            false => opened.map_err(|error| error.about("the direct session (option directUrl)")),
        }
    }
}

impl Route {
    fn new(target: Target, named_statements: bool, config: &PoolConfig, renewed: &Renewed) -> Result<Self> {
        let default_name = || config.application_name.clone();
        Ok(Self {
            ways: target.security.ways(target.direct_negotiation)?,
            redacted: target.redacted(),
            application_name: target.application_name.clone().unwrap_or_else(default_name),
            connect_limit: target.connect_timeout.unwrap_or(config.connect_timeout),
            named_statements,
            renewed: Arc::clone(renewed),
            target,
        })
    }

    /// Tries the hosts in order, or from a random one on; the last error counts.
    async fn open(&self, application_name: &str, query_limit: Duration) -> Result<Session> {
        let hosts = &self.target.hosts;
        let start = if self.target.shuffle { random_below(hosts.len()) } else { 0 };
        let mut last = Error::new(ErrorKind::Internal, "a target without hosts");
        for at in 0..hosts.len() {
            let host = &hosts[(start + at) % hosts.len()];
            let opening = self.open_host(host, application_name, query_limit);
            match tokio::time::timeout(self.connect_limit, opening).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => last = self.describe(error),
                Err(_) => {
                    let limit = self.connect_limit.as_millis();
                    let text = format!("connect to {}: no answer within {limit} ms", self.redacted);
                    last = Error::new(ErrorKind::Unavailable, text);
                }
            }
        }
        Err(last)
    }

    async fn open_host(
        &self,
        host: &Host,
        application_name: &str,
        query_limit: Duration,
    ) -> Result<Session, Refused> {
        let config = self.driver_config(application_name);
        let address = Address::of(host);
        let open = async |way| {
            let mut last = None;
            for place in socket::places(&address).await? {
                let socket = socket::open(&place, &self.target.socket);
                let opened = async { open_way(socket.await?, &config, way, &address).await };
                match opened.await {
                    Ok((client, driving)) => {
                        let session = Session::new(client, driving, self.named_statements, query_limit);
                        return self.accepts(session).await;
                    }
                    Err(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound).into()))
        };
        // Encryption has no meaning on a socket of this machine.
        let local = matches!(host.name, HostName::Unix(_));
        let error = match open(if local { &Way::Plain } else { &self.ways.first }).await {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        match &self.ways.second {
            Some(second) if !local && asks_for_the_other_way(&error) => open(second).await,
            _ => Err(error),
        }
    }

    /// Whether the server is one that the URL asks for: one that takes writes, or one that does not.
    async fn accepts(&self, session: Session) -> Result<Session, Refused> {
        let wanted = match self.target.driver_attrs() {
            TargetSessionAttrs::ReadWrite => false,
            TargetSessionAttrs::ReadOnly => true,
            _ => return Ok(session),
        };
        let refusal = if wanted { "database is not read only" } else { "database does not allow writes" };
        match session.is_read_only().await? == wanted {
            true => Ok(session),
            false => Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal).into()),
        }
    }

    fn driver_config(&self, application_name: &str) -> Config {
        let target = &self.target;
        let mut config = Config::new();
        config.application_name(application_name);
        if let Some(user) = &target.user {
            config.user(user);
        }
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(password) = renewed.as_ref().or(target.password.as_ref()) {
            config.password(&password.0);
        }
        drop(renewed);
        if let Some(database) = &target.database {
            config.dbname(database);
        }
        if let Some(options) = &target.options {
            config.options(options);
        }
        config.channel_binding(target.driver_binding()).ssl_negotiation(target.driver_negotiation());
        config
    }

    /// A refusal that is not about load or network means that the URL cannot be used: a wrong password, no such
    /// database, a certificate that is not trusted.
    fn describe(&self, error: Refused) -> Error {
        let error = match error {
            Refused::Driver(error) => error,
            Refused::Socket(error) => {
                let text = format!("connect to {}", self.redacted);
                return Error::new(ErrorKind::Unavailable, text).caused_by(error);
            }
        };
        let text = format!("connect to {}{}", self.redacted, remedy(&error));
        match classify(&error).kind {
            ErrorKind::Query => Error::new(ErrorKind::Url, text).caused_by(error),
            _ => engine_error(error, text),
        }
    }
}

/// What to do about a refusal that the server names by a code.
fn remedy(error: &tokio_postgres::Error) -> &'static str {
    match error.code().map(SqlState::code) {
        Some("28P01" | "28000") => " (check user and password in the URL, and the server's pg_hba.conf)",
        Some("3D000") => " (create the database, or correct its name in the URL)",
        _ => "",
    }
}

/// Why a session was not opened.
enum Refused {
    Driver(tokio_postgres::Error),
    Socket(io::Error),
}

impl From<tokio_postgres::Error> for Refused {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

async fn open_way(
    socket: Socket,
    config: &Config,
    way: &Way,
    address: &Address,
) -> Result<(Client, Driving), Refused> {
    let mut config = config.clone();
    let address = address.clone();
    let on = Switch::default();
    let stream = Together::new(socket, Arc::clone(&on));
    match way {
        Way::Plain => {
            let (client, connection) = config.ssl_mode(SslMode::Disable).connect_raw(stream, NoTls).await?;
            on.store(true, Ordering::Release);
            Ok((client, Driving::start(connection, address, None)))
        }
        Way::Encrypted(tls) | Way::Either(tls) => {
            let always = matches!(way, Way::Encrypted(_));
            config.ssl_mode(if always { SslMode::Require } else { SslMode::Prefer });
            let (inside, encrypted) = (Switch::default(), Switch::default());
            let mut maker = tls.clone();
            let connector = MakeTlsConnect::<Together<Socket>>::make_tls_connect(&mut maker, address.name())
                .map_err(io::Error::other)?;
            let connector =
                Encrypting { connector, on: Arc::clone(&inside), encrypted: Arc::clone(&encrypted) };
            let (client, connection) = config.connect_raw(stream, connector).await?;
            // What is encrypted goes through outside as it is.
            let switch = if encrypted.load(Ordering::Acquire) { inside } else { on };
            switch.store(true, Ordering::Release);
            Ok((client, Driving::start(connection, address, Some(tls.clone()))))
        }
    }
}

/// Whether libpq's `prefer` and `allow` would try the other way: encryption failed, or the server's rules refuse this
/// one. A wrong password stays wrong.
fn asks_for_the_other_way(error: &Refused) -> bool {
    let Refused::Driver(error) = error else { return false };
    match error.as_db_error() {
        Some(answer) => answer.code().code() == "28000",
        None => std::error::Error::source(error).is_some_and(|cause| cause.is::<native_tls::Error>()),
    }
}

/// A number below `bound`, from the seed that the standard library draws for hash maps.
fn random_below(bound: usize) -> usize {
    let drawn = RandomState::new().hash_one(0_u8);
    usize::try_from(drawn % bound.max(1) as u64).unwrap_or(0)
}
