//! Opens the socket of a session: a server by name or address, or a socket's file.
//!
//! A name with several addresses gives all of them, to be tried in order. It never speaks to the server.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{cancel::Address, target::SocketOptions};

/// One place to connect to.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An open socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

/// Every place of an address.
pub(super) async fn places(address: &Address) -> io::Result<Vec<Place>> {
    let places: Vec<Place> = match address {
        Address::Name(name, port) => {
            tokio::net::lookup_host((name.as_str(), *port)).await?.map(Place::Tcp).collect()
        }
        Address::Known(_, address) => vec![Place::Tcp(*address)],
        Address::Unix(file) => vec![Place::Unix(file.clone())],
    };
    match places.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        false => Ok(places),
    }
}

/// Connects.
pub(super) async fn open(place: &Place, options: &SocketOptions) -> io::Result<Socket> {
    match place {
        Place::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let socket = SockRef::from(&stream);
            #[cfg(target_os = "linux")]
            socket.set_tcp_user_timeout(Some(options.user_timeout))?;
            if options.keepalives {
                socket.set_tcp_keepalive(&keepalive(options))?;
            }
            Ok(Socket::Tcp(stream))
        }
        #[cfg(unix)]
        Place::Unix(file) => Ok(Socket::Unix(tokio::net::UnixStream::connect(file).await?)),
        #[cfg(not(unix))]
        Place::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn keepalive(options: &SocketOptions) -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(options.idle).with_interval(options.interval);
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(options.retries);
    keepalive
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
