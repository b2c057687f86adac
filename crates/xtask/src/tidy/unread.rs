//! Rule `unread`: each option is read by the engine, or by the sdk that carries it out.
//!
//! An option that is accepted and changes nothing is worse than none.

use super::{finding::Finding, tree::Tree};

const CONFIG: &str = "crates/holdfast-core/src/config/";
const POOL_CONFIG: &str = "crates/holdfast-core/src/pool/config.rs";
const ENGINE: &str = "crates/holdfast-core/src/";

/// Fields that the sdk carries out, by their names there.
const IN_TYPESCRIPT: &[&str] =
    &["payload_byte_limit", "log_format", "log_level", "service_name", "service_version"];

/// Fields that are read through a method of their struct.
const METHODS: &[(&str, &str)] = &[
    ("self_fence_margin", "margin"),
    ("idle_timeout", "idle"),
    ("retry_backoff_base", "renewal"),
    ("retry_backoff_max", "renewal"),
    ("heartbeat_interval", "times"),
    ("stale_after", "times"),
    ("worker_node_id", "node_id"),
    ("history_event_limit", "of_execution"),
    ("history_byte_limit", "of_execution"),
    ("fan_out_limit", "of_execution"),
    ("mailbox_limit", "of_execution"),
];

/// Fields that nobody reads; must be empty in a release.
pub(crate) const UNREAD: &[&str] = &[
    "cleanup_interval",
    "gauge_poll_interval",
    "hang_action",
    "hang_timeout",
    "idle_timeout",
    "listener",
    "lock_renewal_buffer",
    "lock_timeout",
    "max_sessions",
    "replay_versions",
    "retention",
    "self_fence_margin",
    "stall_timeout",
    "unknown_instance_retention",
    "unregistered_backoff_base",
    "unregistered_backoff_max",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust.iter().filter(|file| file.path.starts_with(CONFIG) || file.path == POOL_CONFIG) {
        for Field { object, name, line } in fields(&file.code) {
            if IN_TYPESCRIPT.contains(&name) {
                continue;
            }
            let outside =
                |path: &str| path.starts_with(ENGINE) && !path.starts_with(CONFIG) && path != file.path;
            let is_read =
                tree.rust.iter().any(|other| outside(&other.path) && reads(&other.code, object, name));
            if !is_read && !UNREAD.contains(&name) {
                let text = format!("nobody reads `{name}` of {object}: wire it up");
                found.push(Finding::new(&file.path, line, "unread", text));
            }
        }
    }
    found
}

/// A field of an options struct.
struct Field<'a> {
    object: &'a str,
    name: &'a str,
    line: usize,
}

fn fields(code: &str) -> Vec<Field<'_>> {
    let (mut object, mut found) = ("", Vec::new());
    for (index, line) in code.lines().enumerate() {
        if let Some(name) = line.strip_prefix("pub struct ") {
            object = name.trim_end_matches(" {");
        } else if line == "}" {
            object = "";
        } else if object.ends_with("Config")
            && object != "EngineConfig"
            && let Some((name, _)) = line.strip_prefix("    pub ").and_then(|field| field.split_once(':'))
        {
            found.push(Field { object, name, line: index + 1 });
        }
    }
    found
}

/// Whether the text reads the field: through the room of the sum, `dispatch.poll_interval`, or of a value whose type it
/// names.
fn reads(code: &str, object: &str, name: &str) -> bool {
    let method = METHODS.iter().find(|(field, _)| *field == name).map(|(_, method)| *method);
    let room = match object {
        "PoolConfig" => "config".to_owned(),
        _ => object.trim_end_matches("Config").to_lowercase(),
    };
    let through = |what: &str| has_word(code, &format!("{room}.{what}"));
    let names_type = has_word(code, object);
    through(name)
        || method.is_some_and(|method| through(method) || names_type && has_word(code, method))
        || names_type && has_word(code, name)
}

/// Whether the text has these letters, not as a part of a longer name.
fn has_word(code: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(inside) && !code[at + word.len()..].starts_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Source;

    fn count(reader: &str) -> usize {
        let mut tree = Tree::default();
        let config = "//! x\npub struct PollConfig {\n    pub every: u32,\n}\n";
        tree.rust.push(Source::new(&format!("{CONFIG}a.rs"), config));
        tree.rust.push(Source::new("crates/holdfast-core/src/engine.rs", reader));
        check(&tree).len()
    }

    #[test]
    fn an_option_that_nobody_reads_is_found() {
        assert_eq!(count("fn a(every: A) { every }"), 1);
        assert_eq!(count("fn a(c: A) { c.poll.everything }"), 1);
        assert_eq!(count("fn a(c: A) { c.poll.every }"), 0);
        assert_eq!(count("fn a(c: A) { let PollConfig { every } = c; }"), 0);
    }
}
