//! The integration tests of the engine against a real PostgreSQL, in one binary.

mod dispatch_cost;
mod engine;
mod engine_faults;
mod engine_fence;
mod engine_liveness;
mod engine_load;
mod engine_network;
mod engine_stops;
mod lease_claim;
mod lease_recovery;
mod lease_settle;
mod pool;
mod store_commit;
mod store_coverage;
mod store_crossing;
mod store_harness;
mod store_look;
mod store_manage;
mod store_messages;
mod store_migrate;
mod store_plans;
mod store_sessions;
mod store_standalone;
mod store_tags;
mod support;
mod waiters;
