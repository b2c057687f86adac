//! Calls of JavaScript that take a while, and what becomes of them when their thread ends.
//!
//! A worker thread can be ended at any moment: its objects are freed while futures of its calls are still on the engine's
//! threads. Invariants: no such future borrows an object of JavaScript; each is dropped when its thread ends, and with it
//! goes what it holds, so that the engine of a thread that is gone stops as if its runtime had been dropped.

use std::future::Future;

use napi::{
    Env, Error, Result, Status,
    bindgen_prelude::{PromiseRaw, ToNapiValue},
};
use tokio::sync::watch;

/// Says that the thread has ended; one for each environment.
struct Life(watch::Sender<bool>);

impl Life {
    /// Of this environment; made at its first call.
    fn of(env: &Env) -> Result<watch::Receiver<bool>> {
        if let Some(Self(over)) = env.get_instance_data::<Self>()? {
            return Ok(over.subscribe());
        }
        let (over, told) = watch::channel(false);
        // The hook runs before the environment frees its objects. It is never taken back: it is the environment's own.
        env.add_env_cleanup_hook(over.clone(), |over| {
            over.send_replace(true);
        })?;
        env.set_instance_data(Self(over), (), |_| ())?;
        Ok(told)
    }
}

/// The promise of a call; its future is dropped when the thread ends.
pub(crate) fn promise<'env, T>(
    env: &'env Env,
    call: impl Future<Output = T> + Send + 'static,
) -> Result<PromiseRaw<'env, T>>
where
    T: ToNapiValue + Send + 'static,
{
    let mut life = Life::of(env)?;
    // Boxed, because what an async block is given and awaits it holds twice; thousands of calls may wait.
    let call = Box::pin(call);
    env.spawn_future(async move {
        tokio::select! {
            biased;
            value = call => Ok(value),
            _ = life.wait_for(|over| *over) => Err(Error::new(Status::Cancelled, "its thread has ended")),
        }
    })
}
