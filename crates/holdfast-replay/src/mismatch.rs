//! What can be wrong: code that does not fit its history, and history that does not fit itself.

use std::{error::Error, fmt};

/// The code asked for something else than history says it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Event id at which they part.
    pub position: u32,
    /// What history holds there.
    pub expected: String,
    /// What the code did.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nondeterministic: at event {} history has {} but the code gave {}",
            self.position, self.expected, self.found
        )
    }
}

impl Error for Mismatch {}

/// Stored events that cannot be a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptHistory {
    /// Event id at which it was found.
    pub position: u32,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for CorruptHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corrupt history at event {}: {}", self.position, self.text)
    }
}

impl Error for CorruptHistory {}
