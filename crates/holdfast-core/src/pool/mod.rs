//! The connection pool: bounded sessions shared fairly, calls with time limits, errors classed once.
//!
//! Invariants: never more than `max_clients` sessions for each URL and options in one process; a session that is
//! broken, busy or changed never goes to another caller; credentials appear in no error and no log. It never decides
//! what is done about an error.

mod classify;
mod config;
mod connector;
mod flight;
mod gate;
mod lease;
mod session;
mod shared;
mod statement;
mod stats;

pub use self::{
    config::{MAX_CLIENTS_CAP, PoolConfig, PoolerMode},
    gate::CallerClass,
    lease::Lease,
    session::{Limited, Session, SessionPurpose},
    shared::Pool,
    statement::Statement,
    stats::PoolStats,
};
pub use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
