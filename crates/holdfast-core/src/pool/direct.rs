//! The way past the pool and past a pooler: sessions that are the server's own.
//!
//! It outlives the shares of its pool, because what was opened by it may; it opens, and counts nothing.

use std::sync::Arc;

use super::{
    session::{Session, SessionPurpose},
    shared::Shared,
    target::Target,
};
use crate::error::{Error, ErrorKind, Result};

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

    /// Proves that a session can be had and answers, and closes it. A full server is an error of its own kind,
    /// `DirectSessionCapacity`; a way that ends at a pooler is the URL's fault. Dropping the future gives it up.
    pub async fn probe(&self) -> Result<()> {
        if self.is_pooled() {
            let text = "no way past the pooler is known: give the server's own URL as option directUrl";
            return Err(Error::new(ErrorKind::Url, text));
        }
        let session = self.open(SessionPurpose::Listener).await.map_err(no_direct_session)?;
        session.prove(self.shared.config.query_timeout).await?;
        session.close().await;
        Ok(())
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

fn no_direct_session(error: Error) -> Error {
    if error.kind() != ErrorKind::Capacity {
        return error;
    }
    let hint = error.retry_hint().unwrap_or_default();
    Error::new(ErrorKind::DirectSessionCapacity, "the database has no session left beside those of the pool")
        .retry_after(hint)
        .caused_by(error)
}
