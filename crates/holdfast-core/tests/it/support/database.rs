//! The database of the tests: the one named by `HOLDFAST_TEST_DATABASE_URL`, or one temporary server for the process.

use std::{
    env,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use holdfast_core::pool::{MaxClients, Pool, PoolConfig};

use super::server::TestServer;

/// The database all tests of the process share.
pub(crate) struct TestDatabase {
    url: String,
    /// Kept for its pipe to the watchdog, which ends the server when the process does.
    _server: Option<Mutex<TestServer>>,
}

impl TestDatabase {
    /// The database; the first call may start a server.
    pub(crate) fn get() -> &'static Self {
        static DATABASE: OnceLock<TestDatabase> = OnceLock::new();
        DATABASE.get_or_init(|| match env::var("HOLDFAST_TEST_DATABASE_URL") {
            Ok(url) if !url.is_empty() => Self { url, _server: None },
            _ => {
                let server = TestServer::start(|_| String::new());
                Self { url: server.url(), _server: Some(Mutex::new(server)) }
            }
        })
    }

    /// Its URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The name of a schema that nobody else uses; the test makes it.
    pub(crate) fn schema(&self) -> String {
        unique("hf_test")
    }

    /// Options that make a pool of this test alone: its application name is unique, so that the pool is not shared
    /// with a test on another runtime and its sessions can be found in `pg_stat_activity`.
    pub(crate) fn pool_config(&self) -> PoolConfig {
        PoolConfig {
            application_name: unique("test"),
            max_clients: MaxClients::Given(8),
            ..PoolConfig::default()
        }
    }

    /// A pool of this test alone, with default options.
    pub(crate) async fn pool(&self) -> Arc<Pool> {
        Pool::connect(self.url(), self.pool_config()).await.expect("the test database answers")
    }
}

fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
    format!("{prefix}_{now}_{}_{count}", std::process::id())
}
