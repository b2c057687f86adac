//! A statement: its text with the schema filled in, its parameter types, and a name for errors and counters.

use std::borrow::Cow;

use tokio_postgres::types::Type;

/// One SQL statement of the engine, ready to run in one schema.
#[derive(Debug)]
pub struct Statement {
    /// `family/verb`, for errors and counters.
    pub name: &'static str,
    /// The SQL text.
    pub text: String,
    /// Parameter types, in order; they make one round trip without a named statement possible.
    pub types: Cow<'static, [Type]>,
}
