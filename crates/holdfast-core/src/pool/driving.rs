//! The task that moves a session's bytes: why it ended, what was notified, and how it is given up.
//!
//! Invariants: the reason is known before any caller learns that the session is lost; notifications are hints, so a
//! full buffer drops them; a session given up in the middle of a query asks the server to stop that query.

use std::{
    future::{Future, poll_fn},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_postgres::{AsyncMessage, CancelToken, Connection, Error, Notification};

use super::cancel::{Address, CancelTls};

/// Notifications kept for a reader that is slow; each is a hint that one sweep of the queues answers, so more is waste.
const NOTIFICATIONS: usize = 1024;

/// How long a goodbye or a cancel request may take before the session is dropped without it.
const FAREWELL: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Driving {
    task: Mutex<Option<JoinHandle<()>>>,
    stop_query: Mutex<Option<oneshot::Sender<CancelToken>>>,
    ended: Arc<OnceLock<String>>,
    notifications: Mutex<Option<mpsc::Receiver<Notification>>>,
}

impl Driving {
    /// Starts the task on the current runtime; cancel requests go to `address`, encrypted by `tls`.
    pub(super) fn start<R, S>(connection: Connection<R, S>, address: Address, tls: CancelTls) -> Self
    where
        R: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ended = Arc::new(OnceLock::new());
        let (notify, notifications) = mpsc::channel(NOTIFICATIONS);
        let (stop_query, to_stop) = oneshot::channel();
        let task = tokio::spawn(drive(connection, (address, tls), to_stop, Arc::clone(&ended), notify));
        Self {
            task: Mutex::new(Some(task)),
            stop_query: Mutex::new(Some(stop_query)),
            ended,
            notifications: Mutex::new(Some(notifications)),
        }
    }

    /// Why the session ended, once it has with an error.
    pub(super) fn end_reason(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// What the server notifies; for the first caller only.
    pub(super) fn take_notifications(&self) -> Option<mpsc::Receiver<Notification>> {
        take(&self.notifications)
    }

    /// Ends the connection at once, or as soon as the server was asked to stop the query with this token: its session
    /// lasts as long as the query does, and some poolers hear only those who are still there.
    pub(super) fn abandon(&self, running: Option<CancelToken>) {
        if let (Some(token), Some(stop_query)) = (running, take(&self.stop_query))
            && stop_query.send(token).is_ok()
        {
            return;
        }
        if let Some(task) = take(&self.task) {
            task.abort();
        }
    }

    /// The goodbye in progress once the client is gone.
    pub(super) fn farewell(&self) -> impl Future<Output = bool> + Send + use<> {
        let task = take(&self.task);
        async move {
            let Some(mut task) = task else { return true };
            if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
                task.abort();
                return false;
            }
            true
        }
    }
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

async fn drive<R, S>(
    mut connection: Connection<R, S>,
    (address, tls): (Address, CancelTls),
    to_stop: oneshot::Receiver<CancelToken>,
    ended: Arc<OnceLock<String>>,
    notify: mpsc::Sender<Notification>,
) where
    R: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let reading = async {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    let _ = notify.try_send(notification);
                }
                Ok(_) => {}
                Err(error) => return Some(error),
            }
        }
        None
    };
    tokio::select! {
        // With the sender gone and nothing sent, the session says its goodbye by itself.
        Ok(token) = to_stop => {
            // Nobody waits for the outcome: a query that goes on runs into its end or the server's limits.
            let _ = tokio::time::timeout(FAREWELL, address.cancel(&token, tls)).await;
        }
        error = reading => if let Some(error) = error {
            let reason = describe(&error);
            tracing::debug!(reason, "session lost");
            let _ = ended.set(reason);
        }
    }
}

/// The server's words, or else the driver's.
pub(super) fn describe(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}
