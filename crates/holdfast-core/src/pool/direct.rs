//! The way past the pool and past a pooler: sessions that are the server's own.
//!
//! It outlives the shares of its pool, because what was opened by it may; it opens, and counts nothing.

use std::sync::Arc;

use super::{
    session::{Session, SessionPurpose},
    shared::Shared,
    target::Target,
};
use crate::error::Result;

/// Opens sessions on the direct URL.
#[derive(Clone)]
pub struct DirectWay {
    pub(super) shared: Arc<Shared>,
}

/// Where a direct way leads; equal for equal URLs. Printing it shows no password.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DirectPlace(Target);

impl DirectWay {
    /// Opens a session. The caller owns it and counts it. Dropping the future gives it up.
    pub async fn open(&self, purpose: SessionPurpose) -> Result<Session> {
        self.shared.connector().open_direct(purpose).await
    }

    /// Where it leads.
    pub fn place(&self) -> DirectPlace {
        DirectPlace(self.shared.connector().direct_target().clone())
    }

    /// No way past a transaction pooler is known: what needs a session of its own does not work.
    pub fn is_pooled(&self) -> bool {
        self.shared.connector().direct_is_pooled()
    }
}
