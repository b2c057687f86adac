//! A temporary PostgreSQL server. A watchdog process ends it and removes its files however this process ends.

use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use super::binaries::Binaries;

/// A user without rights, for a server that refuses to run as root.
const NOBODY: u32 = 65_534;

/// Reads until the pipe closes, stops the server at once, waits for its end, removes the folder.
const WATCHDOG: &str = r#"
read ignored
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
  kill -QUIT "$pid" 2>/dev/null
  left=100
  while [ $left -gt 0 ] && kill -0 "$pid" 2>/dev/null; do left=$((left - 1)); sleep 0.05; done
fi
rm -rf "$1"
"#;

/// A running server; it ends when this value is dropped or the process dies.
pub(crate) struct TestServer {
    folder: PathBuf,
    watchdog: Child,
}

impl TestServer {
    /// Starts a server; `prepare` may put files into its folder and gives further lines for its configuration.
    pub(crate) fn start(prepare: impl FnOnce(&Path) -> String) -> Self {
        let server = Self::empty();
        let settings = prepare(&server.folder);
        if is_root() {
            give_away(&server.folder);
        }
        let binaries = Binaries::find(&server.folder);
        let data = server.data();
        run(
            &server.folder,
            binaries.command("initdb").arg("-D").arg(&data).args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "--no-sync",
                "--no-instructions",
                "--locale=C.UTF-8",
                "-E",
                "UTF8",
                "--wal-segsize=1",
            ]),
        );
        let defaults = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 200\nfsync = off\n\
             synchronous_commit = off\nfull_page_writes = off\n",
            server.folder.display()
        );
        fs::write(data.join("postgresql.auto.conf"), defaults + &settings)
            .expect("the server's configuration");
        server.start_again();
        server
    }

    /// A server that follows this one, which is restarted for it. From then on no commit is answered that is not on both.
    pub(crate) fn standby(&self) -> Self {
        let standby = Self::empty();
        if is_root() {
            give_away(&standby.folder);
        }
        self.control(&["stop", "-w", "-m", "fast"]);
        let mut copy = Command::new("cp");
        run(&self.folder, copy.arg("-a").arg(self.data()).arg(standby.data()));
        self.configure("synchronous_standby_names = '*'\nsynchronous_commit = on\n");
        standby.configure(&format!(
            "unix_socket_directories = '{}'\nprimary_conninfo = 'host={} user=postgres'\n",
            standby.folder.display(),
            self.folder.display()
        ));
        fs::write(standby.data().join("standby.signal"), "").expect("the mark of a standby");
        self.start_again();
        standby.start_again();
        standby
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) {
        self.control(&["promote", "-w"]);
    }

    /// Stops the server as a crash would: sessions end without a goodbye.
    pub(crate) fn crash(&self) {
        self.control(&["stop", "-w", "-m", "immediate"]);
    }

    /// Starts the server, also after it was stopped.
    pub(crate) fn start_again(&self) {
        self.control(&["start", "-w"]);
    }

    fn empty() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("holdfast-test-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        Self { watchdog: watchdog(&folder), folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn configure(&self, lines: &str) {
        let file = self.data().join("postgresql.auto.conf");
        let before = fs::read_to_string(&file).expect("the server's configuration");
        fs::write(&file, before + lines).expect("the server's configuration");
    }

    fn control(&self, verb: &[&str]) {
        let binaries = Binaries::find(&self.folder);
        let mut command = binaries.command("pg_ctl");
        command.args(verb).arg("-D").arg(self.data()).arg("-l").arg(self.folder.join("log"));
        run(&self.folder, &mut command);
    }

    /// The folder with the socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Restarts the server as after a crash: sessions end without a goodbye.
    pub(crate) fn restart(&self) {
        self.control(&["restart", "-w", "-m", "immediate"]);
    }

    /// The server's URL by its socket.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@/postgres?host={}", self.folder.display())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

fn watchdog(folder: &Path) -> Child {
    Command::new("sh")
        .args(["-c", WATCHDOG, "watchdog"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the watchdog starts")
}

fn run(folder: &Path, command: &mut Command) {
    let errors = folder.join("errors");
    let file = fs::File::create(&errors).expect("a file for errors");
    command.stdin(Stdio::null()).stdout(file.try_clone().expect("a handle")).stderr(file);
    command.current_dir(folder).process_group(0);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let status = command.status().expect("the program starts");
    let text = || fs::read_to_string(&errors).unwrap_or_default();
    assert!(status.success(), "{command:?} failed: {}", text());
}

fn is_root() -> bool {
    let answer = Command::new("id").arg("-u").output().expect("id runs");
    String::from_utf8_lossy(&answer.stdout).trim() == "0"
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a readable folder") {
            give_away(&entry.expect("an entry").path());
        }
    }
}
