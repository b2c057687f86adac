//! How one option crosses: times and counts as numbers, modes as words.

use std::time::Duration;

use holdfast_core::{
    config::{HangAction, ListenerMode, LogLevel, ReplayVersions},
    error::{Error, ErrorKind, Result},
    pool::{MaxClients, PoolerMode},
    provider::MigrateMode,
    store::TagFilter,
    telemetry::logging::LogFormat,
};

use super::runtime::JsReplayVersions;

/// An option that crosses both ways. What JavaScript gives is absent, or more than one property for one option.
pub(super) trait Crossing: Sized {
    type Js;
    /// The given value, or the default; `option` is its name.
    fn take(option: &str, given: Self::Js, default: Self) -> Result<Self>;
    /// The value as JavaScript sees it.
    fn show(self) -> Self::Js;
}

/// A plain value: present or absent.
pub(super) trait Plain: Sized {
    type Js;
    fn from_js(value: Self::Js) -> Self;
    fn to_js(self) -> Self::Js;
}

impl<T: Plain> Crossing for T {
    type Js = Option<T::Js>;

    fn take(_: &str, given: Self::Js, default: Self) -> Result<Self> {
        Ok(given.map_or(default, T::from_js))
    }

    fn show(self) -> Self::Js {
        Some(self.to_js())
    }
}

impl<T: Plain> Crossing for Option<T> {
    type Js = Option<T::Js>;

    fn take(_: &str, given: Self::Js, default: Self) -> Result<Self> {
        Ok(given.map(T::from_js).or(default))
    }

    fn show(self) -> Self::Js {
        self.map(T::to_js)
    }
}

impl Plain for Duration {
    type Js = f64;

    /// TypeScript has refused negative and non-finite numbers; what is left is cut to the longest time.
    fn from_js(ms: f64) -> Self {
        Self::try_from_secs_f64(ms / 1000.0).unwrap_or(Self::MAX)
    }

    fn to_js(self) -> f64 {
        self.as_millis() as f64
    }
}

impl Plain for usize {
    type Js = f64;

    fn from_js(value: f64) -> Self {
        value as Self
    }

    fn to_js(self) -> f64 {
        self as f64
    }
}

impl Plain for MaxClients {
    type Js = f64;

    fn from_js(value: f64) -> Self {
        Self::Given(value as usize)
    }

    fn to_js(self) -> f64 {
        self.most() as f64
    }
}

impl Plain for u32 {
    type Js = f64;

    fn from_js(value: f64) -> Self {
        value as Self
    }

    fn to_js(self) -> f64 {
        f64::from(self)
    }
}

impl Plain for String {
    type Js = Self;

    fn from_js(value: Self) -> Self {
        value
    }

    fn to_js(self) -> Self {
        self
    }
}

/// A mode crosses as a word.
macro_rules! words {
    ($mode:ident { $($word:literal => $value:ident),+ $(,)? }) => {
        impl Crossing for $mode {
            type Js = Option<String>;

            fn take(option: &str, given: Self::Js, default: Self) -> Result<Self> {
                match given.as_deref() {
                    None => Ok(default),
                    $(Some($word) => Ok(Self::$value),)+
                    Some(word) => Err(unknown(option, word)),
                }
            }

            fn show(self) -> Self::Js {
                let word = match self {
                    $(Self::$value => $word,)+
                };
                Some(word.to_owned())
            }
        }
    };
}

words!(ListenerMode { "each" => Each, "elected" => Elected, "off" => Off });
words!(HangAction { "fence" => Fence, "exit" => Exit });
words!(LogFormat { "compact" => Compact, "json" => Json, "pretty" => Pretty });
words!(LogLevel {
    "off" => Off, "error" => Error, "warn" => Warn, "info" => Info, "debug" => Debug, "trace" => Trace,
});
words!(PoolerMode { "auto" => Auto, "true" => Yes, "false" => No });
words!(MigrateMode { "apply" => Apply, "verify" => Verify });

impl Crossing for TagFilter {
    type Js = (Option<String>, Option<Vec<String>>);

    fn take(option: &str, (mode, tags): Self::Js, default: Self) -> Result<Self> {
        let tags = tags.unwrap_or_default();
        match mode.as_deref() {
            None => Ok(default),
            Some("defaultOnly") => Ok(Self::default_only()),
            Some("any") => Ok(Self::any()),
            Some("none") => Ok(Self::none()),
            Some("tags") => Ok(Self::tags(tags)),
            Some("defaultAnd") => Ok(Self::default_and(tags)),
            Some(word) => Err(unknown(option, word)),
        }
    }

    fn show(self) -> Self::Js {
        let word = match &self {
            Self { any: true, .. } => "any",
            Self { untagged: true, tags, .. } if tags.is_empty() => "defaultOnly",
            Self { tags, .. } if tags.is_empty() => "none",
            Self { untagged: true, .. } => "defaultAnd",
            Self { .. } => "tags",
        };
        (Some(word.to_owned()), Some(self.tags))
    }
}

impl Crossing for ReplayVersions {
    type Js = Option<JsReplayVersions>;

    fn take(_: &str, given: Self::Js, default: Self) -> Result<Self> {
        let Some(JsReplayVersions { min, max }) = given else { return Ok(default) };
        Ok(Self {
            min: min.map_or(Ok(default.min), |text| text.parse())?,
            max: max.map_or(Ok(default.max), |text| text.parse())?,
        })
    }

    fn show(self) -> Self::Js {
        Some(JsReplayVersions { min: Some(self.min.to_string()), max: Some(self.max.to_string()) })
    }
}

fn unknown(option: &str, given: &str) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("invalid option {option}: {given:?} means nothing"))
}
