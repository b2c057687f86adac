//! Asking the server to stop a query, in a way that poolers hear, too.
//!
//! A pooler passes a cancel request on only as long as the one who asks is still connected, so the connection of the
//! request stays open until the other end closes it, as libpq does. The driver closes it at once.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll, ready},
};

use postgres_native_tls::MakeTlsConnector;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_postgres::{CancelToken, NoTls, tls::MakeTlsConnect};

use super::places::{Host, HostName};

/// Where the session is connected to.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// A server by its name, which is also that of its certificate.
    Name(String, u16),
    /// The same with its address given.
    Known(String, SocketAddr),
    /// The socket's file.
    Unix(PathBuf),
}

/// How the session is encrypted, if it is.
pub(super) type CancelTls = Option<MakeTlsConnector>;

impl Address {
    pub(super) fn of(host: &Host) -> Self {
        match (&host.name, host.address) {
            (HostName::Tcp(name), Some(address)) => {
                Self::Known(name.clone(), SocketAddr::new(address, host.port))
            }
            (HostName::Tcp(name), None) => Self::Name(name.clone(), host.port),
            (HostName::Unix(folder), _) => Self::Unix(folder.join(format!(".s.PGSQL.{}", host.port))),
        }
    }

    /// The name that a certificate has to have.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Name(name, _) | Self::Known(name, _) => name,
            Self::Unix(_) => "",
        }
    }

    /// Sends the request and waits until the other end closes the connection. A name with several addresses is asked
    /// at all of them, because the driver does not tell which one the session has; who does not know the session
    /// ignores the request.
    pub(super) async fn cancel(&self, token: &CancelToken, tls: CancelTls) -> io::Result<()> {
        match self {
            Self::Name(name, port) => {
                let addresses = tokio::net::lookup_host((name.as_str(), *port)).await?;
                let all = addresses.map(|address| cancel_at(name, address, token, tls.clone()));
                futures_util::future::join_all(all).await.into_iter().collect()
            }
            Self::Known(name, address) => cancel_at(name, *address, token, tls).await,
            #[cfg(unix)]
            Self::Unix(file) => send(tokio::net::UnixStream::connect(file).await?, "", token, tls).await,
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

async fn cancel_at(name: &str, address: SocketAddr, token: &CancelToken, tls: CancelTls) -> io::Result<()> {
    send(TcpStream::connect(address).await?, name, token, tls).await
}

async fn send<S>(stream: S, name: &str, token: &CancelToken, tls: CancelTls) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = Patient(stream);
    let sent = match tls {
        None => token.cancel_query_raw(stream, NoTls).await,
        Some(mut tls) => {
            let tls =
                MakeTlsConnect::<Patient<S>>::make_tls_connect(&mut tls, name).map_err(io::Error::other)?;
            token.cancel_query_raw(stream, tls).await
        }
    };
    sent.map_err(io::Error::other)
}

/// A connection whose shutdown is the other end's to make: it waits for that instead.
struct Patient<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 64];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
