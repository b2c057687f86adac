//! Rule `lock`: lock files name packages and versions, not the registry that somebody happened to use.

use super::{finding::Finding, source::TextFile};

pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    let is_bad: fn(&str) -> bool = match file.path.as_str() {
        "package-lock.json" | "benches/package-lock.json" => {
            |line| line.trim_start().starts_with("\"resolved\"") && line.contains("://")
        }
        "Cargo.lock" => |line| line.starts_with("source = ") && line != INDEX,
        _ => return Vec::new(),
    };
    let text = "a package comes from one registry address: write the lock file without it";
    let lines = file.text.lines().enumerate().filter(|(_, line)| is_bad(line));
    lines.map(|(index, _)| Finding::new(&file.path, index + 1, "lock", text)).collect()
}

/// How Cargo names the public index, whatever mirror serves it.
const INDEX: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn an_address_in_a_lock_file_is_found() {
        assert_eq!(count("package-lock.json", "      \"resolved\": \"https://example.org/a.tgz\",\n"), 1);
        assert_eq!(count("Cargo.lock", "source = \"git+https://example.org/a\"\n"), 1);
        assert_eq!(count("Cargo.lock", &format!("{INDEX}\n")), 0);
    }
}
