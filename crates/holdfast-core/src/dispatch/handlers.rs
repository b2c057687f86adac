//! The handlers a runtime has. A node claims only what it can run.

use std::{cmp::Ordering, collections::BTreeMap};

use serde::Deserialize;

use crate::error::{Error, ErrorKind, Result};

/// One registered orchestration version.
#[derive(Debug, Clone, Deserialize)]
pub struct OrchestrationHandler {
    /// Name.
    pub name: String,
    /// Exact version, `major.minor.patch`.
    pub version: String,
}

/// All handlers of a runtime, as JavaScript reports them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Handlers {
    /// Orchestrations.
    pub orchestrations: Vec<OrchestrationHandler>,
    /// Activity names.
    pub activities: Vec<String>,
}

impl Handlers {
    /// Reads the JSON text of the crossing.
    pub fn parse(text: &str) -> Result<Self> {
        let handlers: Self = serde_json::from_str(text)
            .map_err(|error| Error::new(ErrorKind::Invalid, "read the list of handlers").caused_by(error))?;
        for handler in &handlers.orchestrations {
            parse_version(&handler.version).ok_or_else(|| {
                let text =
                    format!("version {:?} of {:?} is not major.minor.patch", handler.version, handler.name);
                Error::new(ErrorKind::Invalid, text)
            })?;
        }
        Ok(handlers)
    }

    /// Orchestration names, each once.
    pub fn names(&self) -> Vec<String> {
        self.newest().into_keys().collect()
    }

    /// `name@version` of every handler.
    pub fn exact(&self) -> Vec<String> {
        self.orchestrations.iter().map(|handler| format!("{}@{}", handler.name, handler.version)).collect()
    }

    /// The newest version of each name.
    pub fn newest(&self) -> BTreeMap<String, String> {
        let mut newest: BTreeMap<String, String> = BTreeMap::new();
        for handler in &self.orchestrations {
            let known = newest.entry(handler.name.clone()).or_insert_with(|| handler.version.clone());
            if compare(&handler.version, known) == Ordering::Greater {
                known.clone_from(&handler.version);
            }
        }
        newest
    }
}

fn compare(a: &str, b: &str) -> Ordering {
    parse_version(a).cmp(&parse_version(b))
}

fn parse_version(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.');
    let version = [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?];
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_chosen_by_number_not_by_text() {
        let handlers = Handlers::parse(
            r#"{"orchestrations":[{"name":"a","version":"1.10.0"},{"name":"a","version":"1.9.0"}],"activities":[]}"#,
        )
        .expect("valid");
        assert_eq!(handlers.newest()["a"], "1.10.0");
        assert_eq!(handlers.names(), ["a"]);
        assert_eq!(handlers.exact(), ["a@1.10.0", "a@1.9.0"]);
    }

    #[test]
    fn a_bad_version_is_refused_by_name() {
        let error = Handlers::parse(r#"{"orchestrations":[{"name":"a","version":"one"}],"activities":[]}"#)
            .expect_err("not a version");
        assert!(error.to_string().contains("\"one\""), "{error}");
    }
}
