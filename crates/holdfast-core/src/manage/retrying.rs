//! Retrying: a poisoned instance runs again where it stood, with deliveries anew.
//!
//! The act is recorded: an event behind its end takes the end back. Steps with a result do not run again; activities that
//! the end took back are queued anew, children that ended meanwhile are told. A parent that was told of the end is not
//! told of another one.

use holdfast_replay::{Event, event::StoredEvent, reopen};

use crate::{
    error::{Error, ErrorKind, Result},
    manage::Manager,
    store::{instance, manage as rows},
};

impl Manager {
    /// Runs a poisoned instance again; false when it is not poisoned. An unknown one is an error.
    pub async fn retry(&self, id: &str) -> Result<bool> {
        let session = self.session().await?;
        let statements = self.provider.statements();
        let Some(found) = rows::poisoned(&session, statements, id).await? else {
            return match instance::get(&session, statements, &[id.to_owned()]).await?.is_empty() {
                true => Err(Error::new(ErrorKind::NotFound, format!("Instance {id} not found"))),
                false => Ok(false),
            };
        };
        let history = instance::read_history(&session, statements, id, found.execution).await?;
        let corrupt =
            |error| Error::new(ErrorKind::Corrupt, format!("read history of {id:?}")).caused_by(error);
        let events: Vec<Event> =
            history.into_iter().map(StoredEvent::decode).collect::<Result<_, _>>().map_err(corrupt)?;
        let reopened = reopen(events).map_err(corrupt)?;
        let retried = rows::retry(&session, statements, id, found, reopened).await?;
        if retried {
            self.provider.hints().released(1);
        }
        Ok(retried)
    }
}
