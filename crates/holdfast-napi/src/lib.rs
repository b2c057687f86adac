//! The Node binding: conversion only. Every decision lives in `holdfast-core`.
//!
//! Native async methods never reject: they resolve to `{ value }` or `{ failure }`, and the TypeScript side throws. None borrows
//! its object while it runs (`life`).

mod abort;
mod client;
mod doctor;
mod failure;
mod life;
mod logging;
mod options;
mod provider;
mod runtime;

use napi::bindgen_prelude::create_custom_tokio_runtime;

/// Two threads serve a database-bound engine; more only cost switches between them.
const WORKER_THREADS: usize = 2;

/// Makes the process-wide runtime before the first call needs it.
#[napi_derive::module_init]
fn init() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(WORKER_THREADS))
        .thread_name("holdfast")
        .enable_all()
        .build();
    // Without it napi makes its own on first use, with its own error.
    if let Ok(runtime) = runtime {
        create_custom_tokio_runtime(runtime);
    }
}
