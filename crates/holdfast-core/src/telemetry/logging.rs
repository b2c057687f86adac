//! Log lines of the process: where they go, in which form, and which of them.
//!
//! One subscriber for the process, set once: by `init_tracing` to a file, or by the first runtime to stderr. A second one is
//! refused, never replaced. Lines are written whole and unbuffered, so a process that dies has written what it logged.

use std::{
    fs::OpenOptions,
    io,
    sync::{Mutex, OnceLock},
};

use tracing::{Level, level_filters::LevelFilter, subscriber::set_global_default};
use tracing_subscriber::{Layer, filter::Targets, fmt::MakeWriter, layer::SubscriberExt, registry::Registry};

use crate::error::{Error, ErrorKind, Result};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One line of text.
    #[default]
    Compact,
    /// Several lines of text for each record.
    Pretty,
    /// One JSON object for each record.
    Json,
}

impl LogFormat {
    /// The format of a word; any other word is compact.
    pub fn of(word: &str) -> Self {
        match word {
            "json" => Self::Json,
            "pretty" => Self::Pretty,
            _ => Self::Compact,
        }
    }
}

/// Who writes the lines: shown with every line of user code when it is set.
#[derive(Debug, Clone, Default)]
pub struct Service {
    /// Name.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
}

/// What user code logs.
#[derive(Debug)]
pub struct UserLine<'a> {
    /// `error`, `warn`, `info`, or `debug`.
    pub level: &'a str,
    /// The text.
    pub message: &'a str,
    /// The instance.
    pub instance: &'a str,
    /// Its execution.
    pub execution: i64,
    /// Name of the orchestration; absent for a standalone activity.
    pub orchestration: Option<&'a str>,
    /// Version of the orchestration.
    pub version: Option<&'a str>,
    /// Of an activity: its name, its id in the history, the node that runs it, its tag.
    pub activity: Option<UserActivity<'a>>,
}

/// The activity that logs.
#[derive(Debug)]
pub struct UserActivity<'a> {
    /// Name.
    pub name: &'a str,
    /// Event that scheduled it.
    pub id: i64,
    /// Node that runs it.
    pub worker: &'a str,
    /// Routing label.
    pub tag: Option<&'a str>,
}

static SERVICE: OnceLock<Service> = OnceLock::new();

/// Sends every line of this process to the end of a file. Fails when the file cannot be opened or when lines go somewhere
/// already.
pub fn init_tracing(file: &str, level: &str, format: LogFormat) -> Result<()> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let opened = opened.map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("Failed to open log file '{file}': {error}"))
    })?;
    install(level, format, Mutex::new(opened))
        .map_err(|why| Error::new(ErrorKind::Invalid, format!("Failed to init tracing: {why}")))
}

/// Sends lines to stderr unless they go somewhere already; the first runtime of a process decides.
pub fn start_logging(level: &str, format: LogFormat, service: Service) {
    let _ = SERVICE.set(service);
    let _ = install(level, format, Mutex::new(io::stderr()));
}

/// Writes one line of user code; without a subscriber nothing happens.
pub fn user_line(line: &UserLine<'_>) {
    let service = SERVICE.get();
    let service_name = service.and_then(|service| service.name.as_deref());
    let service_version = service.and_then(|service| service.version.as_deref());
    let UserLine { message, instance, execution, orchestration, version, .. } = line;
    macro_rules! orchestration_line {
        ($level:expr) => {
            tracing::event!(
                target: "holdfast::orchestration",
                $level,
                instance_id = instance,
                execution_id = execution,
                orchestration_name = orchestration,
                orchestration_version = version,
                service_name,
                service_version,
                "{message}"
            )
        };
    }
    macro_rules! activity_line {
        ($level:expr, $activity:expr) => {
            tracing::event!(
                target: "holdfast::activity",
                $level,
                instance_id = instance,
                execution_id = execution,
                orchestration_name = orchestration,
                orchestration_version = version,
                activity_name = $activity.name,
                activity_id = $activity.id,
                worker_id = $activity.worker,
                tag = $activity.tag,
                service_name,
                service_version,
                "{message}"
            )
        };
    }
    match (line.level, &line.activity) {
        ("error", None) => orchestration_line!(Level::ERROR),
        ("warn", None) => orchestration_line!(Level::WARN),
        ("debug", None) => orchestration_line!(Level::DEBUG),
        (_, None) => orchestration_line!(Level::INFO),
        ("error", Some(activity)) => activity_line!(Level::ERROR, activity),
        ("warn", Some(activity)) => activity_line!(Level::WARN, activity),
        ("debug", Some(activity)) => activity_line!(Level::DEBUG, activity),
        (_, Some(activity)) => activity_line!(Level::INFO, activity),
    }
}

fn install<W>(level: &str, format: LogFormat, writer: W) -> std::result::Result<(), String>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Compact => lines.compact().boxed(),
        LogFormat::Pretty => lines.pretty().boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter(level)?));
    set_global_default(subscriber).map_err(|error| error.to_string())
}

/// `RUST_LOG` where it is set; else warnings of everything, and user code from `level` on.
fn filter(level: &str) -> std::result::Result<Targets, String> {
    if let Some(directives) = std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty()) {
        return directives.parse().map_err(|error| format!("RUST_LOG {directives:?}: {error}"));
    }
    let level: LevelFilter = level.parse().map_err(|_| format!("{level:?} is no log level"))?;
    Ok(Targets::new()
        .with_default(LevelFilter::WARN.min(level))
        .with_target("holdfast::orchestration", level)
        .with_target("holdfast::activity", level))
}
