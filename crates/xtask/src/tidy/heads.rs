//! Rule `head`: a Rust module begins by saying what it does.

use super::{finding::Finding, source::Source};

pub(crate) fn check(source: &Source) -> Option<Finding> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let words = first.strip_prefix("//!").map(str::trim);
    if words.is_some_and(|words| words.contains(' ')) {
        return None;
    }
    Some(Finding::new(
        &source.path,
        1,
        "head",
        "begin the module with a //! sentence: what it does, what it never does",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_a_head_is_found() {
        assert!(check(&Source::new("a.rs", "use std::fmt;\n")).is_some());
        assert!(check(&Source::new("a.rs", "//!\nuse std::fmt;\n")).is_some());
        assert!(check(&Source::new("a.rs", "")).is_some());
    }

    #[test]
    fn a_sentence_is_a_head() {
        assert!(check(&Source::new("a.rs", "//! Keeps leases.\n")).is_none());
    }
}
