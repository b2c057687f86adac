//! Versions of this package as the numbers that the database compares.
//!
//! A turn row tells the newest version that wrote the history of its instance; a claim takes a range of them.

/// Each part of a version takes this many places: versions compare as their numbers do.
const PLACES: i64 = 1_000_000;

/// The histories that a node replays, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayRange {
    /// The oldest.
    pub min: i64,
    /// The newest.
    pub max: i64,
}

impl ReplayRange {
    /// Every history.
    pub const ALL: Self = Self { min: 0, max: i64::MAX };
}

/// A version as a number; parts above 999 999 count as that.
pub const fn number(major: u32, minor: u32, patch: u32) -> i64 {
    const fn part(part: u32) -> i64 {
        let part = part as i64;
        if part < PLACES { part } else { PLACES - 1 }
    }
    (part(major) * PLACES + part(minor)) * PLACES + part(patch)
}

/// A number as a version.
pub fn text(number: i64) -> String {
    let (major, rest) = (number / (PLACES * PLACES), number % (PLACES * PLACES));
    format!("{major}.{}.{}", rest / PLACES, rest % PLACES)
}

/// The version of this build.
pub fn current() -> i64 {
    let part = |text: &str| text.parse().unwrap_or(0);
    number(
        part(env!("CARGO_PKG_VERSION_MAJOR")),
        part(env!("CARGO_PKG_VERSION_MINOR")),
        part(env!("CARGO_PKG_VERSION_PATCH")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_as_versions_do_and_tell_them() {
        assert!(number(1, 20, 3) > number(1, 3, 40));
        assert!(number(2, 0, 0) > number(1, 999_999, 999_999));
        assert_eq!(text(number(1, 20, 3)), "1.20.3");
        assert_eq!(text(current()), env!("CARGO_PKG_VERSION"));
    }
}
