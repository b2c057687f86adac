//! Options: the same names and fields as in `index.d.ts`; absent means Rust's default.
//!
//! Each object is destructured without `..`, so a Rust knob that JavaScript cannot reach does not compile.

use std::time::Duration;

use holdfast_core::{
    config::{ActivityConfig, CacheConfig, DispatchConfig, EngineConfig, LeaseConfig, LivenessConfig},
    pool::{PoolConfig, PoolerMode},
    provider::{MigrateMode, ProviderConfig},
    store::TagFilter,
};
use napi_derive::napi;

/// Options of a runtime; durations in ms.
#[napi(object)]
#[derive(Default)]
pub struct JsRuntimeOptions {
    pub orchestration_concurrency: Option<f64>,
    pub worker_concurrency: Option<f64>,
    pub dispatcher_poll_interval_ms: Option<f64>,
    pub dispatcher_long_poll_timeout_ms: Option<f64>,
    /// `defaultOnly`, `any`, `none`, `tags` or `defaultAnd`.
    pub worker_tag_filter: Option<String>,
    pub worker_tag_filter_tags: Option<Vec<String>>,
    pub orchestrator_lock_timeout_ms: Option<f64>,
    pub orchestrator_lock_renewal_buffer_ms: Option<f64>,
    pub worker_lock_timeout_ms: Option<f64>,
    pub worker_lock_renewal_buffer_ms: Option<f64>,
    pub max_attempts: Option<f64>,
    pub retry_backoff_base_ms: Option<f64>,
    pub retry_backoff_max_ms: Option<f64>,
    pub heartbeat_interval_ms: Option<f64>,
    pub stale_after_ms: Option<f64>,
    pub worker_node_id: Option<String>,
    pub sticky_cache_size: Option<f64>,
    pub sticky_cache_bytes: Option<f64>,
    pub activity_timeout_ms: Option<f64>,
    pub activity_cancellation_grace_period_ms: Option<f64>,
}

impl From<JsRuntimeOptions> for EngineConfig {
    fn from(options: JsRuntimeOptions) -> Self {
        let JsRuntimeOptions {
            orchestration_concurrency,
            worker_concurrency,
            dispatcher_poll_interval_ms,
            dispatcher_long_poll_timeout_ms,
            worker_tag_filter,
            worker_tag_filter_tags,
            orchestrator_lock_timeout_ms,
            orchestrator_lock_renewal_buffer_ms,
            worker_lock_timeout_ms,
            worker_lock_renewal_buffer_ms,
            max_attempts,
            retry_backoff_base_ms,
            retry_backoff_max_ms,
            heartbeat_interval_ms,
            stale_after_ms,
            worker_node_id,
            sticky_cache_size,
            sticky_cache_bytes,
            activity_timeout_ms,
            activity_cancellation_grace_period_ms,
        } = options;
        let default = Self::default();
        let grace = default.activity.cancellation_grace_period;
        Self {
            dispatch: DispatchConfig {
                orchestration_concurrency: size(
                    orchestration_concurrency,
                    default.dispatch.orchestration_concurrency,
                ),
                worker_concurrency: size(worker_concurrency, default.dispatch.worker_concurrency),
                poll_interval: ms(dispatcher_poll_interval_ms, default.dispatch.poll_interval),
                long_poll_timeout: ms(dispatcher_long_poll_timeout_ms, default.dispatch.long_poll_timeout),
                worker_tag_filter: tag_filter(worker_tag_filter.as_deref(), worker_tag_filter_tags),
            },
            lease: LeaseConfig {
                orchestrator_lock_timeout: ms(
                    orchestrator_lock_timeout_ms,
                    default.lease.orchestrator_lock_timeout,
                ),
                orchestrator_lock_renewal_buffer: ms(
                    orchestrator_lock_renewal_buffer_ms,
                    default.lease.orchestrator_lock_renewal_buffer,
                ),
                worker_lock_timeout: ms(worker_lock_timeout_ms, default.lease.worker_lock_timeout),
                worker_lock_renewal_buffer: ms(
                    worker_lock_renewal_buffer_ms,
                    default.lease.worker_lock_renewal_buffer,
                ),
                max_attempts: count(max_attempts, default.lease.max_attempts),
                retry_backoff_base: ms(retry_backoff_base_ms, default.lease.retry_backoff_base),
                retry_backoff_max: ms(retry_backoff_max_ms, default.lease.retry_backoff_max),
            },
            liveness: LivenessConfig {
                heartbeat_interval: ms(heartbeat_interval_ms, default.liveness.heartbeat_interval),
                stale_after: ms(stale_after_ms, default.liveness.stale_after),
                worker_node_id,
            },
            cache: CacheConfig {
                sticky_cache_size: size(sticky_cache_size, default.cache.sticky_cache_size),
                sticky_cache_bytes: size(sticky_cache_bytes, default.cache.sticky_cache_bytes),
            },
            activity: ActivityConfig {
                timeout: activity_timeout_ms.map(to_duration).or(default.activity.timeout),
                cancellation_grace_period: ms(activity_cancellation_grace_period_ms, grace),
            },
        }
    }
}

/// Options of a provider's pool; durations in ms.
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

impl From<JsPoolOptions> for ProviderConfig {
    fn from(options: JsPoolOptions) -> Self {
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
            max_clients: size(max_clients, default.max_clients),
            max_waiting: size(max_waiting, default.max_waiting),
            acquire_timeout: ms(acquire_timeout_ms, default.acquire_timeout),
            query_timeout: ms(query_timeout_ms, default.query_timeout),
            idle_timeout: ms(idle_timeout_ms, default.idle_timeout),
            connect_timeout: ms(connect_timeout_ms, default.connect_timeout),
            keep_alive_interval: ms(keep_alive_interval_ms, default.keep_alive_interval),
            application_name: application_name.unwrap_or(default.application_name),
            pooled: match pooled.as_deref() {
                Some("true") => PoolerMode::Yes,
                Some("false") => PoolerMode::No,
                _ => PoolerMode::Auto,
            },
            direct_url: direct_url.or(default.direct_url),
            retry_attempts: count(retry_attempts, default.retry_attempts),
            retry_base_delay: ms(retry_base_delay_ms, default.retry_base_delay),
            retry_max_delay: ms(retry_max_delay_ms, default.retry_max_delay),
            breaker_threshold: count(breaker_threshold, default.breaker_threshold),
            breaker_open: ms(breaker_open_ms, default.breaker_open),
        };
        let migrate = match migrate.as_deref() {
            Some("verify") => MigrateMode::Verify,
            _ => MigrateMode::Apply,
        };
        Self { pool, migrate }
    }
}

/// TypeScript has refused any other word, and lists where none belongs.
fn tag_filter(mode: Option<&str>, tags: Option<Vec<String>>) -> TagFilter {
    let tags = tags.unwrap_or_default();
    match mode {
        Some("any") => TagFilter::any(),
        Some("none") => TagFilter::none(),
        Some("tags") => TagFilter::tags(tags),
        Some("defaultAnd") => TagFilter::default_and(tags),
        _ => TagFilter::default_only(),
    }
}

fn ms(value: Option<f64>, default: Duration) -> Duration {
    value.map_or(default, to_duration)
}

/// TypeScript has refused negative and non-finite numbers; the cast saturates what is left.
fn to_duration(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1000.0).unwrap_or(Duration::MAX)
}

fn size(value: Option<f64>, default: usize) -> usize {
    value.map_or(default, |value| value as usize)
}

fn count(value: Option<f64>, default: u32) -> u32 {
    value.map_or(default, |value| value as u32)
}
