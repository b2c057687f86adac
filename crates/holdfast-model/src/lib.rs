//! The lease protocol as a finite model: rows, nodes, claims, settles and every fault between them.
//!
//! It explores all orders of all actions, checks the safety rules at each, and asks of each state whether everything can
//! still end. It knows nothing of SQL: that the statements do what the model says is tested against PostgreSQL.
//!
//! The search is its own because the question about liveness needs the whole graph backwards, which checkers that search
//! forwards answer wrongly on graphs with cycles; and claims, lapses and takeovers are one big cycle.

pub mod action;
pub mod explore;
pub mod rules;
pub mod state;
pub mod step;
