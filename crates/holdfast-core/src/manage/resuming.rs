//! Resuming: a parked instance is due again, and goes on where it stood when the code fits.
//!
//! It never looks whether the code fits: an instance that does not go on is parked again.

use crate::{
    error::{Error, ErrorKind, Result},
    limits,
    manage::Manager,
    store::{
        instance,
        manage::{self as rows, Filter},
    },
};

impl Manager {
    /// Makes a parked instance due; false when it is not parked. An unknown one is an error.
    pub async fn resume(&self, id: &str) -> Result<bool> {
        let ids = [id.to_owned()];
        let session = self.session().await?;
        let statements = self.provider.statements();
        if !rows::resume(&session, statements, &ids).await?.is_empty() {
            self.provider.hints().released(1);
            return Ok(true);
        }
        match instance::get(&session, statements, &ids).await?.is_empty() {
            true => Err(Error::new(ErrorKind::NotFound, format!("Instance {id} not found"))),
            false => Ok(false),
        }
    }

    /// Makes parked instances due that pass a filter, newest first, at most `limit`; returns how many. Dropped half way a part
    /// is done, and the same call does the rest.
    pub async fn resume_bulk(&self, filter: &Filter, limit: i64) -> Result<u64> {
        let filter = Filter { parked: Some(true), ..filter.clone() };
        let mut resumed = 0;
        let mut left = limit;
        let mut place = None;
        while left > 0 {
            let page = self.list(&filter, place, left.min(limits::LIST_PAGE_MAX)).await?;
            let ids: Vec<String> = page.instances.into_iter().map(|row| row.instance).collect();
            left -= i64::try_from(ids.len()).unwrap_or(left);
            if !ids.is_empty() {
                let session = self.session().await?;
                let due = rows::resume(&session, self.provider.statements(), &ids).await?.len() as u64;
                self.provider.hints().released(due);
                resumed += due;
            }
            if page.next.is_none() {
                break;
            }
            place = page.next;
        }
        Ok(resumed)
    }
}
