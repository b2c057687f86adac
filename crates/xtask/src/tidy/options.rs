//! Rule `option`: what the TypeScript side offers, the binding takes, name for name.
//!
//! The binding destructures its object without `..`, so Rust's own knobs are complete; this closes the gap on the other
//! side, where an option that nobody reads would be accepted in silence.

use std::collections::{BTreeMap, BTreeSet};

use super::{finding::Finding, tree::Tree};

const SDK: &str = "sdk/option-check.ts";

/// The table of names on the TypeScript side, and the struct it must equal with its file.
const PAIRS: &[(&str, &str, &str)] = &[
    ("const RUNTIME:", "pub struct JsRuntimeOptions", "crates/holdfast-napi/src/options/runtime.rs"),
    ("const POOL:", "pub struct JsPoolOptions", "crates/holdfast-napi/src/options/pool.rs"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = |path: &str| tree.texts.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let mut found = Vec::new();
    for (table, object, binding) in PAIRS {
        let (Some(sdk), Some(rust)) = (text(SDK), text(binding)) else { continue };
        let offered = names(sdk, table, |line| line.split_once(':').map(|(name, _)| name.to_owned()));
        let taken = names(rust, object, |line| {
            line.strip_prefix("pub ").and_then(|field| field.split_once(':')).map(|(name, _)| camel(name))
        });
        found.extend(differences(&offered, &taken, table, binding));
    }
    found
}

fn differences(
    offered: &BTreeMap<String, usize>,
    taken: &BTreeMap<String, usize>,
    table: &str,
    binding: &str,
) -> Vec<Finding> {
    let keys = |map: &BTreeMap<String, usize>| map.keys().cloned().collect::<BTreeSet<_>>();
    let (offers, takes) = (keys(offered), keys(taken));
    let mut found = Vec::new();
    for name in offers.difference(&takes) {
        let text = format!("`{name}` is offered, but the binding does not take it");
        found.push(Finding::new(SDK, offered[name], "option", text));
    }
    for name in takes.difference(&offers) {
        let text = format!("`{name}` is not offered by `{table}` of {SDK}");
        found.push(Finding::new(binding, taken[name], "option", text));
    }
    found
}

/// Names in the braces after `start`, with their lines.
fn names(text: &str, start: &str, name: impl Fn(&str) -> Option<String>) -> BTreeMap<String, usize> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.contains(start)).skip(1);
    let body = lines.take_while(|(_, line)| !line.starts_with('}'));
    body.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter_map(|(index, line)| Some((name(line.trim())?, index + 1)))
        .collect()
}

fn camel(snake: &str) -> String {
    let mut words = snake.split('_');
    let first = words.next().unwrap_or("").to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        name + &head.to_uppercase() + tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(sdk: &str, binding: &str) -> usize {
        let mut tree = Tree::default();
        tree.file(SDK, format!("const RUNTIME: Table = {{\n{sdk}}}\nconst POOL: Table = {{\n}}\n"));
        for (_, object, path) in PAIRS {
            let fields = if path.ends_with("runtime.rs") { binding } else { "" };
            tree.file(path, format!("//! x\n{object} {{\n{fields}}}\n"));
        }
        check(&tree).len()
    }

    #[test]
    fn equal_tables_pass() {
        assert_eq!(
            count(
                "  // why\n  maxAttempts: count(1),\n",
                "    /// Doc.\n    pub max_attempts: Option<f64>,\n"
            ),
            0
        );
    }

    #[test]
    fn an_option_of_one_side_is_found() {
        assert_eq!(count("  maxAttempts: count(1),\n", ""), 1);
        assert_eq!(count("", "    pub max_attempts: Option<f64>,\n"), 1);
    }
}
