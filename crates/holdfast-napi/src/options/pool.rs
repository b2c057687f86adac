//! Options of a provider, both ways; the same rule as for those of a runtime.

use holdfast_core::{
    error::{Error, Result},
    pool::PoolConfig,
    provider::ProviderConfig,
};
use napi_derive::napi;

use super::crossing::Crossing;

/// Options of a provider and its pool; durations in ms. Absent means Rust's default.
#[napi(object)]
#[derive(Default)]
pub struct JsPoolOptions {
    pub max_clients: Option<f64>,
    pub max_waiting: Option<f64>,
    pub acquire_timeout_ms: Option<f64>,
    pub query_timeout_ms: Option<f64>,
    pub idle_timeout_ms: Option<f64>,
    pub connect_timeout_ms: Option<f64>,
    pub keep_alive_interval_ms: Option<f64>,
    pub application_name: Option<String>,
    /// `auto`, `true` or `false`.
    pub pooled: Option<String>,
    pub direct_url: Option<String>,
    pub retry_attempts: Option<f64>,
    pub retry_base_delay_ms: Option<f64>,
    pub retry_max_delay_ms: Option<f64>,
    pub breaker_threshold: Option<f64>,
    pub breaker_open_ms: Option<f64>,
    /// `apply` or `verify`.
    pub migrate: Option<String>,
}

impl TryFrom<JsPoolOptions> for ProviderConfig {
    type Error = Error;

    fn try_from(options: JsPoolOptions) -> Result<Self> {
        let JsPoolOptions {
            max_clients,
            max_waiting,
            acquire_timeout_ms,
            query_timeout_ms,
            idle_timeout_ms,
            connect_timeout_ms,
            keep_alive_interval_ms,
            application_name,
            pooled,
            direct_url,
            retry_attempts,
            retry_base_delay_ms,
            retry_max_delay_ms,
            breaker_threshold,
            breaker_open_ms,
            migrate,
        } = options;
        let default = PoolConfig::default();
        let pool = PoolConfig {
            max_clients: Crossing::take("max_clients", max_clients, default.max_clients)?,
            max_waiting: Crossing::take("max_waiting", max_waiting, default.max_waiting)?,
            acquire_timeout: Crossing::take(
                "acquire_timeout_ms",
                acquire_timeout_ms,
                default.acquire_timeout,
            )?,
            query_timeout: Crossing::take("query_timeout_ms", query_timeout_ms, default.query_timeout)?,
            idle_timeout: Crossing::take("idle_timeout_ms", idle_timeout_ms, default.idle_timeout)?,
            connect_timeout: Crossing::take(
                "connect_timeout_ms",
                connect_timeout_ms,
                default.connect_timeout,
            )?,
            keep_alive_interval: Crossing::take(
                "keep_alive_interval_ms",
                keep_alive_interval_ms,
                default.keep_alive_interval,
            )?,
            application_name: Crossing::take("application_name", application_name, default.application_name)?,
            pooled: Crossing::take("pooled", pooled, default.pooled)?,
            direct_url: Crossing::take("direct_url", direct_url, default.direct_url)?,
            retry_attempts: Crossing::take("retry_attempts", retry_attempts, default.retry_attempts)?,
            retry_base_delay: Crossing::take(
                "retry_base_delay_ms",
                retry_base_delay_ms,
                default.retry_base_delay,
            )?,
            retry_max_delay: Crossing::take(
                "retry_max_delay_ms",
                retry_max_delay_ms,
                default.retry_max_delay,
            )?,
            breaker_threshold: Crossing::take(
                "breaker_threshold",
                breaker_threshold,
                default.breaker_threshold,
            )?,
            breaker_open: Crossing::take("breaker_open_ms", breaker_open_ms, default.breaker_open)?,
        };
        Ok(Self { pool, migrate: Crossing::take("migrate", migrate, Self::default().migrate)? })
    }
}

impl From<ProviderConfig> for JsPoolOptions {
    fn from(config: ProviderConfig) -> Self {
        let ProviderConfig { pool, migrate } = config;
        let PoolConfig {
            max_clients,
            max_waiting,
            acquire_timeout,
            query_timeout,
            idle_timeout,
            connect_timeout,
            keep_alive_interval,
            application_name,
            pooled,
            direct_url,
            retry_attempts,
            retry_base_delay,
            retry_max_delay,
            breaker_threshold,
            breaker_open,
        } = pool;
        Self {
            max_clients: max_clients.show(),
            max_waiting: max_waiting.show(),
            acquire_timeout_ms: acquire_timeout.show(),
            query_timeout_ms: query_timeout.show(),
            idle_timeout_ms: idle_timeout.show(),
            connect_timeout_ms: connect_timeout.show(),
            keep_alive_interval_ms: keep_alive_interval.show(),
            application_name: application_name.show(),
            pooled: pooled.show(),
            direct_url: direct_url.show(),
            retry_attempts: retry_attempts.show(),
            retry_base_delay_ms: retry_base_delay.show(),
            retry_max_delay_ms: retry_max_delay.show(),
            breaker_threshold: breaker_threshold.show(),
            breaker_open_ms: breaker_open.show(),
            migrate: migrate.show(),
        }
    }
}
