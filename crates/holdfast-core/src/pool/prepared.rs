//! The named statements of one session, found by name and text.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::statement::Statement;

/// Named statements a session keeps; beyond it all are forgotten and prepared anew. The engine has far fewer, so the
/// bound is met only when one process serves many schemas.
const MAX_PREPARED: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Prepared {
    known: Mutex<HashMap<&'static str, Vec<Known>>>,
}

struct Known {
    /// The whole text: the same name means another text in another schema.
    text: String,
    handle: tokio_postgres::Statement,
}

impl Prepared {
    pub(super) fn find(&self, statement: &Statement) -> Option<tokio_postgres::Statement> {
        let known = self.lock();
        let known = known.get(statement.name)?;
        known.iter().find(|known| known.text == statement.text).map(|known| known.handle.clone())
    }

    pub(super) fn remember(&self, statement: &Statement, handle: &tokio_postgres::Statement) {
        let mut known = self.lock();
        if known.values().map(Vec::len).sum::<usize>() >= MAX_PREPARED {
            known.clear();
        }
        let known = known.entry(statement.name).or_default();
        if !known.iter().any(|known| known.text == statement.text) {
            known.push(Known { text: statement.text.clone(), handle: handle.clone() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Vec<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
