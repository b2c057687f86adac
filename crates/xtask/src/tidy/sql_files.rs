//! Rule `sql-file`: every statement file is included by exactly one place, and every included file is there.

use std::collections::BTreeMap;

use super::{finding::Finding, source::Source, tree::Tree};

const CRATE: &str = "crates/holdfast-core/";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut used: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for source in &tree.rust {
        for (path, line) in included(source) {
            used.entry(path).or_default().push((source.path.clone(), line));
        }
    }
    let mut found = Vec::new();
    let is_statement = |path: &str| path.starts_with(CRATE) && path.ends_with(".sql");
    let files: Vec<&str> =
        tree.texts.iter().map(|file| file.path.as_str()).filter(|path| is_statement(path)).collect();
    for path in &files {
        match used.get(*path).map(Vec::as_slice) {
            None => found.push(Finding::new(
                path,
                1,
                "sql-file",
                "no include_str! names this file: delete it or use it",
            )),
            Some([_]) => {}
            Some(places) => {
                for (place, line) in &places[1..] {
                    let text = format!("{path} is included more than once: share the typed function");
                    found.push(Finding::new(place, *line, "sql-file", text));
                }
            }
        }
    }
    for (path, places) in
        used.iter().filter(|(path, _)| path.ends_with(".sql") && !files.contains(&path.as_str()))
    {
        for (place, line) in places {
            found.push(Finding::new(place, *line, "sql-file", format!("{path} does not exist")));
        }
    }
    found
}

/// Paths that the file includes as text, seen from the root, with their lines. In a file that builds the path in a
/// macro (`include_str!(concat!(…))`), every literal that looks like `family/verb` counts.
fn included(source: &Source) -> Vec<(String, usize)> {
    let by_macro = source.code.contains("include_str!(concat!(");
    let mut found = Vec::new();
    for literal in source.literals.iter().filter(|literal| !source.is_test(literal.offset)) {
        let direct = source.code[..literal.offset].trim_end().ends_with("include_str!(");
        let path = if direct {
            join(folder(&source.path), &literal.text)
        } else if by_macro && is_statement_name(&literal.text) {
            format!("{CRATE}sql/{}.sql", literal.text)
        } else {
            continue;
        };
        found.push((path, source.line(literal.offset)));
    }
    found
}

fn is_statement_name(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    text.split_once('/').is_some_and(|(family, verb)| is_word(family) && is_word(verb))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.file(&format!("{CRATE}{path}"), (*text).to_owned());
        }
        tree
    }

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        check(&tree(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_included_once_passes() {
        let a = "const A: &str = include_str!(\"../../sql/turn/claim.sql\");";
        assert!(texts(&[("src/store/turn.rs", a), ("sql/turn/claim.sql", "select 1")]).is_empty());
        let b = "macro_rules! m { ($n:literal) => { include_str!(concat!(\"../../sql/\", $n, \".sql\")) } }\n\
                 m!(\"turn/claim\");";
        assert!(texts(&[("src/store/turn.rs", b), ("sql/turn/claim.sql", "select 1")]).is_empty());
    }

    #[test]
    fn unused_missing_and_doubled_files_are_found() {
        let a = "const A: &str = include_str!(\"../../sql/turn/claim.sql\");";
        assert_eq!(texts(&[("sql/turn/claim.sql", "select 1")]).len(), 1);
        assert_eq!(texts(&[("src/store/turn.rs", a)]).len(), 1);
        let twice = [("src/store/turn.rs", a), ("src/store/node.rs", a), ("sql/turn/claim.sql", "select 1")];
        assert_eq!(texts(&twice).len(), 1);
    }
}
