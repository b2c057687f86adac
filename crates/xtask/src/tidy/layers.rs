//! Rule `layer`: inside the engine crate an import points down this table, never up and never sideways.
//!
//! This file is the table; ARCHITECTURE.md draws it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    finding::Finding,
    source::{Source, is_word},
};

/// Rooms from the bottom up. A room may import itself and every room in a line before its own.
const LAYERS: &[&[&str]] = &[
    &["error", "clock", "chance", "limits", "failpoint"],
    &["service", "telemetry"],
    &["pool"],
    &["store"],
    &["lease", "notify"],
    &["session"],
    &["config", "options"],
    &["commit", "crossing"],
    &["provider"],
    &["turn", "activity", "timer", "schedule", "liveness"],
    &["dispatch", "client", "doctor", "manage"],
    &["engine"],
    &["sim"],
];

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let Some(module) = source.engine_module().filter(|module| *module != "lib") else { return Vec::new() };
    let room = module.split('/').next().unwrap_or(module);
    let Some(own) = layer(room) else {
        let text = format!("room `{room}` is not in the layer table of crates/xtask/src/tidy/layers.rs");
        return vec![Finding::new(&source.path, 1, "layer", text)];
    };
    let mut found = Vec::new();
    for (offset, target) in imports(source, module) {
        let up = target != room && layer(&target).is_some_and(|other| other >= own);
        if up {
            let text =
                format!("`{room}` must not import `{target}`: put the port below, or move the code up");
            found.push(Finding::new(&source.path, source.line(offset), "layer", text));
        }
    }
    found
}

/// One line a room: its layer and what it imports.
pub(crate) fn describe(sources: &[Source]) -> Vec<String> {
    let mut rooms: BTreeMap<(usize, String), BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let Some(module) = source.engine_module().filter(|module| *module != "lib") else { continue };
        let room = module.split('/').next().unwrap_or(module).to_owned();
        let targets =
            imports(source, module).into_iter().map(|(_, target)| target).filter(|target| *target != room);
        let entry = rooms.entry((layer(&room).unwrap_or(usize::MAX), room.clone())).or_default();
        entry.extend(targets.filter(|target| layer(target).is_some()));
    }
    let line = |((layer, room), targets): (&(usize, String), &BTreeSet<String>)| {
        format!("{layer:>2} {room}: {}", targets.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
    };
    rooms.iter().map(line).collect()
}

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

/// First segments of every path below the crate's root, outside test modules, with their offsets.
fn imports(source: &Source, module: &str) -> Vec<(usize, String)> {
    let code = source.code.as_str();
    let mut found = Vec::new();
    for (at, _) in
        code.match_indices("crate::").filter(|(at, _)| is_word(code, *at, 5) && !source.is_test(*at))
    {
        let start = at + "crate::".len();
        found.extend(segments(code, start).into_iter().map(|name| (at, name)));
    }
    let depth = module.split('/').filter(|part| *part != "mod").count();
    let to_root = "super::".repeat(depth);
    for (at, _) in code.match_indices(&to_root).filter(|(at, _)| !source.is_test(*at)) {
        let chained = code[..at].ends_with("::") || code[at + to_root.len()..].starts_with("super::");
        if !chained {
            found.extend(segments(code, at + to_root.len()).into_iter().map(|name| (at, name)));
        }
    }
    found
}

/// The name at `start`, or the first segments of a braced list there.
fn segments(code: &str, start: usize) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    if !code[start..].starts_with('{') {
        return vec![name(&code[start..])];
    }
    let (mut depth, mut found, mut item) = (0usize, Vec::new(), start + 1);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b',' if depth == 1 => {
                found.push(name(&code[item..at]));
                item = at + 1;
            }
            b'}' if depth == 1 => {
                found.push(name(&code[item..at]));
                break;
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Source::new(&format!("crates/holdfast-core/src/{path}"), text)).len()
    }

    #[test]
    fn an_import_may_point_down() {
        assert_eq!(
            count("turn/runner.rs", "use crate::{error::{Error, Result}, store::Fence, turn::Flight};"),
            0
        );
        assert_eq!(count("store/turn.rs", "fn a(p: &crate::pool::Pool) {}"), 0);
    }

    #[test]
    fn an_import_may_not_point_up_or_sideways() {
        assert_eq!(count("store/turn.rs", "use crate::turn::Runner;"), 1);
        assert_eq!(
            count(
                "pool/gate.rs",
                "use crate::{\n    error::Error,\n    store::{Fence, Node},\n    engine::Engine,\n};"
            ),
            2
        );
        assert_eq!(count("turn/a.rs", "use crate::activity::Runner;"), 1);
    }

    #[test]
    fn a_way_round_by_super_is_seen() {
        assert_eq!(count("store/turn.rs", "use super::super::turn::Runner;"), 1);
        assert_eq!(count("store/mod.rs", "use super::turn::Runner;"), 1);
        assert_eq!(count("store/mod.rs", "mod turn;"), 0);
        assert_eq!(count("store/turn.rs", "use super::node::Key;"), 0);
    }

    #[test]
    fn a_room_without_a_layer_is_found() {
        assert_eq!(count("helpers/a.rs", "//! x"), 1);
    }
}
