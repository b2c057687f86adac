//! Lists: statement after statement, each over a bounded stretch, until a page is full.

use crate::{
    error::Result,
    limits,
    manage::Manager,
    store::manage::{self as rows, Filter, ListedRow, Position},
};

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// Newest first.
    pub instances: Vec<ListedRow>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Position>,
}

impl Manager {
    /// Instances that pass a filter, newest first, from a place on: at most `limit`, and at most [`limits::LIST_PAGE_MAX`].
    pub async fn list(&self, filter: &Filter, from: Option<Position>, limit: i64) -> Result<Page> {
        let limit = limit.clamp(1, limits::LIST_PAGE_MAX);
        let session = self.session().await?;
        let mut instances: Vec<ListedRow> = Vec::new();
        let mut place = from;
        loop {
            let wanted = limit - i64::try_from(instances.len()).unwrap_or(limit);
            let stretch = limits::LIST_STRETCH;
            let statements = self.provider.statements();
            let step = rows::list(&session, statements, filter, place.as_ref(), wanted, stretch).await?;
            let full = i64::try_from(step.found.len()).unwrap_or(i64::MAX) >= wanted;
            instances.extend(step.found);
            if full {
                return Ok(Page { next: instances.last().map(position), instances });
            }
            match step.end {
                Some(end) => place = Some(end),
                None => return Ok(Page { instances, next: None }),
            }
        }
    }

    /// Ids of every instance that passes a filter, newest first.
    pub async fn ids(&self, filter: &Filter) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        let mut place = None;
        loop {
            let page = self.list(filter, place, limits::LIST_PAGE_MAX).await?;
            ids.extend(page.instances.into_iter().map(|row| row.instance));
            if page.next.is_none() {
                return Ok(ids);
            }
            place = page.next;
        }
    }
}

fn position(row: &ListedRow) -> Position {
    Position { created_at_ms: row.created_at_ms, instance: row.instance.clone() }
}
