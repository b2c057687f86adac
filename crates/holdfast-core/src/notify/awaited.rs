//! What can be waited for: the ends of instances, and of standalone activities.

use crate::{
    error::Result,
    limits,
    notify::{Hints, Wakes, Watches},
    pool::Session,
    store::{
        Statements,
        instance::{self, InstanceRow},
        standalone::{self, StandaloneRow},
    },
};

/// A kind of thing that ends.
pub trait Awaited: Send + Sync + 'static {
    /// What its waiters are told.
    type End: Clone + Send + 'static;

    /// Who waits.
    fn watches(wakes: &Wakes) -> &Watches;

    /// Whether one goes on in this process, which tells its waiters of its end.
    fn is_under_way(_hints: &Hints, _id: &str) -> bool {
        false
    }

    /// Those of the given ids that have ended.
    fn ended(
        session: &Session,
        statements: &Statements,
        ids: &[String],
    ) -> impl Future<Output = Result<Vec<(String, Self::End)>>> + Send;
}

/// Instances; one that does not exist yet is waited for.
#[derive(Debug)]
pub enum Instances {}

impl Awaited for Instances {
    type End = InstanceRow;

    fn watches(wakes: &Wakes) -> &Watches {
        wakes.instances()
    }

    fn is_under_way(hints: &Hints, id: &str) -> bool {
        hints.is_under_way(id)
    }

    async fn ended(
        session: &Session,
        statements: &Statements,
        ids: &[String],
    ) -> Result<Vec<(String, InstanceRow)>> {
        let rows = instance::ended(session, statements, ids).await?;
        Ok(rows.into_iter().map(|row| (row.instance.clone(), row)).collect())
    }
}

/// Standalone activities; one that is not stored is told as `None`. What is waited for is kept for a while once it has ended, so
/// that its waiters see it.
#[derive(Debug)]
pub enum Standalone {}

impl Awaited for Standalone {
    type End = Option<StandaloneRow>;

    fn watches(wakes: &Wakes) -> &Watches {
        wakes.standalone()
    }

    async fn ended(
        session: &Session,
        statements: &Statements,
        ids: &[String],
    ) -> Result<Vec<(String, Option<StandaloneRow>)>> {
        let keep_ms = i64::try_from(limits::AWAITED_RETENTION.as_millis()).unwrap_or(i64::MAX);
        let (open, fleeting) = standalone::open(session, statements, ids, keep_ms).await?;
        if !fleeting.is_empty() {
            standalone::want(session, statements, &fleeting, keep_ms).await?;
        }
        let gone: Vec<String> = ids.iter().filter(|id| !open.contains(id)).cloned().collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut rows = standalone::get(session, statements, &gone).await?;
        let mut ends = Vec::with_capacity(gone.len());
        for id in gone {
            match rows.iter().position(|row| row.id == id).map(|place| rows.swap_remove(place)) {
                // Queued anew between the two looks.
                Some(row) if row.ended_at_ms.is_none() => {}
                row => ends.push((id, row)),
            }
        }
        Ok(ends)
    }
}
