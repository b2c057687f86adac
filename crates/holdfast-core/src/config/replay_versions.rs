//! Which versions of this package may have written a history that is replayed here.

use std::{fmt, str::FromStr};

use super::rule::invalid;
use crate::{
    error::{Error, ErrorKind, Result},
    store::replay_version::{self, ReplayRange},
};

/// A version of this package: three numbers. They compare in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayVersion {
    /// Changes when histories of before cannot be read.
    pub major: u32,
    /// Changes with new abilities.
    pub minor: u32,
    /// Changes with corrections.
    pub patch: u32,
}

impl ReplayVersion {
    fn number(self) -> i64 {
        replay_version::number(self.major, self.minor, self.patch)
    }

    /// The version of this build.
    pub fn current() -> Self {
        env!("CARGO_PKG_VERSION").parse().unwrap_or(Self { major: 0, minor: 0, patch: 0 })
    }
}

impl FromStr for ReplayVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::new(ErrorKind::InvalidOption, format!("{text:?} is not a version such as 1.2.0"));
        let core = text.split(['-', '+']).next().unwrap_or(text);
        let numbers: Vec<u32> = core.split('.').map_while(|part| part.parse().ok()).collect();
        match numbers[..] {
            [major, minor, patch] if core.split('.').count() == 3 => Ok(Self { major, minor, patch }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for ReplayVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A range of versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayVersions {
    /// The oldest.
    pub min: ReplayVersion,
    /// The newest.
    pub max: ReplayVersion,
}

impl Default for ReplayVersions {
    fn default() -> Self {
        Self { min: ReplayVersion { major: 0, minor: 0, patch: 0 }, max: ReplayVersion::current() }
    }
}

impl ReplayVersions {
    /// Whether a history of this version is replayed here.
    pub fn contains(&self, version: ReplayVersion) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// The range as claims name it.
    pub fn range(&self) -> ReplayRange {
        ReplayRange { min: self.min.number(), max: self.max.number() }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let Self { min, max } = self;
        if min > max {
            return Err(invalid(
                "supportedReplayVersions",
                format!("{min} to {max}"),
                "a min that is at most max",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        let version: ReplayVersion = "1.20.3".parse().expect("a version");
        assert_eq!(version, ReplayVersion { major: 1, minor: 20, patch: 3 });
        assert_eq!(version.to_string(), "1.20.3");
        assert!(version > "1.3.40".parse().expect("a version"));
        for bad in ["", "1", "1.2", "1.2.x", "1.2.3.4", "-1.2.3"] {
            assert!(bad.parse::<ReplayVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_default_range_takes_what_this_version_writes_and_nothing_newer() {
        let ReplayRange { min, max } = ReplayVersions::default().range();
        assert_eq!((min, max), (0, replay_version::current()));
    }

    #[test]
    fn the_default_range_holds_this_version() {
        assert!(ReplayVersions::default().contains(ReplayVersion::current()));
    }
}
