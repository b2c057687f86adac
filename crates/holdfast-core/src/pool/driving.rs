//! The task that moves a session's bytes: why it ended, what was notified, and how it is given up.
//!
//! Invariants: the reason is known before any caller learns that the session is lost; notifications are hints, so a
//! full buffer drops them; a session given up in the middle of a query asks the server to stop that query.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
    sync::mpsc,
    task::JoinHandle,
};
use tokio_postgres::{
    AsyncMessage, CancelToken, Connection, Notification, Socket,
    tls::{MakeTlsConnect, TlsConnect},
};

/// Notifications kept for a reader that is slow; each is a hint that one sweep of the queues answers, so more is waste.
const NOTIFICATIONS: usize = 1024;

/// How long a goodbye or a cancel request may take before the session is dropped without it.
const FAREWELL: Duration = Duration::from_secs(5);

type Cancel = dyn Fn(CancelToken) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// See the module.
pub(super) struct Driving {
    task: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<OnceLock<String>>,
    notifications: Mutex<Option<mpsc::Receiver<Notification>>>,
    cancel: Box<Cancel>,
    runtime: Handle,
}

impl Driving {
    /// Starts the task on the current runtime; `tls` is for cancel requests.
    pub(super) fn start<S, T>(connection: Connection<Socket, S>, tls: T) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let ended = Arc::new(OnceLock::new());
        let (notify, notifications) = mpsc::channel(NOTIFICATIONS);
        let task = tokio::spawn(drive(connection, Arc::clone(&ended), notify));
        let cancel = move |token: CancelToken| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let tls = tls.clone();
            Box::pin(async move {
                // Nobody waits for the outcome: a query that goes on runs into its end or the server's limits.
                let _ = tokio::time::timeout(FAREWELL, token.cancel_query(tls)).await;
            })
        };
        Self {
            task: Mutex::new(Some(task)),
            ended,
            notifications: Mutex::new(Some(notifications)),
            cancel: Box::new(cancel),
            runtime: Handle::current(),
        }
    }

    /// Why the session ended, once it has with an error.
    pub(super) fn end_reason(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// What the server notifies; for the first caller only.
    pub(super) fn take_notifications(&self) -> Option<mpsc::Receiver<Notification>> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the connection at once, and the query with this token on the server.
    pub(super) fn abandon(&self, running: Option<CancelToken>) {
        if let Some(task) = self.take_task() {
            task.abort();
        }
        if let Some(token) = running {
            self.runtime.spawn((self.cancel)(token));
        }
    }

    /// The goodbye in progress once the client is gone.
    pub(super) fn farewell(&self) -> impl Future<Output = ()> + Send + use<> {
        let task = self.take_task();
        async move {
            let Some(mut task) = task else { return };
            if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
                task.abort();
            }
        }
    }

    fn take_task(&self) -> Option<JoinHandle<()>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn drive<S>(
    mut connection: Connection<Socket, S>,
    ended: Arc<OnceLock<String>>,
    notify: mpsc::Sender<Notification>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                let _ = notify.try_send(notification);
            }
            Ok(_) => {}
            Err(error) => {
                let reason = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
                tracing::debug!(reason, "session lost");
                let _ = ended.set(reason);
                return;
            }
        }
    }
}
