//! Making parked instances due again.

use crate::{
    error::Result,
    pool::Session,
    store::{Statements, queue::single, row::column},
};

/// Makes those of the given instances due that are parked; returns their ids. Dropped half way it may have happened; the
/// same call finds nothing to do then.
pub async fn resume(session: &Session, statements: &Statements, ids: &[String]) -> Result<Vec<String>> {
    let rows = single(session, statements, &statements.manage_resume, &[&ids]).await?;
    rows.iter().map(|row| column(row, "instance")).collect()
}
