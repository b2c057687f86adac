//! Sessions: activities with the same session id run on the node that owns the session.
//!
//! Ownership is taken by the claim of an activity, renewed by the liveness thread while the session is in use or was a
//! short while ago, and free for others afterwards, or when the node is gone. This room counts what is in use here; it
//! does no I/O.

mod book;

pub(crate) use book::{SessionBook, SessionLimits};
