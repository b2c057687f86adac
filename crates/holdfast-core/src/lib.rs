//! The engine of Holdfast. It knows PostgreSQL and nothing of JavaScript.
//!
//! Rooms from the bottom up: [`error`], [`pool`], [`store`], `lease` and [`notify`], `session`, `commit`, [`provider`], [`crossing`],
//! `turn`, `activity` and `liveness`, [`dispatch`], [`client`] and [`manage`], [`engine`].
#![forbid(unsafe_code)]

mod activity;
mod chance;
pub mod client;
mod clock;
pub mod commit;
pub mod config;
pub mod crossing;
pub mod dispatch;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod failpoint;
pub mod lease;
pub mod limits;
mod liveness;
pub mod manage;
pub mod notify;
pub mod pool;
pub mod provider;
mod session;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod store;
pub mod telemetry;
mod turn;
