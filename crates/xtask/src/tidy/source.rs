//! One Rust file as the rules see it.

use super::scan::{Literal, scan};

/// A file's path and text.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    /// Path from the root, with forward slashes.
    pub(crate) path: String,
    /// Whole text.
    pub(crate) text: String,
}

/// A Rust file: text, masked code, literals, and which part is test code.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path from the root, with forward slashes.
    pub(crate) path: String,
    /// Whole text.
    pub(crate) text: String,
    /// The text with strings and comments blanked, offset for offset.
    pub(crate) code: String,
    /// String literals in order.
    pub(crate) literals: Vec<Literal>,
    tests: Vec<(usize, usize)>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, literals) = scan(text);
        let tests = if is_test_file(path) { vec![(0, text.len() + 1)] } else { test_modules(&code) };
        Self { path: path.to_owned(), text: text.to_owned(), code, literals, tests }
    }

    /// Line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Whether the offset lies in a test file or in a `#[cfg(test)]` module.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|(from, to)| (*from..*to).contains(&offset))
    }

    /// Path below `src/` of the engine crate, without the extension: `turn/runner`.
    pub(crate) fn engine_module(&self) -> Option<&str> {
        self.path.strip_prefix("crates/holdfast-core/src/")?.strip_suffix(".rs")
    }
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/")
}

fn test_modules(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (from, _) in code.match_indices("#[cfg(test)]") {
        let Some(open) = code[from..].find(['{', ';']).map(|at| from + at) else { continue };
        if code.as_bytes()[open] == b'{' {
            found.push((from, matching(code, open)));
        }
    }
    found
}

/// Offset just past the bracket that closes the one at `open`; the end of the code when none does.
pub(crate) fn matching(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Whether a match of a word at `offset` is a whole word.
pub(crate) fn is_word(code: &str, offset: usize, length: usize) -> bool {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = code.as_bytes();
    let before = offset.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(part);
    !before && !bytes.get(offset + length).is_some_and(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_is_test_code_and_what_follows_is_not() {
        let source = Source::new("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\nfn c() {}");
        let at = |word: &str| source.text.find(word).unwrap();
        assert!(!source.is_test(at("fn a")) && source.is_test(at("fn b")) && !source.is_test(at("fn c")));
        assert_eq!(source.line(at("fn c")), 4);
    }
}
