//! Options: the same names and fields as in `index.d.ts`; absent means Rust's default.
//!
//! TypeScript checks keys, types and units; every rule and every default is Rust's. What is resolved goes back whole, so
//! that JavaScript can show each value in force.

mod crossing;
mod pool;
mod runtime;

use holdfast_core::{config::EngineConfig, error::Result, provider::ProviderConfig};
use napi_derive::napi;

pub(crate) use self::{pool::JsPoolOptions, runtime::JsRuntimeOptions};
use crate::failure::JsFailure;

/// Outcome of resolving the options of a runtime.
#[napi(object)]
pub struct JsRuntimeOptionsOutcome {
    /// Every value in force.
    pub value: Option<JsRuntimeOptions>,
    /// Which rule is broken.
    pub failure: Option<JsFailure>,
}

/// Outcome of resolving the options of a provider.
#[napi(object)]
pub struct JsPoolOptionsOutcome {
    /// Every value in force.
    pub value: Option<JsPoolOptions>,
    /// Which rule is broken.
    pub failure: Option<JsFailure>,
}

/// Rules and defaults.
#[napi]
pub struct JsOptions {}

#[napi]
impl JsOptions {
    /// Checks the options of a runtime and fills in the defaults; no I/O.
    #[napi]
    pub fn of_runtime(options: JsRuntimeOptions) -> JsRuntimeOptionsOutcome {
        let resolved = EngineConfig::try_from(options).and_then(|config| {
            config.validate()?;
            Ok(config.in_force().into())
        });
        match resolved {
            Ok(value) => JsRuntimeOptionsOutcome { value: Some(value), failure: None },
            Err(error) => JsRuntimeOptionsOutcome { value: None, failure: Some(error.into()) },
        }
    }

    /// Checks the options of a provider and fills in the defaults; no I/O.
    #[napi]
    pub fn of_pool(options: JsPoolOptions) -> JsPoolOptionsOutcome {
        let resolved: Result<JsPoolOptions> = ProviderConfig::try_from(options).and_then(|config| {
            config.pool.validate()?;
            Ok(config.into())
        });
        match resolved {
            Ok(value) => JsPoolOptionsOutcome { value: Some(value), failure: None },
            Err(error) => JsPoolOptionsOutcome { value: None, failure: Some(error.into()) },
        }
    }
}
