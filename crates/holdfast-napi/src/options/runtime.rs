//! Options of a runtime, both ways.
//!
//! Both ways name every field of both sides without `..`: an option that JavaScript cannot set, or cannot see, does not
//! compile.

use holdfast_core::{
    config::{
        ActivityConfig, CacheConfig, DispatchConfig, EngineConfig, LeaseConfig, LimitsConfig, LivenessConfig,
        RetentionConfig, SessionConfig, TelemetryConfig, WatchdogConfig,
    },
    error::{Error, Result},
};
use napi_derive::napi;

use super::crossing::Crossing;

/// Options of a runtime; durations in ms. Absent means Rust's default.
#[napi(object)]
#[derive(Default)]
pub struct JsRuntimeOptions {
    pub orchestration_concurrency: Option<f64>,
    pub worker_concurrency: Option<f64>,
    pub dispatcher_poll_interval_ms: Option<f64>,
    pub dispatcher_long_poll_timeout_ms: Option<f64>,
    pub unregistered_backoff_base_ms: Option<f64>,
    pub unregistered_backoff_max_ms: Option<f64>,
    /// `defaultOnly`, `any`, `none`, `tags` or `defaultAnd`.
    pub worker_tag_filter: Option<String>,
    pub worker_tag_filter_tags: Option<Vec<String>>,
    pub supported_replay_versions: Option<JsReplayVersions>,
    pub orchestrator_lock_timeout_ms: Option<f64>,
    pub orchestrator_lock_renewal_buffer_ms: Option<f64>,
    pub worker_lock_timeout_ms: Option<f64>,
    pub worker_lock_renewal_buffer_ms: Option<f64>,
    pub activity_row_delay_ms: Option<f64>,
    pub max_attempts: Option<f64>,
    pub retry_backoff_base_ms: Option<f64>,
    pub retry_backoff_max_ms: Option<f64>,
    pub session_lock_timeout_ms: Option<f64>,
    pub session_lock_renewal_buffer_ms: Option<f64>,
    pub session_idle_timeout_ms: Option<f64>,
    pub session_cleanup_interval_ms: Option<f64>,
    pub max_sessions_per_runtime: Option<f64>,
    pub heartbeat_interval_ms: Option<f64>,
    pub stale_after_ms: Option<f64>,
    pub worker_node_id: Option<String>,
    pub self_fence_margin_ms: Option<f64>,
    pub listener: Option<String>,
    pub event_loop_stall_timeout_ms: Option<f64>,
    pub event_loop_hang_timeout_ms: Option<f64>,
    pub event_loop_hang_action: Option<String>,
    pub sticky_cache_size: Option<f64>,
    pub sticky_cache_bytes: Option<f64>,
    pub activity_timeout_ms: Option<f64>,
    pub activity_cancellation_grace_period_ms: Option<f64>,
    pub payload_byte_limit: Option<f64>,
    pub history_event_limit: Option<f64>,
    pub history_byte_limit: Option<f64>,
    pub fan_out_limit: Option<f64>,
    pub mailbox_limit: Option<f64>,
    pub retention_ms: Option<f64>,
    pub unknown_instance_retention_ms: Option<f64>,
    pub log_format: Option<String>,
    pub log_level: Option<String>,
    pub service_name: Option<String>,
    pub service_version: Option<String>,
    pub gauge_poll_interval_ms: Option<f64>,
}

/// A range of versions of this package.
#[napi(object)]
pub struct JsReplayVersions {
    /// The oldest, such as `0.1.0`.
    pub min: Option<String>,
    /// The newest.
    pub max: Option<String>,
}

/// Both conversions, from one table: properties of JavaScript => field, room by room.
macro_rules! both_ways {
    ($($room:ident: $config:ident { $($($js:ident),+ => $field:ident;)+ })+) => {
        impl TryFrom<JsRuntimeOptions> for EngineConfig {
            type Error = Error;

            fn try_from(options: JsRuntimeOptions) -> Result<Self> {
                let JsRuntimeOptions { $($($($js,)+)+)+ } = options;
                let default = Self::default();
                Ok(Self {
                    $($room: $config {
                        $($field: Crossing::take(stringify!($($js),+), ($($js),+), default.$room.$field)?,)+
                    },)+
                })
            }
        }

        impl From<EngineConfig> for JsRuntimeOptions {
            #[expect(unused_parens, reason = "two properties of one option make a tuple")]
            fn from(config: EngineConfig) -> Self {
                let EngineConfig { $($room,)+ } = config;
                $(
                    let $config { $($field,)+ } = $room;
                    $(let ($($js),+) = Crossing::show($field);)+
                )+
                Self { $($($($js,)+)+)+ }
            }
        }
    };
}

both_ways! {
    dispatch: DispatchConfig {
        orchestration_concurrency => orchestration_concurrency;
        worker_concurrency => worker_concurrency;
        dispatcher_poll_interval_ms => poll_interval;
        dispatcher_long_poll_timeout_ms => long_poll_timeout;
        unregistered_backoff_base_ms => unregistered_backoff_base;
        unregistered_backoff_max_ms => unregistered_backoff_max;
        worker_tag_filter, worker_tag_filter_tags => worker_tag_filter;
        supported_replay_versions => replay_versions;
    }
    lease: LeaseConfig {
        orchestrator_lock_timeout_ms => orchestrator_lock_timeout;
        orchestrator_lock_renewal_buffer_ms => orchestrator_lock_renewal_buffer;
        worker_lock_timeout_ms => worker_lock_timeout;
        worker_lock_renewal_buffer_ms => worker_lock_renewal_buffer;
        activity_row_delay_ms => activity_row_delay;
        max_attempts => max_attempts;
        retry_backoff_base_ms => retry_backoff_base;
        retry_backoff_max_ms => retry_backoff_max;
    }
    session: SessionConfig {
        session_lock_timeout_ms => lock_timeout;
        session_lock_renewal_buffer_ms => lock_renewal_buffer;
        session_idle_timeout_ms => idle_timeout;
        session_cleanup_interval_ms => cleanup_interval;
        max_sessions_per_runtime => max_sessions;
    }
    liveness: LivenessConfig {
        heartbeat_interval_ms => heartbeat_interval;
        stale_after_ms => stale_after;
        worker_node_id => worker_node_id;
        self_fence_margin_ms => self_fence_margin;
        listener => listener;
    }
    watchdog: WatchdogConfig {
        event_loop_stall_timeout_ms => stall_timeout;
        event_loop_hang_timeout_ms => hang_timeout;
        event_loop_hang_action => hang_action;
    }
    cache: CacheConfig {
        sticky_cache_size => sticky_cache_size;
        sticky_cache_bytes => sticky_cache_bytes;
    }
    activity: ActivityConfig {
        activity_timeout_ms => timeout;
        activity_cancellation_grace_period_ms => cancellation_grace_period;
    }
    limits: LimitsConfig {
        payload_byte_limit => payload_byte_limit;
        history_event_limit => history_event_limit;
        history_byte_limit => history_byte_limit;
        fan_out_limit => fan_out_limit;
        mailbox_limit => mailbox_limit;
    }
    retention: RetentionConfig {
        retention_ms => retention;
        unknown_instance_retention_ms => unknown_instance_retention;
    }
    telemetry: TelemetryConfig {
        log_format => log_format;
        log_level => log_level;
        service_name => service_name;
        service_version => service_version;
        gauge_poll_interval_ms => gauge_poll_interval;
    }
}
