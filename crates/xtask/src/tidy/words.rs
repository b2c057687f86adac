//! Rule `word`: what never stands in a file: reminders to oneself, skipped tests, paths of somebody's machine.

use super::{finding::Finding, source::TextFile};

pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    let ours = file.path.starts_with("crates/xtask/src/tidy/words");
    if ours || file.path.ends_with(".lock") || file.path == "package-lock.json" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (words, applies, text) in RULES {
            if applies(&file.path) && words.iter().any(|word| line.contains(word)) {
                found.push(Finding::new(&file.path, index + 1, "word", *text));
            }
        }
    }
    found
}

type Rule = (&'static [&'static str], fn(&str) -> bool, &'static str);

const RULES: &[Rule] = &[
    (&["TODO", "FIXME", "XXX:"], is_code, "do it, or write down the plan and its owner elsewhere"),
    (
        &["it.skip(", "test.skip(", "describe.skip(", "skip: true", "it.only(", "test.only(", "test.todo("],
        is_test,
        "a skipped test tests nothing",
    ),
    (&[": any)", ": any;", ": any,", "as any", "<any>", "any[]"], is_typescript, "say the type, or unknown"),
    (&["/work/", "/root/", "/home/runner"], is_any, "a path of one machine"),
];

fn is_code(path: &str) -> bool {
    !path.ends_with(".md")
}

fn is_test(path: &str) -> bool {
    path.starts_with("__test__/")
}

fn is_typescript(path: &str) -> bool {
    path.ends_with(".ts") || path.ends_with(".mts")
}

fn is_any(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn reminders_are_found_in_code_and_not_in_the_style_page() {
        assert_eq!(count("sdk/a.ts", "// TODO later"), 1);
        assert_eq!(count("STYLE.md", "no TODO"), 0);
    }

    #[test]
    fn skipped_tests_are_found() {
        assert_eq!(count("__test__/a.test.mjs", "test.skip('a', () => {})"), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found_anywhere() {
        assert_eq!(count("README.md", "see /root/x"), 1);
        assert_eq!(count("README.md", "see docs/x"), 0);
    }

    #[test]
    fn an_untyped_value_is_found() {
        assert_eq!(count("sdk/a.ts", "function f(a: any) {}"), 1);
        assert_eq!(count("sdk/a.ts", "// if there are any, go on"), 0);
    }
}
