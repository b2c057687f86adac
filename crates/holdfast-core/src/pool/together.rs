//! A connection on which the statements of a flight travel together: the server answers them at once, with one write of its
//! own, instead of one for each.
//!
//! The driver ends every statement with `Sync`, and the server sends what it has with each; on a small machine these writes, and
//! the waking of whoever reads them, cost as much as the statements. Between two marks in the stream the `Sync`s are left out,
//! and one stands at the end; the driver gets the answers that it expects all the same. Inside an explicit transaction that
//! makes no difference: after an error the rest of it is refused in both cases. The marks are comments, so that a server that did
//! see one would answer it as an empty query. It knows message frames, never what is in them.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::frames::{self, Backend, Expected, Frontend};

/// Bytes that wait for the socket before the driver has to wait, too.
const MAX_WAITING: usize = 1 << 20;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// Switched on once the session is open: the first messages of a connection have another form.
pub(super) type Switch = Arc<AtomicBool>;

/// See the module.
pub(super) struct Together<S> {
    stream: S,
    on: Switch,
    frontend: Frontend,
    /// How much of what waits in it the socket has taken.
    sent: usize,
    backend: Backend,
    expected: VecDeque<Expected>,
    chunk: Box<[u8]>,
    reader: Option<Waker>,
}

impl<S> Together<S> {
    pub(super) fn new(stream: S, on: Switch) -> Self {
        Self {
            stream,
            on,
            frontend: Frontend::default(),
            sent: 0,
            backend: Backend::default(),
            expected: VecDeque::new(),
            chunk: vec![0; CHUNK].into_boxed_slice(),
            reader: None,
        }
    }
}

impl<S: AsyncWrite + Unpin> Together<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, frontend: Frontend { waiting, .. }, sent, .. } = self;
        while *sent < waiting.len() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, &waiting[*sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                some => *sent += some,
            }
        }
        *sent = 0;
        frames::empty(waiting);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Together<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.on.load(Ordering::Acquire) {
            return Pin::new(&mut this.stream).poll_read(cx, buffer);
        }
        loop {
            if !this.backend.is_drained() {
                this.backend.give(buffer);
                return Poll::Ready(Ok(()));
            }
            let mut chunk = ReadBuf::new(&mut this.chunk);
            if Pin::new(&mut this.stream).poll_read(cx, &mut chunk)?.is_pending() {
                this.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.backend.raw.extend_from_slice(chunk.filled());
            this.backend.tell(&mut this.expected);
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Together<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if !this.on.load(Ordering::Acquire) {
            return Pin::new(&mut this.stream).poll_write(cx, bytes);
        }
        if this.frontend.waiting.len() - this.sent > MAX_WAITING {
            ready!(this.poll_drain(cx))?;
        }
        this.frontend.take(bytes, &mut this.expected);
        this.backend.marks(&mut this.expected);
        if !this.backend.is_drained()
            && let Some(reader) = this.reader.take()
        {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Together<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// Makes encrypted connections on which statements travel together.
pub(super) struct Encrypting<C> {
    pub(super) connector: C,
    pub(super) on: Switch,
    /// Set when the connection is encrypted after all.
    pub(super) encrypted: Switch,
}

impl<S, C> TlsConnect<S> for Encrypting<C>
where
    C: TlsConnect<S>,
    C::Future: Send + 'static,
    C::Stream: Unpin,
{
    type Stream = Together<C::Stream>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self { connector, on, encrypted } = self;
        let connecting = connector.connect(stream);
        Box::pin(async move {
            let stream = connecting.await?;
            encrypted.store(true, Ordering::Release);
            Ok(Together::new(stream, on))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// A socket that takes a few bytes at a time.
    struct Narrow {
        taken: Vec<u8>,
        waits: bool,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.waits = !self.waits;
            if self.waits {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let some = bytes.len().min(128);
            self.taken.extend_from_slice(&bytes[..some]);
            Poll::Ready(Ok(some))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_narrow_socket_gets_large_messages_whole_and_nothing_of_them_is_kept() {
        let body: Vec<u8> = (0..4 * MAX_WAITING).map(|at| (at % 251) as u8).collect();
        let length = u32::try_from(body.len() + 4).expect("short");
        let message = [b"B", &length.to_be_bytes()[..], &body].concat();
        let narrow = Narrow { taken: Vec::new(), waits: false };
        let mut together = Together::new(narrow, Arc::new(AtomicBool::new(true)));
        for _ in 0..2 {
            let written = poll_fn(|cx| Pin::new(&mut together).poll_write(cx, &message)).await;
            assert_eq!(written.expect("it is taken"), message.len());
        }
        poll_fn(|cx| Pin::new(&mut together).poll_flush(cx)).await.expect("it is sent");
        assert_eq!(together.stream.taken, [&message[..], &message].concat());
        assert_eq!(together.frontend.waiting.capacity(), 0);
    }
}
