//! Opens sessions: which address, which encryption, which limits.

use std::{str::FromStr, time::Duration};

use tokio_postgres::NoTls;

use super::{
    classify::engine_error,
    config::PoolConfig,
    session::{Session, SessionPurpose},
};
use crate::error::{Error, ErrorKind, Result};

/// Opens sessions of one database.
pub(super) struct Connector {
    pooled: tokio_postgres::Config,
    redacted: String,
    connect_limit: Duration,
    query_limit: Duration,
    named_statements: bool,
    application_name: String,
}

impl Connector {
    pub(super) fn new(url: &str, config: &PoolConfig) -> Result<Self> {
        let mut pooled = tokio_postgres::Config::from_str(url)
            .map_err(|_| Error::new(ErrorKind::Url, "the connection URL cannot be read"))?;
        pooled.application_name(&config.application_name);
        Ok(Self {
            redacted: format!("{:?}/{}", pooled.get_hosts(), pooled.get_dbname().unwrap_or_default()),
            pooled,
            connect_limit: config.connect_timeout,
            query_limit: config.query_timeout,
            named_statements: config.pooled != super::config::PoolerMode::Yes,
            application_name: config.application_name.clone(),
        })
    }

    pub(super) fn identity(&self) -> String {
        format!("{:?}", self.pooled)
    }

    pub(super) fn redacted_url(&self) -> &str {
        &self.redacted
    }

    pub(super) async fn open_pooled(&self) -> Result<Session> {
        self.open(&self.pooled, self.named_statements).await
    }

    pub(super) async fn open_direct(&self, purpose: SessionPurpose) -> Result<Session> {
        let suffix = match purpose {
            SessionPurpose::Liveness => "liveness",
            SessionPurpose::Listener => "listener",
            SessionPurpose::Migration => "migration",
        };
        let mut config = self.pooled.clone();
        config.application_name(format!("{}-{suffix}", self.application_name));
        self.open(&config, true).await
    }

    async fn open(&self, config: &tokio_postgres::Config, named_statements: bool) -> Result<Session> {
        let doing = format!("connect to {}", self.redacted);
        let opened = tokio::time::timeout(self.connect_limit, config.connect(NoTls)).await;
        let (client, connection) = opened
            .map_err(|_| {
                let text = format!("{doing}: no answer within {} ms", self.connect_limit.as_millis());
                Error::new(ErrorKind::Unavailable, text)
            })?
            .map_err(|error| engine_error(error, doing))?;
        let driver = tokio::spawn(async move {
            // Whoever waits for an answer is told of the end by the client.
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "session ended");
            }
        });
        Ok(Session::new(client, driver, named_statements, self.query_limit))
    }
}
