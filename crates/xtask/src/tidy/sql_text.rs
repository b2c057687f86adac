//! Rule `sql-text`: a statement is a file, never a string in Rust.
//!
//! Test code may ask the database what it likes. A string is SQL when it begins with a verb of SQL and goes on in
//! SQL's shape, so that English sentences with the same first word pass.

use super::{finding::Finding, source::Source};

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if source.path.starts_with("crates/xtask/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for literal in &source.literals {
        if !source.is_test(literal.offset) && is_sql(&literal.text) {
            let line = source.line(literal.offset);
            found.push(Finding::new(
                &source.path,
                line,
                "sql-text",
                "move the statement to sql/<family>/<verb>.sql",
            ));
        }
    }
    found
}

fn is_sql(text: &str) -> bool {
    let plain = text.replace("\\n", " ").to_lowercase();
    let plain = without_comments(&plain);
    let words: Vec<&str> = plain.split_whitespace().collect();
    let (Some(verb), Some(next)) = (words.first(), words.get(1)) else { return false };
    let has = |word: &str| words.contains(&word);
    match *verb {
        "select" => {
            has("from")
                || next.contains(['(', '$', '*', '\''])
                || next.starts_with(|c: char| c.is_ascii_digit())
        }
        "insert" => *next == "into",
        "update" => has("set"),
        "delete" => *next == "from",
        "with" => words
            .windows(2)
            .any(|pair| pair[0] == "as" && (pair[1].starts_with('(') || pair[1].starts_with("mater"))),
        "create" | "alter" | "drop" | "truncate" | "lock" => OBJECTS.contains(&next.trim_end_matches(';')),
        _ => false,
    }
}

const OBJECTS: &[&str] = &[
    "table",
    "index",
    "unique",
    "schema",
    "sequence",
    "function",
    "type",
    "temp",
    "temporary",
    "database",
    "role",
    "extension",
    "view",
    "materialized",
    "trigger",
    "system",
    "unlogged",
];

fn without_comments(text: &str) -> String {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_seen() {
        for text in [
            "select id from node",
            "SELECT 1",
            "select pg_backend_pid()",
            "insert into node values ($1)",
            "update node\\n set epoch = 2",
            "delete from node",
            "with a as (select 1) select * from a",
            "create table a (b int)",
            "/* why */ alter table a add b int",
            "drop schema x cascade",
        ] {
            assert!(is_sql(text), "{text}");
        }
    }

    #[test]
    fn english_is_not() {
        for text in [
            "select an item first",
            "update the options",
            "with 3 attempts",
            "create a runtime",
            "delete",
            "insert",
        ] {
            assert!(!is_sql(text), "{text}");
        }
    }

    #[test]
    fn tests_may_ask_what_they_like() {
        let text = "fn a() { b(\"delete from x\"); }";
        assert_eq!(check(&Source::new("crates/holdfast-core/src/a.rs", text)).len(), 1);
        assert!(check(&Source::new("crates/holdfast-core/tests/it/a.rs", text)).is_empty());
    }
}
