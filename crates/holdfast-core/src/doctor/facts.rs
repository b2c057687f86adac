//! What was read, before anybody judges it. Spelled as the statements of `sql/doctor` spell it.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) version_number: i32,
    pub(super) max_connections: i64,
    pub(super) reserved_connections: i64,
    pub(super) sessions: i64,
    pub(super) is_read_only: bool,
    pub(super) now_ms: i64,
    pub(super) has_autovacuum: bool,
    pub(super) is_encrypted: bool,
    pub(super) role: String,
    pub(super) database: String,
    pub(super) has_schema: bool,
    pub(super) may_create_schema: bool,
    pub(super) may_use_schema: bool,
    pub(super) may_create_in_schema: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transactions {
    pub(super) oldest_seconds: Option<i64>,
    pub(super) oldest_application: Option<String>,
    pub(super) prepared: i64,
    pub(super) idle_slots: i64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) live: i64,
    pub(super) dead: i64,
    pub(super) vacuumed_seconds_ago: Option<i64>,
    pub(super) is_vacuum_off: bool,
    pub(super) has_rights: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Work {
    pub(super) live_nodes: i64,
    pub(super) stale_nodes: i64,
    pub(super) due_turns: i64,
    pub(super) oldest_turn_seconds: Option<i64>,
    pub(super) due_activities: i64,
    pub(super) oldest_activity_seconds: Option<i64>,
    pub(super) parked: i64,
    pub(super) poisoned: i64,
    pub(super) ended: i64,
}
