//! The integration tests of the engine against a real PostgreSQL, in one binary.

mod pool;
mod store_commit;
mod store_harness;
mod support;
