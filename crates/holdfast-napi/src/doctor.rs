//! The check of a deployment.

use holdfast_core::{
    config::EngineConfig,
    doctor,
    error::{Error, ErrorKind, Result},
    provider::ProviderConfig,
};
use napi_derive::napi;

use crate::{
    failure::JsTextOutcome,
    options::{JsPoolOptions, JsRuntimeOptions},
};

/// The check of a deployment.
#[napi]
pub struct JsDoctor {}

#[napi]
impl JsDoctor {
    /// Findings as a JSON list `{ id, level, text, advice }`.
    #[napi]
    pub async fn examine(
        url: String,
        schema: String,
        pool: JsPoolOptions,
        runtime: JsRuntimeOptions,
    ) -> JsTextOutcome {
        examine(&url, &schema, pool, runtime).await.into()
    }
}

async fn examine(url: &str, schema: &str, pool: JsPoolOptions, runtime: JsRuntimeOptions) -> Result<String> {
    let (pool, runtime) = (ProviderConfig::try_from(pool)?.pool, EngineConfig::try_from(runtime)?);
    let findings = doctor::examine(url, schema, pool, &runtime).await;
    serde_json::to_string(&findings)
        .map_err(|error| Error::new(ErrorKind::Internal, "write the findings").caused_by(error))
}
