//! The connection pool: bounded sessions shared fairly, calls with time limits, errors classed once.
//!
//! Invariants: never more than `max_clients` sessions for each URL and options in one process; a session that is
//! broken, busy or changed never goes to another caller; credentials appear in no error and no log. It never decides
//! what is done about an error.

mod breaker;
mod cancel;
mod classify;
mod config;
mod connector;
mod direct;
mod driving;
mod endpoint;
mod flight;
mod frames;
mod gate;
mod health;
mod lease;
mod places;
mod prepared;
mod registry;
mod retry;
mod security;
mod session;
mod shared;
mod socket;
mod statement;
mod stats;
mod tally;
mod target;
mod together;
mod trace;
mod upkeep;
mod url;

pub use self::{
    config::{MAX_CLIENTS_CAP, MaxClients, PoolConfig, PoolerMode},
    direct::{DirectPlace, DirectWay},
    gate::CallerClass,
    lease::{Lease, Loan},
    registry::{Pool, Runtimes},
    session::{Limited, Session, SessionPurpose},
    statement::Statement,
    stats::PoolStats,
};
pub use tokio_postgres::{
    Notification, Row,
    types::{ToSql, Type},
};
