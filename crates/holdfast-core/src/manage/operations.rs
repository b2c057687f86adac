//! The manager, and its looks at one instance and at the whole schema.

use std::sync::Arc;

use holdfast_replay::{CarryOver, event::CarriedKind};

use crate::{
    error::{Error, ErrorKind, Result},
    pool::{CallerClass, Lease},
    provider::Provider,
    store::instance::values,
    store::manage::{self as rows, DepthsRow, ExecutionRow, Finding, MetricsRow},
};

/// Manages the instances of one provider.
#[derive(Clone)]
pub struct Manager {
    pub(super) provider: Arc<Provider>,
}

/// Size of the current execution of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Events recorded.
    pub events: i64,
    /// Bytes of their data.
    pub bytes: i64,
    /// Queue messages carried into the execution.
    pub carried_messages: i64,
    /// Keys of the values that the instance keeps.
    pub keys: i64,
    /// Bytes of these values.
    pub value_bytes: i64,
}

impl Manager {
    /// A manager; no I/O.
    pub fn new(provider: Arc<Provider>) -> Self {
        Self { provider }
    }

    /// One execution, if there is one.
    pub async fn execution(&self, instance: &str, execution: i64) -> Result<Option<ExecutionRow>> {
        rows::execution(&*self.session().await?, self.provider.statements(), instance, execution).await
    }

    /// Numbers of the executions of an instance that are still there, ascending.
    pub async fn executions(&self, instance: &str) -> Result<Vec<i64>> {
        rows::executions(&*self.session().await?, self.provider.statements(), instance).await
    }

    /// Ids of an instance, which comes first, and of all its descendants; none when there is no such instance.
    pub async fn tree(&self, instance: &str) -> Result<Vec<String>> {
        let tree = rows::tree(&*self.session().await?, self.provider.statements(), instance).await?;
        let mut ids: Vec<String> = tree.into_iter().map(|member| member.instance).collect();
        ids.sort_by_key(|id| id != instance);
        Ok(ids)
    }

    /// Size of the current execution of an instance, if there is one.
    pub async fn stats(&self, instance: &str) -> Result<Option<Stats>> {
        let found = rows::stats(&*self.session().await?, self.provider.statements(), instance).await?;
        let Some(row) = found else { return Ok(None) };
        let carried: CarryOver = match row.carried {
            None => CarryOver::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                Error::new(ErrorKind::Corrupt, format!("read what was carried over of {instance:?}"))
                    .caused_by(error)
            })?,
        };
        let queued = carried.messages.iter().filter(|message| message.kind == CarriedKind::Queue).count();
        Ok(Some(Stats {
            events: row.events,
            bytes: row.bytes,
            carried_messages: i64::try_from(queued).unwrap_or(i64::MAX),
            keys: row.keys,
            value_bytes: row.value_bytes,
        }))
    }

    /// Values that an instance keeps, by key: that of one key, or all. None when there is no such instance or key.
    pub async fn values(&self, instance: &str, key: Option<&str>) -> Result<Vec<(String, String)>> {
        values(&*self.session().await?, self.provider.statements(), instance, key).await
    }

    /// Counts of everything.
    pub async fn metrics(&self) -> Result<MetricsRow> {
        rows::metrics(&*self.session().await?, self.provider.statements()).await
    }

    /// What was accepted and can never end, and rows that the engine does not write; nothing in a sound database.
    pub async fn audit(&self) -> Result<Vec<Finding>> {
        rows::audit(&*self.session().await?, self.provider.statements()).await
    }

    /// What could be claimed now.
    pub async fn depths(&self) -> Result<DepthsRow> {
        rows::depths(&*self.session().await?, self.provider.statements()).await
    }

    pub(super) async fn session(&self) -> Result<Lease> {
        self.provider.pool().acquire(CallerClass::Ordinary).await
    }
}
