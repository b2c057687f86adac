//! What was kept long enough: whose turn it is to throw it away, and messages for instances that were never started.
//!
//! Batches are bounded. Dropping takes the turn rows first, as every commit does.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use crate::{
    error::Result,
    limits,
    pool::Session,
    store::{Statements, manage::only, queue::single, row::column},
};

/// Something that one node at a time does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// Deletes instances that have ended.
    Ended,
    /// Deletes standalone activities that have ended.
    Jobs,
    /// Drops messages for instances that were never started.
    Unknown,
    /// Looks for due work that no live node can run.
    Unserved,
}

impl Chore {
    fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Jobs => "jobs",
            Self::Unknown => "unknown",
            Self::Unserved => "unserved",
        }
    }

    /// For how long a node has it to itself that does a round about `every` so often. A lonely node gets it again at each
    /// round, also at the shortest pause.
    fn held_for(self, every: Duration) -> Duration {
        match self {
            Self::Ended | Self::Jobs | Self::Unknown => every / 2,
            Self::Unserved => limits::UNSERVED_EVERY,
        }
    }
}

/// Chores that this node has for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Those with something to do.
    pub chores: Vec<Chore>,
    /// It has some, be there something to do or not.
    pub some: bool,
    /// When, in ms since 1970 by the clock of the database.
    pub now_ms: i64,
}

impl Taken {
    /// The time before which things are older than this, when the chore is among them.
    pub fn before(&self, chore: Chore, older_than: Duration) -> Option<i64> {
        self.chores.contains(&chore).then(|| self.now_ms.saturating_sub(ms(older_than)))
    }
}

/// Turn rows that messages made for instances that were never started.
#[derive(Debug)]
pub struct Unknown {
    /// Their instances.
    pub instances: Vec<String>,
    /// Where to go on; `None` at the end.
    pub end: Option<String>,
}

/// What was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Messages.
    pub messages: i64,
    /// Instances that they were for.
    pub instances: i64,
    /// One of these.
    pub example: Option<String>,
}

/// Takes those of these chores that are due, each for a while. What another node has, or had within that while, is not among
/// them. A node that asks about `every` so often keeps them until it asks again. Dropped half way they may have been taken.
pub async fn claim(
    session: &Session,
    statements: &Statements,
    wanted: &[Chore],
    every: Duration,
) -> Result<Taken> {
    let names: Vec<&str> = wanted.iter().map(|chore| chore.name()).collect();
    let spans: Vec<i64> = wanted.iter().map(|chore| ms(chore.held_for(every))).collect();
    let params: [&(dyn ToSql + Sync); 2] = [&names, &spans];
    let rows = single(session, statements, &statements.sweep_claim, &params).await?;
    let mut taken = Taken { chores: Vec::new(), some: !rows.is_empty(), now_ms: 0 };
    for row in &rows {
        let name: String = column(row, "name")?;
        if column(row, "has_work")? {
            taken.chores.extend(wanted.iter().find(|chore| chore.name() == name));
        }
        taken.now_ms = column(row, "now_ms")?;
    }
    Ok(taken)
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Of the next [`limits::LIST_STRETCH`] turn rows behind an instance those that were made before this time, ms since 1970, and
/// never started.
pub async fn unknown(
    session: &Session,
    statements: &Statements,
    after: Option<&str>,
    before_ms: i64,
) -> Result<Unknown> {
    let params: [&(dyn ToSql + Sync); 3] = [&after, &before_ms, &limits::LIST_STRETCH];
    let rows = single(session, statements, &statements.sweep_list_unknown, &params).await?;
    let mut instances = Vec::new();
    for row in &rows {
        instances.extend(column::<Option<String>>(row, "instance")?);
    }
    let tail = only(&rows, "list unknown instances")?;
    let full = column::<i64>(tail, "seen")? >= limits::LIST_STRETCH;
    Ok(Unknown { instances, end: if full { column(tail, "tail_instance")? } else { None } })
}

/// Drops the messages of these instances that came before this time, ms since 1970, unless one was started meanwhile. Dropped half
/// way it may have happened.
pub async fn drop_unknown(
    session: &Session,
    statements: &Statements,
    instances: &[String],
    before_ms: i64,
) -> Result<Dropped> {
    let session = session.with_limit(limits::DELETE_LIMIT);
    let answers = session
        .transaction(
            &statements.settings,
            &[
                (&statements.manage_lock_tree, &[&instances]),
                (&statements.sweep_drop_unknown, &[&instances, &before_ms]),
            ],
        )
        .await?;
    let row = only(answers.last().map_or(&[], Vec::as_slice), "drop messages")?;
    Ok(Dropped {
        messages: column(row, "messages")?,
        instances: column(row, "instances")?,
        example: column(row, "first")?,
    })
}
