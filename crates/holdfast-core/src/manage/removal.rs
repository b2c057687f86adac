//! Deleting and pruning, of one instance and of many.
//!
//! A tree is deleted whole or not at all, in one transaction. A bulk call is many such transactions: dropped half way it
//! has done a part, and the same call does the rest.

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    manage::Manager,
    pool::Session,
    store::manage::{self as rows, Deleted, Position, Pruned, RootFilter},
    telemetry::Backoff,
};

/// Which executions pruning keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// The newest ones, the current one included; 0 is 1.
    pub keep_last: i64,
    /// Those closed at this time or later, ms since 1970.
    pub completed_before_ms: Option<i64>,
}

/// Which roots a bulk call is about.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    /// These ids only.
    pub(super) ids: Option<Vec<String>>,
    pub(super) filter: RootFilter,
    /// At most this many.
    pub(super) limit: i64,
}

impl Manager {
    /// Deletes an instance and all its descendants. Refuses a child, and without force a tree with a member that runs.
    pub async fn delete(&self, instance: &str, force: bool) -> Result<Deleted> {
        let session = self.session().await?;
        self.delete_with(&session, instance, force).await
    }

    /// Deletes trees that have ended, up to the limit; others are passed over.
    pub(super) async fn delete_bulk(&self, roots: Roots) -> Result<Deleted> {
        let session = self.session().await?;
        let mut walk = Walk::new(roots);
        let mut total = Deleted::default();
        let mut trees = 0;
        while trees < walk.roots.limit {
            let Some(ids) = walk.next(self, &session).await? else { break };
            for id in ids {
                if trees >= walk.roots.limit {
                    break;
                }
                match self.delete_with(&session, &id, false).await {
                    Ok(deleted) => {
                        trees += 1;
                        add(&mut total, deleted);
                    }
                    Err(error) if is_refusal(error.kind()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(total)
    }

    /// One step through the roots, oldest first: deletes the trees that have ended and whose root ended before this time, ms
    /// since 1970. The place to go on from, `None` at the end. What meets somebody else is left to the next walk. Stops
    /// between two trees when it may not go on.
    pub(crate) async fn expire(
        &self,
        before_ms: i64,
        after: Option<Position>,
        may_go_on: impl Fn() -> bool,
    ) -> Result<(Deleted, Option<Position>)> {
        let session = self.session().await?;
        let filter = RootFilter { ended: true, finished_before_ms: Some(before_ms) };
        let roots = Roots { ids: None, filter, limit: limits::LIST_PAGE_MAX };
        let mut walk = Walk { place: after.clone(), ..Walk::new(roots) };
        let mut total = Deleted::default();
        for id in walk.next(self, &session).await?.unwrap_or_default() {
            if !may_go_on() {
                return Ok((total, after));
            }
            match self.delete_with(&session, &id, false).await {
                Ok(deleted) => add(&mut total, deleted),
                Err(error) if is_refusal(error.kind()) || error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Ok((total, walk.place))
    }

    /// Deletes old executions of one instance; never the current one.
    pub async fn prune(&self, instance: &str, retention: Retention) -> Result<Pruned> {
        let session = self.session().await?;
        if rows::executions(&session, self.provider.statements(), instance).await?.is_empty() {
            return Err(not_found(instance));
        }
        self.prune_with(&session, instance, retention).await
    }

    /// The same for many roots; how many they were, and what was pruned.
    pub(super) async fn prune_bulk(&self, roots: Roots, retention: Retention) -> Result<(i64, Pruned)> {
        let session = self.session().await?;
        let mut walk = Walk::new(roots);
        let (mut processed, mut total) = (0, Pruned::default());
        while processed < walk.roots.limit {
            let Some(ids) = walk.next(self, &session).await? else { break };
            for id in ids {
                if processed >= walk.roots.limit {
                    break;
                }
                let pruned = self.prune_with(&session, &id, retention).await?;
                total.executions += pruned.executions;
                total.events += pruned.events;
                processed += 1;
            }
        }
        Ok((processed, total))
    }

    async fn delete_with(&self, session: &Session, instance: &str, force: bool) -> Result<Deleted> {
        let statements = self.provider.statements();
        let mut meetings = Meetings::new();
        loop {
            let tree = rows::tree(session, statements, instance).await?;
            let Some(root) = tree.iter().find(|member| member.instance == instance) else {
                return Err(not_found(instance));
            };
            if root.parent.is_some() {
                let text = format!(
                    "Cannot delete sub-orchestration {instance} directly. Delete the root orchestration instead."
                );
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            let running = std::iter::once(root).chain(&tree).find(|member| !member.ended);
            if let Some(member) = running.filter(|_| !force) {
                let text =
                    format!("Instance {} is still running. Use force=true or cancel first.", member.instance);
                return Err(Error::new(ErrorKind::StillRunning, text));
            }
            match rows::delete_tree(session, statements, root, &tree, force).await {
                Ok(Some(deleted)) => return Ok(deleted),
                Ok(None) => meetings.pause(None).await?,
                Err(error) => meetings.pause(Some(error)).await?,
            }
        }
    }

    async fn prune_with(&self, session: &Session, instance: &str, retention: Retention) -> Result<Pruned> {
        let statements = self.provider.statements();
        let mut meetings = Meetings::new();
        let mut total = Pruned::default();
        let (keep, before) = (retention.keep_last.max(1), retention.completed_before_ms);
        loop {
            match rows::prune(session, statements, instance, keep, before, limits::PRUNE_BATCH).await {
                Ok(pruned) => {
                    total.executions += pruned.executions;
                    total.events += pruned.events;
                    if pruned.executions < limits::PRUNE_BATCH {
                        return Ok(total);
                    }
                }
                Err(error) => meetings.pause(Some(error)).await?,
            }
        }
    }
}

/// Meetings of one deletion with commits and other deletions: each costs a pause, and there is an end to it.
struct Meetings {
    left: u32,
    backoff: Backoff,
}

impl Meetings {
    fn new() -> Self {
        let backoff = Backoff::new(limits::RETRY_BASE, limits::RETRY_MAX);
        Self { left: limits::DELETE_RUNS, backoff }
    }

    /// Pauses before another run; fails with an error that is no meeting, and when there were too many.
    async fn pause(&mut self, error: Option<Error>) -> Result<()> {
        self.left -= 1;
        match error {
            Some(error) if error.kind() != ErrorKind::Conflict || self.left == 0 => Err(error),
            None if self.left == 0 => {
                let text = "delete an instance: it starts children all the time";
                Err(Error::new(ErrorKind::Conflict, text))
            }
            _ => {
                tokio::time::sleep(self.backoff.next_delay()).await;
                Ok(())
            }
        }
    }
}

/// The roots of a bulk call, a portion at a time, each once.
struct Walk {
    roots: Roots,
    place: Option<Position>,
    over: bool,
}

impl Walk {
    fn new(roots: Roots) -> Self {
        Self { roots, place: None, over: false }
    }

    /// The next portion, possibly empty; `None` at the end.
    async fn next(&mut self, manager: &Manager, session: &Session) -> Result<Option<Vec<String>>> {
        if self.over {
            return Ok(None);
        }
        let statements = manager.provider.statements();
        let filter = self.roots.filter;
        if let Some(ids) = &self.roots.ids {
            self.over = true;
            return rows::pick_roots(session, statements, ids, filter).await.map(Some);
        }
        let (limit, stretch) = (limits::LIST_PAGE_MAX, limits::LIST_STRETCH);
        let step = rows::roots(session, statements, filter, self.place.as_ref(), limit, stretch).await?;
        let full = i64::try_from(step.found.len()).unwrap_or(i64::MAX) >= limit;
        self.place = if full { step.found.last().cloned() } else { step.end };
        self.over = self.place.is_none();
        Ok(Some(step.found.into_iter().map(|root| root.instance).collect()))
    }
}

/// The words of a refusal: the instance is as it was.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::StillRunning | ErrorKind::Invalid)
}

fn add(total: &mut Deleted, more: Deleted) {
    total.instances += more.instances;
    total.executions += more.executions;
    total.events += more.events;
    total.messages += more.messages;
}

fn not_found(instance: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("Instance {instance} not found"))
}
