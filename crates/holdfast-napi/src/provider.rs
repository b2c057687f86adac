//! The provider class.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    notify::Hubs,
    pool::Pool,
    provider::{Provider, ProviderConfig},
};
use napi::{
    Env,
    bindgen_prelude::{Function, PromiseRaw},
    threadsafe_function::ThreadsafeFunctionCallMode,
};
use napi_derive::napi;

use crate::{
    failure::{JsFailure, JsOutcome},
    life,
    options::JsPoolOptions,
};

/// Longest wait for queued commits of a provider that closes: a database that is away must not hold up the exit.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A connected provider.
#[napi]
pub struct JsPostgresProvider {
    pub(crate) inner: Arc<Provider>,
}

/// Outcome of connecting.
#[napi(object, object_from_js = false)]
pub struct JsProviderOutcome {
    /// Present on success.
    pub value: Option<JsPostgresProvider>,
    /// Present on failure.
    pub failure: Option<JsFailure>,
}

#[napi]
impl JsPostgresProvider {
    /// Connects and brings the schema up to this version.
    #[napi]
    pub fn connect(
        env: &Env,
        url: String,
        schema: String,
        options: JsPoolOptions,
    ) -> napi::Result<PromiseRaw<'_, JsProviderOutcome>> {
        life::promise(env, async move {
            let connected =
                async { Provider::connect(&url, &schema, ProviderConfig::try_from(options)?).await };
            match connected.await {
                Ok(inner) => JsProviderOutcome { value: Some(Self { inner }), failure: None },
                Err(error) => JsProviderOutcome { value: None, failure: Some(error.into()) },
            }
        })
    }

    /// Commits what is queued and gives up this share of the pool.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, JsOutcome>> {
        let provider = Arc::clone(&self.inner);
        life::promise(env, async move {
            provider.close(CLOSE_LIMIT).await;
            Ok(()).into()
        })
    }

    /// Makes sure that a connection is there and answers.
    #[napi]
    pub fn warm<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, JsOutcome>> {
        let provider = Arc::clone(&self.inner);
        life::promise(env, async move { provider.pool().warm().await.into() })
    }

    /// Proves that a session of the server's own can be had.
    #[napi]
    pub fn probe_direct_session<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, JsOutcome>> {
        let provider = Arc::clone(&self.inner);
        life::promise(env, async move { provider.pool().probe_direct().await.into() })
    }

    /// Connections opened from here on show this password.
    #[napi]
    pub fn set_password(&self, password: String) {
        self.inner.pool().set_password(password);
    }

    /// Closes every hub and every pool of the process.
    #[napi]
    pub async fn close_all() -> JsOutcome {
        Hubs::of_process().close_all().await;
        Pool::close_all().await;
        Ok(()).into()
    }

    /// Rings `bell` when there are events to take, from here on; the bell keeps no process alive.
    #[napi]
    pub fn listen(&self, bell: Function<'_, (), ()>) -> napi::Result<()> {
        let bell = bell.build_threadsafe_function::<()>().weak::<true>().max_queue_size::<1>().build()?;
        // A full queue means that it rings already, a closed one that this thread has ended.
        self.inner.events().listen(Arc::new(move || {
            bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }));
        Ok(())
    }

    /// How the hub for hints of other processes stands, as JSON; `null` without one.
    #[napi]
    pub fn hub_state(&self) -> Option<String> {
        self.inner.hints().state_json()
    }

    /// Keeps no events any more.
    #[napi]
    pub fn unlisten(&self) {
        self.inner.events().unlisten();
    }

    /// The events since the last call, as a JSON array.
    #[napi]
    pub fn take_events(&self) -> String {
        self.inner.events().take_json()
    }

    /// Counters and pool state as JSON.
    #[napi]
    pub fn stats(&self) -> String {
        self.inner.stats_json()
    }
}
