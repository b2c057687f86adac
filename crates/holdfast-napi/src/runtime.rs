//! The runtime class: JavaScript pulls batches and answers them.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use holdfast_core::{
    dispatch::Handlers,
    engine::Engine,
    error::{Error, ErrorKind, Result},
    provider::Provider,
};
use napi::{Env, bindgen_prelude::PromiseRaw};
use napi_derive::napi;

use crate::{failure::JsOutcome, life, options::JsRuntimeOptions, provider::JsPostgresProvider};

/// A runtime.
#[napi]
pub struct JsRuntime {
    provider: Arc<Provider>,
    options: Mutex<Option<JsRuntimeOptions>>,
    engine: Arc<OnceLock<Arc<Engine>>>,
}

#[napi]
impl JsRuntime {
    /// A runtime on a provider; no I/O.
    #[napi(constructor)]
    pub fn new(provider: &JsPostgresProvider, options: JsRuntimeOptions) -> Self {
        Self {
            provider: Arc::clone(&provider.inner),
            options: Mutex::new(Some(options)),
            engine: Arc::default(),
        }
    }

    /// Registers the node and begins to claim what the handlers can run.
    #[napi]
    pub fn start<'env>(&self, env: &'env Env, handlers: String) -> napi::Result<PromiseRaw<'env, JsOutcome>> {
        let (provider, engine) = (Arc::clone(&self.provider), Arc::clone(&self.engine));
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner).take();
        life::promise(env, async move { start(provider, options, &handlers, &engine).await.into() })
    }

    /// The next batch, or `null` once the runtime has stopped.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, max: u32) -> napi::Result<PromiseRaw<'env, Option<String>>> {
        let next = self.engine.get().map(|engine| engine.next(max as usize));
        life::promise(env, async move { next?.await })
    }

    /// Answers to a batch; gives the next one, of at most `max` items, when something is ready then.
    #[napi]
    pub fn complete(&self, batch: String, max: u32) -> Option<String> {
        self.engine.get()?.complete(&batch, max as usize)
    }

    /// What the runtime did so far, as JSON; `null` before it has started.
    #[napi]
    pub fn metrics(&self) -> Option<String> {
        self.engine.get().map(|engine| engine.metrics_json())
    }

    /// Drains for at most `timeout_ms`, then stops.
    #[napi]
    pub fn shutdown<'env>(
        &self,
        env: &'env Env,
        timeout_ms: f64,
    ) -> napi::Result<PromiseRaw<'env, JsOutcome>> {
        let engine = self.engine.get().map(Arc::clone);
        let limit = Duration::try_from_secs_f64(timeout_ms / 1000.0).unwrap_or_default();
        life::promise(env, async move {
            if let Some(engine) = engine {
                engine.shutdown(limit).await;
            }
            Ok(()).into()
        })
    }

    /// A shutdown in progress waits no longer for what runs.
    #[napi]
    pub fn hurry(&self) {
        if let Some(engine) = self.engine.get() {
            engine.hurry();
        }
    }

    /// How often `sign_of_life` is to be called, in ms; 0 when nobody asks.
    #[napi]
    pub fn life_interval_ms(&self) -> f64 {
        let interval = self.engine.get().and_then(|engine| engine.life_interval());
        interval.map_or(0.0, |interval| interval.as_secs_f64() * 1000.0)
    }

    /// The event loop turns.
    #[napi]
    pub fn sign_of_life(&self) {
        if let Some(engine) = self.engine.get() {
            engine.sign_of_life();
        }
    }

    /// How the engine does, as JSON; `null` before its start.
    #[napi]
    pub fn health(&self) -> Option<String> {
        let health = self.engine.get()?.health();
        serde_json::to_string(&health).ok()
    }
}

async fn start(
    provider: Arc<Provider>,
    options: Option<JsRuntimeOptions>,
    handlers: &str,
    started: &OnceLock<Arc<Engine>>,
) -> Result<()> {
    let handlers = Handlers::parse(handlers)?;
    let options = options.ok_or_else(|| Error::new(ErrorKind::Invalid, "a runtime can be started once"))?;
    let engine = Engine::start(provider, options.try_into()?, handlers).await?;
    started.set(engine).map_err(|_| Error::new(ErrorKind::Internal, "the runtime was started twice"))
}
