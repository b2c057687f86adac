//! sslmode against a server with a certificate of a private authority, made by the openssl command.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, OnceLock},
    time::Duration,
};

use holdfast_core::{
    error::{Error, ErrorKind},
    pool::{Pool, Row, Session},
};

use super::{ask, lease, number, own_pid, until};
use crate::support::{TestDatabase, TestServer};

/// Rules: one user for each kind of access.
const ACCESS: &str = "
local     all all                  trust
hostssl   all certified 127.0.0.1/32 trust clientcert=verify-ca
hostnossl all certified 127.0.0.1/32 reject
hostssl   all encrypted 127.0.0.1/32 trust
hostnossl all encrypted 127.0.0.1/32 reject
hostssl   all bare      127.0.0.1/32 reject
hostnossl all bare      127.0.0.1/32 trust
host      all scram     127.0.0.1/32 scram-sha-256
host      all postgres  127.0.0.1/32 trust
";

struct Server {
    port: u16,
    files: PathBuf,
    _server: Mutex<TestServer>,
}

impl Server {
    /// The encrypted server of this process.
    fn get() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| {
            let port =
                TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
            let server = TestServer::start(|folder| {
                make_certificates(folder);
                fs::write(folder.join("access"), ACCESS).expect("the rules");
                let path = folder.display();
                format!(
                    "listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\nhba_file = '{path}/access'\n\
                     ssl_cert_file = '{path}/server.crt'\nssl_key_file = '{path}/server.key'\n\
                     ssl_ca_file = '{path}/ca.crt'\n"
                )
            });
            let files = server.folder().to_owned();
            Self { port, files, _server: Mutex::new(server) }
        })
    }

    fn url(&self, login: &str, host: &str, params: &str) -> String {
        let params = params.replace("CA", &self.file("ca.crt"));
        format!("postgres://{login}@{host}:{}/postgres?{params}", self.port)
    }

    fn file(&self, name: &str) -> String {
        self.files.join(name).display().to_string()
    }

    /// A session of this user, and whether it is encrypted.
    async fn connect(&self, login: &str, host: &str, params: &str) -> Result<bool, Error> {
        let pool = Pool::connect(&self.url(login, host, params), TestDatabase::get().pool_config()).await?;
        Ok(is_encrypted(&*lease(&pool).await).await)
    }
}

async fn is_encrypted(session: &Session) -> bool {
    let rows: Vec<Row> =
        ask(session, "select ssl from pg_stat_ssl where pid = pg_backend_pid()").await.expect("an answer");
    rows[0].get(0)
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    let answer = command.output().expect("the openssl command runs");
    assert!(answer.status.success(), "{command:?}: {}", String::from_utf8_lossy(&answer.stderr));
}

/// An authority, a server certificate for `localhost` only, and a client certificate.
fn make_certificates(folder: &Path) {
    openssl(
        folder,
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=test authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        ],
    );
    for (name, subject) in [("server", "/CN=localhost"), ("client", "/CN=certified")] {
        let (key, request, certificate) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
        openssl(
            folder,
            &["req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", &key, "-out", &request],
        );
        fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").expect("the names");
        openssl(
            folder,
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                "names",
                "-out",
                &certificate,
            ],
        );
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(folder.join(&key), private).expect("a private key");
    }
}

/// One user may come encrypted only, one plain only.
async fn make_users() {
    let server = Server::get();
    let pool = Pool::connect(
        &server.url("postgres", "localhost", "sslmode=disable"),
        TestDatabase::get().pool_config(),
    )
    .await
    .expect("the administrator may come in");
    let session = lease(&pool).await;
    let users = "select pg_advisory_lock(1);
        do $$ begin
            create role certified login; create role encrypted login; create role bare login;
            set password_encryption = 'scram-sha-256';
            create role scram login password 'geheim';
        exception when duplicate_object then null; end $$;
        select pg_advisory_unlock(1)";
    session.batch(users).await.expect("users");
}

#[tokio::test]
async fn cp_03_sslmode_decides_whether_a_session_is_encrypted() {
    make_users().await;
    for (user, params, encrypted) in [
        ("postgres", "sslmode=disable", false),
        ("postgres", "sslmode=allow", false),
        ("postgres", "sslmode=prefer", true),
        ("postgres", "", true),
        ("postgres", "sslmode=require", true),
        ("postgres", "ssl=true", true),
        ("postgres", "sslmode=no-verify", true),
        ("encrypted", "sslmode=allow", true),
        ("encrypted", "sslmode=prefer", true),
        ("bare", "sslmode=prefer", false),
        ("bare", "sslmode=allow", false),
    ] {
        let got = Server::get().connect(user, "localhost", params).await;
        assert_eq!(got.expect("a session"), encrypted, "{user} {params}");
    }
}

