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

/// One thread serves a database-bound engine: it waits for the server nearly always, and a second one costs more in waking than
/// it carries. Liveness has a thread of its own.
const WORKER_THREADS: usize = 1;

/// The C library gives each thread of a busy process a heap of its own, and what one thread frees of another's stays there: at
/// a thousand workflows in flight that is an eighth of the process. Threads made from here on share two. Who set the
/// number in the environment keeps it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_heaps() {
    /// Number of heaps at most, from malloc.h.
    const M_ARENA_MAX: i32 = -8;
    unsafe extern "C" {
        safe fn mallopt(parameter: i32, value: i32) -> i32;
    }
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        mallopt(M_ARENA_MAX, 2);
    }
}

/// Other C libraries have one heap.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn share_heaps() {}

/// Makes the process-wide runtime before the first call needs it.
#[napi_derive::module_init]
fn init() {
    share_heaps();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("holdfast")
        .enable_all()
        .build();
    // Without it napi makes its own on first use, with its own error.
    if let Ok(runtime) = runtime {
        create_custom_tokio_runtime(runtime);
    }
}
