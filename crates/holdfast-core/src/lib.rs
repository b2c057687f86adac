//! The engine of Holdfast. It knows PostgreSQL and nothing of JavaScript.
#![forbid(unsafe_code)]

pub mod error;
pub mod pool;
pub mod store;
