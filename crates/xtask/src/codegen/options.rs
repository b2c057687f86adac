//! `docs/options.md`, from the comments of the option types in `sdk/options.ts`.
//!
//! A property is a comment, whose last sentence is `Default: …`, and a line `name?: type`. A property without them stops the
//! page, so that none can be left out.

use std::fmt::Write as _;

use crate::tidy::Tree;

const SOURCE: &str = "sdk/options.ts";

const HEAD: &str = "# Options

*Written by `cargo xtask codegen` from the comments in `sdk/options.ts`: edit those.*

A value is taken from the argument, then from the environment variable, then it is the default; a blank variable is unset.
`runtime.options()` and `provider.options()` show every value in force and where it comes from. Times are numbers of ms, or
texts such as `'250ms'`, `'30s'`, `'5m'`, `'1h'`, `'7d'`, also in variables; lists in variables are separated by commas,
objects are JSON. Unknown names, wrong types and impossible combinations are refused by `new Runtime(...)` and
`PostgresProvider.connect(...)` with the name, the value and the rule.
";

/// A property of an option type.
struct Property {
    name: String,
    default: String,
    meaning: String,
}

/// The page; `None` in a tree without the source.
pub(crate) fn render(tree: &Tree) -> Option<String> {
    let source = &tree.texts.iter().find(|file| file.path == SOURCE)?.text;
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "Of a runtime",
        "`new Runtime(provider, options)`",
        source,
        "JsRuntimeOptions",
        |name| format!("HOLDFAST_{}", upper_snake(name)),
    );
    section(
        &mut page,
        "Of a provider",
        "`PostgresProvider.connect(url, options)`; what they do together is in [pool](pool.md)",
        source,
        "JsPoolOptions",
        |name| match name {
            "directUrl" => "HOLDFAST_DIRECT_URL".to_owned(),
            _ => format!("HOLDFAST_POOL_{}", upper_snake(name)),
        },
    );
    Some(page)
}

fn section(
    page: &mut String,
    title: &str,
    what: &str,
    source: &str,
    object: &str,
    variable: impl Fn(&str) -> String,
) {
    let _ =
        write!(page, "\n## {title}\n\n{what}.\n\n| option, variable | default | meaning |\n|---|---|---|\n");
    for Property { name, default, meaning } in properties(source, object) {
        let variable = variable(&name);
        let _ = writeln!(page, "| `{name}`<br>`{variable}` | {default} | {meaning} |");
    }
}

fn properties(source: &str, object: &str) -> Vec<Property> {
    let start = format!("export interface {object} {{");
    let lines = source.lines().skip_while(|line| *line != start).skip(1).take_while(|line| *line != "}");
    let mut found = Vec::new();
    let mut comment = String::new();
    for line in lines.map(str::trim) {
        if let Some(text) = line.strip_prefix("/**").or_else(|| line.strip_prefix('*')) {
            comment.push(' ');
            comment.push_str(text.trim_end_matches("*/").trim_end_matches('/').trim());
        } else if let Some((name, _)) = line.split_once("?:") {
            let text = comment.trim().replace('|', "\\|");
            let (meaning, default) = text.rsplit_once("Default: ").unwrap_or((&text, "**missing**"));
            found.push(Property {
                name: name.to_owned(),
                default: default.trim().trim_end_matches('.').to_owned(),
                meaning: meaning.trim().to_owned(),
            });
            comment.clear();
        }
    }
    found
}

fn upper_snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_uppercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_a_row() {
        let mut tree = Tree::default();
        let source = "export interface JsRuntimeOptions {\n  /** Tries; at least 1. Default: 10. */\n  maxAttempts?: number\n  /**\n   * A long\n   * rule. Default: 5 s.\n   */\n  staleAfterMs?: Duration\n}\nexport interface JsPoolOptions {\n}\n";
        tree.file(SOURCE, source.to_owned());
        let page = render(&tree).expect("the source is there");
        assert!(
            page.contains("| `maxAttempts`<br>`HOLDFAST_MAX_ATTEMPTS` | 10 | Tries; at least 1. |"),
            "{page}"
        );
        assert!(
            page.contains("| `staleAfterMs`<br>`HOLDFAST_STALE_AFTER_MS` | 5 s | A long rule. |"),
            "{page}"
        );
    }
}
