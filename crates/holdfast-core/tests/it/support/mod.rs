//! What the integration tests stand on: a database and a network that can fail on demand.

mod binaries;
mod database;
pub(crate) mod hand;
pub(crate) mod host;
pub(crate) mod load;
mod proxy;
mod server;
pub(crate) mod world;

pub(crate) use self::{database::TestDatabase, proxy::FaultProxy, server::TestServer};
