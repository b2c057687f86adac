//! Rules `file-length` and `function-length`: a file can be read at one sitting, a function on one screen.
//!
//! What was longer when the rule came stands in the ratchet with its size: it may shrink, never grow, and leaves the
//! ratchet once it fits.

use super::{
    finding::Finding,
    source::{Source, TextFile, is_word, matching},
    tree::{RATCHET, Tree},
};

/// A file past this needs a reason: the word `length:` in its first lines.
const REASON_AT: usize = 400;
/// No file is longer.
const FILE_LIMIT: usize = 600;
/// No function is longer.
const FUNCTION_LIMIT: usize = 70;
/// The head is searched for the reason this far.
const HEAD_LINES: usize = 40;

type Ratchet = [(usize, String)];

pub(crate) fn check_file(file: &TextFile, ratchet: &Ratchet) -> Option<Finding> {
    let lines = counted_lines(file)?;
    let reason = file.text.lines().take(HEAD_LINES).any(|line| line.contains("length:"));
    let text = if lines > FILE_LIMIT {
        format!("{lines} lines, {FILE_LIMIT} is the most: split it by responsibility")
    } else if lines > REASON_AT && !reason {
        format!("{lines} lines: split it, or give the reason after `length:` in its head")
    } else {
        return None;
    };
    let known = allowed(ratchet, &file.path) >= lines;
    (!known).then(|| Finding::new(&file.path, 1, "file-length", text))
}

/// Code that people write; data, documents and generated contracts have no limit.
fn counted_lines(file: &TextFile) -> Option<usize> {
    let code = [".rs", ".ts", ".mts", ".js", ".mjs", ".cjs", ".sql"]
        .iter()
        .any(|ending| file.path.ends_with(ending));
    let written = code && !file.path.starts_with("index.");
    written.then(|| file.text.lines().count())
}

pub(crate) fn check_functions(source: &Source, ratchet: &Ratchet) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, line, lines) in functions(source) {
        let place = format!("{}::{name}", source.path);
        if lines > FUNCTION_LIMIT && lines > allowed(ratchet, &place) {
            let text = format!("`{name}` has {lines} lines, {FUNCTION_LIMIT} is the most");
            found.push(Finding::new(&source.path, line, "function-length", text));
        }
    }
    found
}

/// Every line of the ratchet still says the size of something that is too long.
pub(crate) fn check_ratchet(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (lines, place) in &tree.ratchet {
        let (path, function) =
            place.split_once("::").map_or((place.as_str(), None), |(path, name)| (path, Some(name)));
        let actual = match function {
            None => tree.texts.iter().find(|file| file.path == path).and_then(counted_lines),
            Some(name) => tree
                .rust
                .iter()
                .filter(|source| source.path == path)
                .flat_map(functions)
                .filter(|(found, ..)| found == name)
                .map(|(.., lines)| lines)
                .max(),
        };
        let limit = if function.is_some() { FUNCTION_LIMIT } else { REASON_AT };
        match actual {
            Some(actual) if actual >= *lines && actual > limit => {}
            actual => {
                let text =
                    format!("{place} is down to {} lines: lower or drop its entry", actual.unwrap_or(0));
                found.push(Finding::new(RATCHET, 1, "ratchet", text));
            }
        }
    }
    found
}

fn allowed(ratchet: &Ratchet, place: &str) -> usize {
    ratchet.iter().find(|(_, known)| known == place).map_or(0, |(lines, _)| *lines)
}

/// Name, first line and number of lines of every function with a body.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let code = source.code.as_str();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ").filter(|(at, _)| is_word(code, *at, 2)) {
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(open) = body(code, at + 3 + name.len()).filter(|_| !name.is_empty()) else { continue };
        let (first, last) = (source.line(at), source.line(matching(code, open).saturating_sub(1)));
        found.push((name, first, last + 1 - first));
    }
    found
}

/// Offset of the brace that opens the body; none for a declaration.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while at < code.len() {
        match code.as_bytes()[at] {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = matching(code, at),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: usize, head: &str) -> TextFile {
        TextFile { path: "a.rs".to_owned(), text: format!("{head}\n{}", "let a = 1;\n".repeat(lines - 1)) }
    }

    fn function(lines: usize) -> Source {
        Source::new(
            "a.rs",
            &format!("fn long(a: [u8; 2]) -> u8 {{\n{}}}\nfn short() {{}}\n", "b();\n".repeat(lines - 2)),
        )
    }

    #[test]
    fn a_long_file_needs_a_reason_and_a_very_long_one_is_split() {
        assert!(check_file(&file(400, "//! Head."), &[]).is_none());
        assert!(check_file(&file(401, "//! Head."), &[]).is_some());
        assert!(check_file(&file(401, "//! Head; length: one table."), &[]).is_none());
        assert!(check_file(&file(601, "//! Head; length: one table."), &[]).is_some());
    }

    #[test]
    fn a_function_fits_a_screen() {
        assert!(check_functions(&function(70), &[]).is_empty());
        assert_eq!(check_functions(&function(71), &[]).len(), 1);
    }

    #[test]
    fn the_ratchet_lets_known_excess_stay_but_not_grow() {
        let ratchet = [(80, "a.rs::long".to_owned())];
        assert!(check_functions(&function(80), &ratchet).is_empty());
        assert_eq!(check_functions(&function(81), &ratchet).len(), 1);
        let mut tree = Tree { ratchet: ratchet.to_vec(), ..Tree::default() };
        tree.file("a.rs", function(75).text);
        assert_eq!(check_ratchet(&tree).len(), 1);
    }
}