#[tokio::test]
async fn cp_03_sslmode_decides_what_is_checked_of_the_certificate() {
    for (host, params, good) in [
        ("localhost", "sslmode=verify-full&sslrootcert=CA", true),
        ("localhost", "sslmode=verify-ca&sslrootcert=CA", true),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=CA", true),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=CA", false),
        ("localhost", "sslmode=verify-full", false),
        ("localhost", "sslmode=verify-ca", false),
        ("localhost", "sslmode=verify-full&sslrootcert=system", false),
        ("localhost", "sslmode=require&sslrootcert=system", false),
        ("localhost", "sslrootcert=system", false),
        ("127.0.0.1", "sslmode=require&sslrootcert=CA", true),
    ] {
        match Server::get().connect("postgres", host, params).await {
            Ok(encrypted) => assert!(good && encrypted, "{host} {params}"),
            Err(error) => {
                assert!(!good, "{host} {params}: {}", error.full_text());
                assert_eq!(error.kind(), ErrorKind::Url, "{}", error.full_text());
                assert!(error.full_text().contains("certificate"), "{}", error.full_text());
            }
        }
    }
}

/// The authorities of the system are read once in a process: another one is told of this test's by `SSL_CERT_FILE`.
#[tokio::test]
async fn the_word_system_trusts_the_systems_authorities() {
    const URL: &str = "HOLDFAST_TEST_TRUSTING_URL";
    if let Ok(url) = std::env::var(URL) {
        let pool =
            Pool::connect(&url, TestDatabase::get().pool_config()).await.expect("its authority is known");
        assert!(is_encrypted(&*lease(&pool).await).await);
        return;
    }
    let server = Server::get();
    let own = std::env::current_exe().expect("this program");
    let trusts = |url: String, authority: &str| {
        let test = "pool::encryption::the_word_system_trusts_the_systems_authorities";
        let mut command = Command::new(&own);
        command.args([test, "--exact"]).env(URL, url).env("SSL_CERT_FILE", server.file(authority));
        command.output().expect("it runs").status.success()
    };
    for params in ["sslrootcert=system", "sslmode=verify-full&sslrootcert=System"] {
        assert!(trusts(server.url("postgres", "localhost", params), "ca.crt"), "{params}");
        assert!(!trusts(server.url("postgres", "127.0.0.1", params), "ca.crt"), "{params}: another name");
        assert!(!trusts(server.url("postgres", "localhost", params), "client.crt"), "{params}: no authority");
    }
}

#[tokio::test]
async fn a_strict_mode_is_never_weakened() {
    make_users().await;
    for (user, params) in [
        ("encrypted", "sslmode=disable"),
        ("bare", "sslmode=require"),
        ("bare", "sslmode=no-verify"),
        ("bare", "sslmode=verify-full&sslrootcert=CA"),
    ] {
        let error = Server::get().connect(user, "localhost", params).await.expect_err(params);
        assert_eq!(error.kind(), ErrorKind::Url, "{user} {params}: {}", error.full_text());
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    make_users().await;
    let server = Server::get();
    let files = format!("sslcert={}&sslkey={}", server.file("client.crt"), server.file("client.key"));
    server
        .connect("certified", "localhost", "sslmode=require")
        .await
        .expect_err("a certificate is asked for");
    let params = format!("sslmode=verify-full&sslrootcert=CA&{files}");
    assert!(server.connect("certified", "localhost", &params).await.expect("a session"));
}

#[tokio::test]
async fn a_password_can_be_bound_to_the_channel() {
    make_users().await;
    let server = Server::get();
    let bound = "sslmode=verify-full&sslrootcert=CA&channel_binding=require";
    assert!(server.connect("scram:geheim", "localhost", bound).await.expect("a session"));
    let error = server.connect("scram:geheim", "localhost", "sslmode=disable&channel_binding=require").await;
    assert_eq!(error.expect_err("nothing to bind to").kind(), ErrorKind::Url);
    let error =
        server.connect("scram:falsch", "localhost", "sslmode=prefer").await.expect_err("a wrong password");
    assert_eq!(error.kind(), ErrorKind::Url);
    assert!(!error.full_text().contains("falsch"), "{}", error.full_text());
}

#[tokio::test]
async fn a_query_given_up_is_stopped_over_an_encrypted_channel_too() {
    let url = Server::get().url("postgres", "localhost", "sslmode=verify-full&sslrootcert=CA");
    let pool = Pool::connect(&url, TestDatabase::get().pool_config()).await.expect("a pool");
    let observer = lease(&pool).await;
    let session = lease(&pool).await;
    let pid = own_pid(&session).await;
    ask(&session.with_limit(Duration::from_millis(50)), "select pg_sleep(600)").await.expect_err("too slow");
    drop(session);
    let alive = format!("select count(*) from pg_stat_activity where pid = {pid}");
    until("the server stops the query", async || number(&observer, &alive).await == 0).await;
}
