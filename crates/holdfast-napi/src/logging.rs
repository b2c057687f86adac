//! Log lines: where they go, and those of user code.

use holdfast_core::telemetry::logging::{self, LogFormat, Service, UserActivity, UserLine};
use napi_derive::napi;

use crate::failure::JsOutcome;

/// A line of user code.
#[napi(object)]
pub struct JsLogLine {
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// The text.
    pub message: String,
    /// The instance.
    pub instance_id: String,
    /// Its execution.
    pub execution_id: i64,
    /// Its orchestration.
    pub orchestration_name: Option<String>,
    /// Version of that.
    pub orchestration_version: Option<String>,
    /// The activity, when one logs.
    pub activity_name: Option<String>,
    /// Event that scheduled it.
    pub activity_id: Option<i64>,
    /// Node that runs it.
    pub worker_id: Option<String>,
    /// Its routing label.
    pub tag: Option<String>,
}

/// The log of the process.
#[napi]
pub struct JsLog {}

#[napi]
impl JsLog {
    /// Sends every line of this process to a file.
    #[napi]
    pub fn init_tracing(file: String, level: String, format: String) -> JsOutcome {
        logging::init_tracing(&file, &level, LogFormat::of(&format)).into()
    }

    /// Sends lines to stderr unless they go somewhere already.
    #[napi]
    pub fn start_logging(
        level: String,
        format: String,
        service_name: Option<String>,
        service_version: Option<String>,
    ) {
        let service = Service { name: service_name, version: service_version };
        logging::start_logging(&level, LogFormat::of(&format), service);
    }

    /// Writes a line of user code.
    #[napi]
    pub fn log_line(line: JsLogLine) {
        let activity = line.activity_name.as_deref().map(|name| UserActivity {
            name,
            id: line.activity_id.unwrap_or_default(),
            worker: line.worker_id.as_deref().unwrap_or_default(),
            tag: line.tag.as_deref(),
        });
        logging::user_line(&UserLine {
            level: &line.level,
            message: &line.message,
            instance: &line.instance_id,
            execution: line.execution_id,
            orchestration: line.orchestration_name.as_deref(),
            version: line.orchestration_version.as_deref(),
            activity,
        });
    }
}
