//! Rule `unread`: each option is read by the engine, or by the sdk that carries it out.
//!
//! An option that is accepted and changes nothing is worse than none.

use super::{finding::Finding, source::Source, tree::Tree};

const CONFIG: &str = "crates/holdfast-core/src/config/";
const POOL_CONFIG: &str = "crates/holdfast-core/src/pool/config.rs";
const ENGINE: &str = "crates/holdfast-core/src/";

/// Fields that the sdk carries out, by their names there.
const IN_TYPESCRIPT: &[&str] =
    &["payload_byte_limit", "log_format", "log_level", "service_name", "service_version"];

/// Rooms that only talk about options: what they read has no effect.
const TALKERS: &[&str] = &["crates/holdfast-core/src/doctor/"];

/// Fields that nobody reads; must be empty in a release. One that is read is to be taken off.
pub(crate) const UNREAD: &[&str] = &[];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, UNREAD)
}

fn check_with(tree: &Tree, unread: &[&str]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust.iter().filter(|file| file.path.starts_with(CONFIG) || file.path == POOL_CONFIG) {
        for Field { object, name, line } in fields(&file.code) {
            if IN_TYPESCRIPT.contains(&name) {
                continue;
            }
            let outside = |path: &str| {
                path.starts_with(ENGINE)
                    && !path.starts_with(CONFIG)
                    && path != file.path
                    && !TALKERS.iter().any(|room| path.starts_with(room))
            };
            let ways = ways_to(&file.code, name);
            let is_read = tree.rust.iter().any(|other| outside(&other.path) && reads(other, object, &ways));
            let listed = unread.contains(&format!("{object}.{name}").as_str());
            let text = match (is_read, listed) {
                (false, false) => format!("nobody reads `{name}` of {object}: wire it up"),
                (true, true) => format!("`{name}` of {object} is read: take it off UNREAD"),
                _ => continue,
            };
            found.push(Finding::new(&file.path, line, "unread", text));
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

/// The field, and the methods of its file that read it, themselves or through another one.
fn ways_to<'a>(code: &'a str, name: &'a str) -> Vec<&'a str> {
    let mut ways = vec![name];
    loop {
        let more: Vec<&str> = methods(code)
            .into_iter()
            .filter(|(method, body)| {
                !["validate", "default", "new"].contains(method)
                    && !ways.contains(method)
                    && ways.iter().any(|way| has_word(body, &format!("self.{way}")))
            })
            .map(|(method, _)| method)
            .collect();
        if more.is_empty() {
            return ways;
        }
        ways.extend(more);
    }
}

/// Functions of impl blocks with their bodies.
fn methods(code: &str) -> Vec<(&str, &str)> {
    let starts =
        code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric()));
    let method = |(at, _): (usize, &str)| {
        let rest = &code[at + 3..];
        let body = rest.split("\n    }\n").next().unwrap_or(rest);
        (rest.split(['(', '<']).next().unwrap_or(""), body)
    };
    starts.map(method).collect()
}

/// Whether code that is no test reads one of the names: through the room of the sum, `dispatch.poll_interval`, or a local
/// name for it, or of a value whose type the file names.
fn reads(file: &Source, object: &str, names: &[&str]) -> bool {
    let room = match object {
        "PoolConfig" => "config".to_owned(),
        _ => object.trim_end_matches("Config").to_lowercase(),
    };
    let code = file.code.as_str();
    let names_type = words(code, object).any(|at| !file.is_test(at));
    let mut owners = vec![room.clone()];
    owners.extend(aliases(code, &room));
    names.iter().any(|name| {
        let through = |owner: &String| {
            words(code, &format!("{owner}.{name}")).any(|at| !file.is_test(at) && !is_set(&code[at..]))
        };
        let of_type = || {
            words(code, name).any(|at| {
                let taken = code[..at].ends_with('.') && !is_set(&code[at..]);
                !file.is_test(at) && (taken || in_pattern(&code[..at], object))
            })
        };
        owners.iter().any(through) || names_type && of_type()
    })
}

/// A path that is written and not read: `config.poll.every = …`.
fn is_set(code: &str) -> bool {
    let rest = code.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '.').trim_start();
    rest.starts_with("= ")
}

/// Local names of a room: `let limits = &node.config.watchdog;`.
fn aliases(code: &str, room: &str) -> Vec<String> {
    let end = format!(".{room};");
    let line = |line: &str| {
        let (name, value) = line.trim().strip_prefix("let ")?.split_once(" = ")?;
        value.ends_with(&end).then(|| name.to_owned())
    };
    code.lines().filter_map(line).collect()
}

/// Whether a text ends inside the braces of a pattern of this type.
fn in_pattern(before: &str, object: &str) -> bool {
    before.rfind(&format!("{object} {{")).is_some_and(|from| !before[from..].contains('}'))
}

/// Whether the text has these letters, not as a part of a longer name.
fn has_word(code: &str, word: &str) -> bool {
    words(code, word).next().is_some()
}

/// Where the text has these letters, not as a part of a longer name.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !code[..*at].ends_with(inside) && !code[at + word.len()..].starts_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = "impl PollConfig {\n    fn slow(&self) -> u32 {\n        self.every\n    }\n}\n";

    fn found(path: &str, reader: &str, unread: &[&str]) -> usize {
        let mut tree = Tree::default();
        let config = format!("//! x\npub struct PollConfig {{\n    pub every: u32,\n}}\n{METHOD}");
        tree.rust.push(Source::new(&format!("{CONFIG}a.rs"), &config));
        tree.rust.push(Source::new(path, reader));
        check_with(&tree, unread).len()
    }

    fn count(reader: &str) -> usize {
        found("crates/holdfast-core/src/engine.rs", reader, &[])
    }

    #[test]
    fn an_option_that_nobody_reads_is_found() {
        assert_eq!(count("fn a(every: A) { every }"), 1);
        assert_eq!(count("fn a(c: A) { c.poll.everything }"), 1);
        assert_eq!(count("fn a(c: &PollConfig, every: A) { every }"), 1);
        assert_eq!(count("fn a(c: A) { c.poll.every = 1; }"), 1);
        assert_eq!(count("#[cfg(test)]\nmod tests { fn a(c: A) { c.poll.every } }"), 1);
        assert_eq!(found("crates/holdfast-core/src/doctor/judge.rs", "fn a(c: A) { c.poll.every }", &[]), 1);
    }

    #[test]
    fn an_option_that_is_read_is_not() {
        assert_eq!(count("fn a(c: A) { c.poll.every }"), 0);
        assert_eq!(count("fn a(c: A) { c.poll.every == 1 }"), 0);
        assert_eq!(count("fn a(c: A) { let PollConfig { every } = c; }"), 0);
        assert_eq!(count("fn a(c: &PollConfig) { c.every }"), 0);
        assert_eq!(count("fn a(c: A) { c.poll.slow() }"), 0);
        assert_eq!(count("fn a(c: A) {\n    let limits = &c.poll;\n    limits.every\n}"), 0);
    }

    #[test]
    fn an_option_is_taken_off_the_list_when_it_is_read() {
        let engine = "crates/holdfast-core/src/engine.rs";
        assert_eq!(found(engine, "fn a() {}", &["PollConfig.every"]), 0);
        assert_eq!(found(engine, "fn a(c: A) { c.poll.every }", &["PollConfig.every"]), 1);
    }
}
