//! Rule `attribute`: a lint is expected with a reason, never allowed in silence.

use super::{finding::Finding, source::Source};

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let spaceless = |at: usize| source.code[..at].trim_end().ends_with(['[', ',']);
    let mut found = Vec::new();
    for (at, _) in source.code.match_indices("allow(").filter(|(at, _)| spaceless(*at)) {
        found.push(Finding::new(
            &source.path,
            source.line(at),
            "attribute",
            "use #[expect(lint, reason = \"…\")] in place of allow",
        ));
    }
    for (at, _) in source.code.match_indices("#[ignore") {
        let text = "an ignored test tests nothing: assert what holds today";
        found.push(Finding::new(&source.path, source.line(at), "attribute", text));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Source::new("a.rs", text)).len()
    }

    #[test]
    fn allow_is_found_in_every_form() {
        assert_eq!(count("#[allow(dead_code)] fn a() {}"), 1);
        assert_eq!(count("#![allow(dead_code)]"), 1);
        assert_eq!(count("#[cfg_attr(test, allow(dead_code))]"), 1);
    }

    #[test]
    fn a_function_of_that_name_and_a_comment_are_not() {
        assert_eq!(count("// #[allow(x)]\nfn b() { gate.allow(1) }\nfn allow(x: u8) {}"), 0);
    }

    #[test]
    fn an_ignored_test_is_found() {
        assert_eq!(count("#[ignore = \"slow\"] fn a() {}"), 1);
    }
}
