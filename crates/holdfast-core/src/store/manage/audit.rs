//! The audit: what was accepted and can never end, and rows that the engine does not write.

use crate::{
    error::Result,
    limits,
    pool::Session,
    store::{Statements, row::column},
};

/// Something that a sound database does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// Of which instance.
    pub instance: String,
    /// At which event, where that is known.
    pub event: Option<i32>,
}

/// At most [`limits::AUDIT_ROWS`] findings of each kind; none in a sound database. Reads whole tables.
pub async fn audit(session: &Session, statements: &Statements) -> Result<Vec<Finding>> {
    let mut rows = session.query(&statements.audit_list_malformed, &[&limits::AUDIT_ROWS]).await?;
    rows.extend(session.query(&statements.audit_list_orphans, &[&limits::AUDIT_ROWS]).await?);
    rows.iter()
        .map(|row| {
            Ok(Finding {
                what: column(row, "what")?,
                instance: column(row, "instance")?,
                event: column(row, "event")?,
            })
        })
        .collect()
}
