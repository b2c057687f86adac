//! A TCP proxy in front of the database that delays, holds back or cuts traffic on demand.

use std::{future::pending, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tokio_postgres::config::Host;

/// What the proxy does with traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    DelayReplies(Duration),
    HoldReplies,
    /// Passes until a client says `commit`; from then on answers are held.
    AwaitCommit,
    /// The server's answers come byte by byte, so far apart.
    Trickle(Duration),
    BlackHole,
    Cut,
    /// As `Cut`, but with a reset.
    Reset,
    /// The server's side is closed towards the client, whose own bytes still pass.
    HalfClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Towards {
    Server,
    Client,
}

/// See the module. It ends, with its connections, when dropped.
pub(crate) struct FaultProxy {
    url: String,
    mode: watch::Sender<Mode>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone)]
enum Upstream {
    Socket(PathBuf),
    Address(String, u16),
}

impl FaultProxy {
    /// A proxy in front of the database with this URL.
    pub(crate) async fn start(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().expect("a plain URL of a test database");
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let upstream = match config.get_hosts().first().expect("a host") {
            Host::Unix(folder) => Upstream::Socket(folder.join(format!(".s.PGSQL.{port}"))),
            Host::Tcp(host) => Upstream::Address(host.clone(), port),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let user = config.get_user().unwrap_or("postgres").to_owned();
        let password = config.get_password().map(|text| format!(":{}", String::from_utf8_lossy(text)));
        let database = config.get_dbname().unwrap_or("postgres").to_owned();
        let (mode, changes) = watch::channel(Mode::Pass);
        Self {
            url: format!("postgres://{user}{}@{address}/{database}", password.unwrap_or_default()),
            task: tokio::spawn(accept(listener, upstream, mode.clone(), changes)),
            mode,
        }
    }

    /// The URL that goes through the proxy.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Traffic passes, what was held back first.
    pub(crate) fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// The server's answers come this much later.
    pub(crate) fn delay_replies(&self, delay: Duration) {
        self.mode.send_replace(Mode::DelayReplies(delay));
    }

    /// Requests reach the server; its answers wait.
    pub(crate) fn hold_replies(&self) {
        self.mode.send_replace(Mode::HoldReplies);
    }

    /// The same from the next `commit` on.
    pub(crate) fn hold_replies_from_commit(&self) {
        self.mode.send_replace(Mode::AwaitCommit);
    }

    /// Nothing passes in either direction; connections stay open.
    pub(crate) fn black_hole(&self) {
        self.mode.send_replace(Mode::BlackHole);
    }

    /// Every connection ends, what was held back is lost, new ones end at once, until `pass`.
    pub(crate) fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }
}

impl FaultProxy {
    /// The server's answers come byte by byte, so far apart.
    pub(crate) fn trickle(&self, apart: Duration) {
        self.mode.send_replace(Mode::Trickle(apart));
    }

    /// Every connection is reset, new ones too, until `pass`.
    pub(crate) fn reset(&self) {
        self.mode.send_replace(Mode::Reset);
    }

    /// Towards the client every connection is at its end, also new ones, until `pass`; its own bytes still go through.
    pub(crate) fn half_close(&self) {
        self.mode.send_replace(Mode::HalfClose);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    upstream: Upstream,
    set: watch::Sender<Mode>,
    mode: watch::Receiver<Mode>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, set, mode) = (upstream.clone(), set.clone(), mode.clone());
        connections.spawn(async move {
            match upstream {
                Upstream::Socket(path) => {
                    if let Ok(server) = UnixStream::connect(path).await {
                        let (read, write) = server.into_split();
                        serve(client, read, write, &set, mode).await;
                    }
                }
                Upstream::Address(host, port) => {
                    if let Ok(server) = TcpStream::connect((host, port)).await {
                        let (read, write) = server.into_split();
                        serve(client, read, write, &set, mode).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    mut client: TcpStream,
    from_server: impl AsyncRead + Unpin,
    to_server: impl AsyncWrite + Unpin,
    set: &watch::Sender<Mode>,
    mode: watch::Receiver<Mode>,
) {
    let (from_client, to_client) = client.split();
    let mut cut = mode.clone();
    tokio::select! {
        _ = cut.wait_for(|mode| [Mode::Cut, Mode::Reset].contains(mode)) => {}
        () = pump(from_client, to_server, set, mode.clone(), Towards::Server) => {}
        () = pump(from_server, to_client, set, mode, Towards::Client) => {}
    }
    if *cut.borrow() == Mode::Reset {
        client.set_zero_linger().expect("a socket that is reset when it closes");
    }
}

/// The end of a transaction as a client sends it.
const COMMIT: &[u8] = b"commit\0";

async fn is_half_closed(mode: &mut watch::Receiver<Mode>) {
    if mode.wait_for(|mode| *mode == Mode::HalfClose).await.is_err() {
        pending().await
    }
}

/// Moves bytes one way until an end closes.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    set: &watch::Sender<Mode>,
    mut mode: watch::Receiver<Mode>,
    towards: Towards,
) {
    let mut buffer = vec![0; 64 * 1024];
    let mut half = mode.clone();
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => Some(read),
            () = is_half_closed(&mut half), if towards == Towards::Client => None,
        };
        let Some(read) = read else {
            let _ = to.shutdown().await;
            return pending().await;
        };
        let Ok(mut length) = read else { return };
        if length == 0 {
            return;
        }
        loop {
            let now = *mode.borrow_and_update();
            match (now, towards) {
                (Mode::BlackHole | Mode::Cut | Mode::Reset, _) | (Mode::HoldReplies, Towards::Client) => {
                    if mode.changed().await.is_err() {
                        pending::<()>().await;
                    }
                }
                (Mode::AwaitCommit, Towards::Server) => {
                    if buffer[..length].windows(COMMIT.len()).any(|bytes| bytes == COMMIT) {
                        set.send_replace(Mode::HoldReplies);
                    }
                    break;
                }
                (Mode::DelayReplies(delay), Towards::Client) => {
                    // An answer may come in several pieces: they are late together.
                    let gather = async {
                        while length < buffer.len() {
                            match from.read(&mut buffer[length..]).await {
                                Ok(more) if more > 0 => length += more,
                                _ => break,
                            }
                        }
                        pending::<()>().await
                    };
                    let _ = tokio::time::timeout(delay, gather).await;
                    break;
                }
                (Mode::Trickle(apart), Towards::Client) => {
                    for byte in &buffer[..length - 1] {
                        if to.write_all(&[*byte]).await.is_err() {
                            return;
                        }
                        tokio::time::sleep(apart).await;
                    }
                    buffer[0] = buffer[length - 1];
                    length = 1;
                    break;
                }
                _ => break,
            }
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
