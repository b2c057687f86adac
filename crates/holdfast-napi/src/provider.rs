//! The provider class.

use std::{sync::Arc, time::Duration};

use holdfast_core::provider::Provider;
use napi_derive::napi;

use crate::{
    failure::{JsFailure, JsOutcome},
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
    pub async fn connect(url: String, schema: String, options: JsPoolOptions) -> JsProviderOutcome {
        match Provider::connect(&url, &schema, options).await {
            Ok(inner) => JsProviderOutcome { value: Some(Self { inner }), failure: None },
            Err(error) => JsProviderOutcome { value: None, failure: Some(error.into()) },
        }
    }

    /// Commits what is queued and gives up this share of the pool.
    #[napi]
    pub async fn close(&self) -> JsOutcome {
        self.inner.close(CLOSE_LIMIT).await;
        Ok(()).into()
    }

    /// Makes sure that a connection is there and answers.
    #[napi]
    pub async fn warm(&self) -> JsOutcome {
        self.inner.pool().warm().await.into()
    }

    /// Counters and pool state as JSON.
    #[napi]
    pub fn stats(&self) -> String {
        self.inner.stats_json()
    }
}
