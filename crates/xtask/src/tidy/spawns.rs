//! Rule `spawn`: nobody starts a task and lets go of it; the engine owns every handle.
//!
//! Sees `tokio::spawn(…);` and `let _ = tokio::spawn(…);`, the same with another path, and with a runtime's or a
//! handle's `.spawn`. A set of tasks keeps what it spawns.

use super::{
    finding::Finding,
    source::{Source, is_word, matching},
};

/// Modules that may let go of a task, each for its reason.
const OWNERS: &[&str] = &[
    // Owns every background part: what it lets go of is in its own table.
    "engine", "service",
];

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let module = source.engine_module().unwrap_or("");
    let owner = OWNERS.iter().any(|owner| module == *owner || module.starts_with(&format!("{owner}/")));
    if owner {
        return Vec::new();
    }
    let code = source.code.as_str();
    let calls = code.match_indices("spawn(").filter(|(at, _)| is_word(code, *at, 5) && !source.is_test(*at));
    calls
        .filter(|(at, _)| is_detached(code, *at))
        .map(|(at, _)| {
            let text =
                "a task whose handle is dropped cannot be drained or stopped: keep the handle in a Service";
            Finding::new(&source.path, source.line(at), "spawn", text)
        })
        .collect()
}

fn is_detached(code: &str, at: usize) -> bool {
    let path = |character: char| character.is_alphanumeric() || "_:.()".contains(character);
    let before = code[..at].trim_end_matches(path).trim_end();
    let receiver = code[before.len()..at].trim();
    let runtime = ["runtime.", "handle.", "current()."].iter().any(|name| receiver.ends_with(name));
    if !receiver.ends_with("::") && !runtime {
        return false;
    }
    let after = code[matching(code, at + "spawn".len())..].trim_start();
    let statement = before.is_empty() || before.ends_with([';', '{', '}']);
    after.starts_with(';') && (statement || before.ends_with("let _ ="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Source::new("crates/holdfast-core/src/turn/a.rs", text)).len()
    }

    #[test]
    fn a_dropped_handle_is_found() {
        assert_eq!(count("fn a() { tokio::spawn(async {}); }"), 1);
        assert_eq!(count("fn a() { let _ = tokio::task::spawn(b()); }"), 1);
        assert_eq!(count("fn a() { b();\n self.handle.spawn(c()); }"), 1);
    }

    #[test]
    fn a_kept_or_returned_handle_is_not() {
        assert_eq!(count("fn a() { let task = tokio::spawn(async {}); tasks.push(task); }"), 0);
        assert_eq!(count("fn a() -> H { tokio::spawn(async {}) }"), 0);
        assert_eq!(count("fn a() { let mut workers = JoinSet::new(); workers.spawn(b()); }"), 0);
    }

    #[test]
    fn tests_and_the_owning_rooms_may() {
        assert_eq!(count("#[cfg(test)] mod tests { fn a() { tokio::spawn(b()); } }"), 0);
        let engine = Source::new("crates/holdfast-core/src/engine/run.rs", "fn a() { tokio::spawn(b()); }");
        assert!(check(&engine).is_empty());
    }
}
