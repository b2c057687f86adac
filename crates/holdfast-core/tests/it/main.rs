//! The integration tests of the engine against a real PostgreSQL, in one binary.

mod pool;
mod support;
