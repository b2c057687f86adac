//! One broken rule at one place.

use std::fmt;

/// Ordered by file and line, as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the repository's root, with forward slashes.
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// Short name of the rule.
    pub(crate) rule: &'static str,
    /// What is wrong, and what to do instead.
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, rule, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {} {}", self.file, self.line, self.rule, self.text)
    }
}
