//! The words in which a broken rule is told: option, value, rule. The same as on the TypeScript side.

use std::{fmt::Display, time::Duration};

use crate::error::{Error, ErrorKind, Result};

/// Longest time that an option may hold: a hundred years, far above any sensible time and exact in every unit.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The error of a broken rule.
pub(crate) fn invalid(option: &str, value: impl Display, rule: impl Display) -> Error {
    Error::new(
        ErrorKind::InvalidOption,
        format!("invalid option {option}: {value} is not allowed; it must be {rule}"),
    )
}

/// A time of at least 1 ms.
pub(crate) fn positive(option: &str, value: Duration) -> Result<()> {
    if value.as_millis() == 0 {
        return Err(invalid(option, value.as_millis(), "at least 1 ms"));
    }
    bounded(option, value)
}

/// A time that may be nothing.
pub(crate) fn bounded(option: &str, value: Duration) -> Result<()> {
    if value > LONGEST {
        return Err(invalid(option, value.as_millis(), format!("at most {} ms", LONGEST.as_millis())));
    }
    Ok(())
}

/// `base` must not be above `max`, an option of this name.
pub(crate) fn ordered(option: &str, base: Duration, max_option: &str, max: Duration) -> Result<()> {
    bounded(option, base)?;
    bounded(max_option, max)?;
    if base > max {
        let rule = format!("at most {max_option} ({})", max.as_millis());
        return Err(invalid(option, base.as_millis(), rule));
    }
    Ok(())
}

/// A number between two bounds.
pub(crate) fn within(option: &str, value: usize, least: usize, most: usize) -> Result<()> {
    if value < least || value > most {
        return Err(invalid(option, value, format!("a whole number from {least} to {most}")));
    }
    Ok(())
}

/// A text of 1 to `most` bytes without NUL.
pub(crate) fn text(option: &str, value: &str, most: usize) -> Result<()> {
    if value.is_empty() || value.len() > most || value.contains('\0') {
        let head: String = value.chars().take(80).collect();
        return Err(invalid(option, format!("{head:?}"), format!("a text of 1 to {most} bytes without NUL")));
    }
    Ok(())
}
