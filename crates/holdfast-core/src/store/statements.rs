//! Every statement of the engine, with the schema filled in.
//!
//! A statement is a file under `sql/`; its head comment names its parameters, and the types here repeat them (a test
//! compares both). `/*schema*/` stands for the quoted schema and a dot, `/*schema name*/` for the name inside a
//! literal. It never runs anything.

use std::borrow::Cow;

use tokio_postgres::types::Type;

use crate::{
    pool::Statement,
    store::{
        batched::{Batched, element, for_one},
        low_water::LowWater,
    },
};

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../../sql/", $name, ".sql"))
    };
}

macro_rules! statements {
    (
        $($field:ident: $name:literal, [$($kind:ident),*];)*
        => over rows
        $($rows:ident: $rows_name:literal, [$($rows_kind:ident),*];)*
    ) => {
        /// The statements of one schema.
        #[derive(Debug)]
        pub struct Statements {
            /// Name of the schema, unquoted.
            pub(super) schema: String,
            /// Head of every transaction that claims, renews, recovers or commits.
            pub(super) settings: String,
            /// The same for claims and the reads that follow them, which may wait for a table.
            pub(super) patient_settings: String,
            /// How far back the claims of this process look.
            pub(super) low_water: LowWater,
            $(pub(super) $field: Statement,)*
            $(pub(super) $rows: Batched,)*
        }

        impl Statements {
            /// The statements for a schema; any name is allowed.
            pub fn new(schema: &str) -> Self {
                let settings = fill(include_str!("../../sql/commit/settings.sql"), schema);
                Self {
                    schema: schema.to_owned(),
                    patient_settings: settings.replace(LOCK_TIMEOUT, "60s"),
                    settings: settings.replace(LOCK_TIMEOUT, "2s"),
                    low_water: LowWater::default(),
                    $($field: Statement {
                        name: $name,
                        text: fill(template!($name), schema),
                        types: Cow::Borrowed(&[$(Type::$kind),*]),
                    },)*
                    $($rows: Batched {
                        many: Statement {
                            name: $rows_name,
                            text: fill(template!($rows_name), schema),
                            types: Cow::Borrowed(&[$(Type::$rows_kind),*]),
                        },
                        one: Statement {
                            name: concat!($rows_name, "_one"),
                            text: fill(&for_one(template!($rows_name)), schema),
                            types: [$(element(&Type::$rows_kind).clone()),*].into_iter().collect(),
                        },
                    },)*
                }
            }

            /// The claims that follow look from the beginning.
            #[cfg(any(test, feature = "sim"))]
            pub(crate) fn forget_marks(&self) {
                self.low_water.forget();
            }

            /// Name of the schema, unquoted.
            pub fn schema(&self) -> &str {
                &self.schema
            }

            /// Every statement, for preparing them ahead and for tests of their plans.
            pub fn all(&self) -> Vec<&Statement> {
                vec![$(&self.$field,)* $(&self.$rows.many),*]
            }

            /// The second texts of statements over rows, for tests of their plans.
            pub fn all_for_one(&self) -> Vec<&Statement> {
                vec![$(&self.$rows.one),*]
            }
        }
    };
}

statements! {
    migrate_read_table: "migrate/read_table", [];
    migrate_read_version: "migrate/read_version", [];
    notify_lead: "notify/lead", [TEXT];
    notify_send: "notify/send", [TEXT, TEXT];
    notify_stand: "notify/stand", [TEXT_ARRAY, INT8_ARRAY, BOOL];
    node_beat: "node/beat", [TEXT, INT8, BOOL, BOOL];
    node_delete: "node/delete", [TEXT, INT8];
    node_delete_stale: "node/delete_stale", [TEXT, INT8, BOOL, BOOL, INT8, INT8_ARRAY];
    node_publish: "node/publish", [TEXT, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    node_register: "node/register", [TEXT, INT8, INT8];
    turn_claim: "turn/claim", [TEXT, INT8, TEXT_ARRAY, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, INT8, INT8, INT8];
    turn_claim_suspects: "turn/claim_suspects", [TEXT, INT8, TEXT_ARRAY, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, INT8, INT8];
    turn_free: "turn/free", [TEXT, INT8, INT8];
    turn_list_gone: "turn/list_gone", [TEXT, INT8, INT8_ARRAY];
    turn_list_open: "turn/list_open", [TEXT, INT8];
    turn_read_cancels: "turn/read_cancels", [TEXT_ARRAY];
    turn_read_history: "turn/read_history", [TEXT_ARRAY, INT8_ARRAY];
    turn_read_inbox: "turn/read_inbox", [TEXT_ARRAY, INT8, INT8];
    turn_recover: "turn/recover", [INT8];
    turn_abandon: "turn/abandon", [TEXT, INT8, INT8_ARRAY, BOOL];
    turn_cut_off: "turn/cut_off", [TEXT, INT8, INT8_ARRAY];
    turn_release: "turn/release", [TEXT, INT8, INT8_ARRAY, INT8];
    turn_release_unknown: "turn/release_unknown", [TEXT, INT8, INT8_ARRAY, INT8];
    turn_renew: "turn/renew", [TEXT, INT8, INT8_ARRAY, INT8, INT8, INT8];
    activity_claim: "activity/claim", [TEXT, INT8, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, INT8];
    activity_claim_suspects: "activity/claim_suspects", [TEXT, INT8, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, BOOL, BOOL, TEXT_ARRAY, BOOL];
    activity_claim_in_session: "activity/claim_in_session", [TEXT, INT8, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, INT8, BOOL, BOOL, TEXT_ARRAY, INT8, INT8, BOOL, BOOL];
    activity_claim_tagged: "activity/claim_tagged", [TEXT, INT8, TEXT_ARRAY, INT8, BOOL, INT8, INT8, INT8, INT4, INT8, BOOL, TEXT_ARRAY];
    activity_beat: "activity/beat", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY];
    activity_free: "activity/free", [TEXT, INT8, INT8];
    activity_list_gone: "activity/list_gone", [TEXT, INT8, INT8_ARRAY];
    activity_list_taken: "activity/list_taken", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY];
    activity_recover: "activity/recover", [INT8];
    activity_abandon: "activity/abandon", [TEXT, INT8, INT8_ARRAY, BOOL];
    activity_release: "activity/release", [TEXT, INT8, INT8_ARRAY, INT8];
    activity_release_unknown: "activity/release_unknown", [TEXT, INT8, INT8_ARRAY, INT8];
    activity_renew: "activity/renew", [TEXT, INT8, INT8_ARRAY, INT8, INT8, INT8];
    audit_list_malformed: "audit/list_malformed", [INT8];
    audit_list_orphans: "audit/list_orphans", [INT8];
    doctor_hold: "doctor/hold", [];
    doctor_listen: "doctor/listen", [];
    doctor_notify: "doctor/notify", [];
    doctor_read_pid: "doctor/read_pid", [];
    doctor_read_server: "doctor/read_server", [];
    doctor_read_tables: "doctor/read_tables", [];
    doctor_read_transactions: "doctor/read_transactions", [];
    doctor_read_work: "doctor/read_work", [];
    commit_answer_reads: "commit/answer_reads", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    commit_continue_instances: "commit/continue_instances", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    commit_delete_activities: "commit/delete_activities", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY];
    commit_delete_timers: "commit/delete_timers", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY];
    commit_delete_values: "commit/delete_values", [TEXT_ARRAY, TEXT_ARRAY];
    commit_find_held_activities: "commit/find_held_activities", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_find_results: "commit/find_results", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY];
    commit_find_settled_activities: "commit/find_settled_activities", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY];
    commit_find_settled_turns: "commit/find_settled_turns", [TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY];
    commit_insert_messages: "commit/insert_messages", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    commit_insert_turn_rows: "commit/insert_turn_rows", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY];
    commit_list_locked: "commit/list_locked", [TEXT_ARRAY];
    commit_lock_turn_rows: "commit/lock_turn_rows", [TEXT_ARRAY];
    commit_refuse_children: "commit/refuse_children", [TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY];
    commit_release_begun: "commit/release_begun", [TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_release_retaken: "commit/release_retaken", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_retake_turns: "commit/retake_turns", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY];
    commit_release_handed: "commit/release_handed", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY];
    commit_retry_activities: "commit/retry_activities", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY];
    commit_set_values: "commit/set_values", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    dispatch_find_unserved: "dispatch/find_unserved", [];
    dispatch_look: "dispatch/look", [TEXT, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL, BOOL, TEXT_ARRAY, INT8, INT8, INT8, INT8, BOOL, INT8, INT8];
    commit_yield_to_cancels: "commit/yield_to_cancels", [TEXT_ARRAY, INT8_ARRAY];
    instance_get: "instance/get", [TEXT_ARRAY];
    instance_list_ended: "instance/list_ended", [TEXT_ARRAY];
    instance_read_history: "instance/read_history", [TEXT, INT8];
    instance_read_values: "instance/read_values", [TEXT, TEXT];
    standalone_cancel: "standalone/cancel", [TEXT, TEXT, INT8];
    standalone_compare: "standalone/compare", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    standalone_delete: "standalone/delete", [TEXT];
    standalone_end: "standalone/end", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    standalone_get: "standalone/get", [TEXT_ARRAY];
    standalone_insert: "standalone/insert", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY];
    standalone_list_ended: "standalone/list_ended", [TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT];
    standalone_list_open: "standalone/list_open", [TEXT_ARRAY, INT8];
    standalone_list_queued: "standalone/list_queued", [TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT];
    standalone_retry: "standalone/retry", [TEXT];
    standalone_sweep: "standalone/sweep", [INT8];
    standalone_undo_ended: "standalone/undo_ended", [TEXT_ARRAY];
    standalone_want: "standalone/want", [TEXT_ARRAY, INT8];
    message_forget_keys: "message/forget_keys", [INT8, INT8];
    session_free: "session/free", [TEXT, INT8];
    session_recover: "session/recover", [INT8];
    session_renew: "session/renew", [TEXT, INT8, TEXT_ARRAY, INT8, INT8];
    session_sweep: "session/sweep", [INT8];
    sweep_claim: "sweep/claim", [TEXT_ARRAY, INT8_ARRAY];
    sweep_list_unknown: "sweep/list_unknown", [TEXT, INT8, INT8];
    sweep_drop_unknown: "sweep/drop_unknown", [TEXT_ARRAY, INT8];

    manage_delete_tree: "manage/delete_tree", [TEXT, INT8, INT8, BOOL];
    manage_get_execution: "manage/get_execution", [TEXT, INT8];
    manage_explain_activities: "manage/explain_activities", [TEXT, INT8];
    manage_explain_instance: "manage/explain_instance", [TEXT];
    manage_explain_waits: "manage/explain_waits", [TEXT, INT8];
    manage_list: "manage/list", [TEXT_ARRAY, TEXT, TEXT, TEXT, INT8, INT8, TEXT, INT8, INT8, BOOL, TEXT, TEXT];
    manage_list_children: "manage/list_children", [TEXT_ARRAY, TEXT, TEXT, TEXT, INT8, INT8, TEXT, INT8, INT8, BOOL, TEXT, TEXT, TEXT];
    manage_list_executions: "manage/list_executions", [TEXT];
    manage_list_roots: "manage/list_roots", [BOOL, INT8, INT8, TEXT, INT8, INT8];
    manage_lock_instances: "manage/lock_instances", [TEXT_ARRAY];
    manage_lock_tree: "manage/lock_tree", [TEXT_ARRAY];
    manage_pick_roots: "manage/pick_roots", [TEXT_ARRAY, BOOL, INT8];
    manage_prune: "manage/prune", [TEXT, INT8, INT8, INT8];
    manage_read_depths: "manage/read_depths", [];
    manage_read_metrics: "manage/read_metrics", [];
    manage_read_stats: "manage/read_stats", [TEXT];
    manage_resume: "manage/resume", [TEXT_ARRAY];
    manage_find_poisoned: "manage/find_poisoned", [TEXT];
    manage_retry_activities: "manage/retry_activities", [TEXT, INT8, INT4_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    manage_retry_children: "manage/retry_children", [TEXT, INT8, INT4_ARRAY, INT8, TEXT_ARRAY];
    manage_retry_history: "manage/retry_history", [TEXT, INT8, INT4, INT8];
    manage_retry_instance: "manage/retry_instance", [TEXT, INT8, INT4, INT8];
    manage_retry_open: "manage/retry_open", [TEXT, INT8, INT4, INT8, INT8];
    manage_tree: "manage/tree", [TEXT];

    => over rows
    commit_compare_starts: "commit/compare_starts", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    commit_delete_messages: "commit/delete_messages", [TEXT_ARRAY, INT8_ARRAY];
    commit_end_expected: "commit/end_expected", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_end_turns: "commit/end_turns", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    commit_expect_no_cancels: "commit/expect_no_cancels", [TEXT_ARRAY, INT8_ARRAY];
    commit_insert_activities: "commit/insert_activities", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY];
    commit_insert_belated: "commit/insert_belated", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, BOOL_ARRAY];
    commit_insert_history: "commit/insert_history", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    commit_insert_instances: "commit/insert_instances", [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT, INT8, INT8];
    commit_insert_timers: "commit/insert_timers", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY];
    commit_lock_expected: "commit/lock_expected", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_settle_turns: "commit/settle_turns", [TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, BOOL_ARRAY, BOOL_ARRAY, INT8_ARRAY];
    commit_tell_results: "commit/tell_results", [TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY];
    commit_update_instances: "commit/update_instances", [TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, TEXT_ARRAY, BOOL_ARRAY, INT8_ARRAY, INT8_ARRAY];
}

impl Statements {
    /// Head of every transaction that claims, renews, recovers or commits: time limits and planner settings.
    pub fn settings(&self) -> &str {
        &self.settings
    }
}

/// Where the settings say how long a lock is waited for.
const LOCK_TIMEOUT: &str = "/*lock timeout*/";

/// Fills the schema into a template and leaves comment lines and indentation out: the server copies the text at every call.
pub(super) fn fill(template: &str, schema: &str) -> String {
    let quoted = quoted(schema) + ".";
    let mut text = String::with_capacity(template.len());
    for line in template.lines().filter(|line| !line.trim_start().starts_with("--")) {
        text.push_str(line.trim_start());
        text.push('\n');
    }
    let holes = [
        ("'/*schema*/", format!("'{}", quoted.replace('\'', "''"))),
        ("/*schema*/", quoted),
        ("/*schema name*/", schema.replace('\'', "''")),
        (DOLLAR_QUOTE, unused_dollar_quote(schema)),
    ];
    fill_holes(&text, &holes)
}

/// A name as an identifier, whatever is in it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes the bodies of `do` statements in the templates.
const DOLLAR_QUOTE: &str = "$holdfast$";

/// A dollar quote that the schema's name does not end.
fn unused_dollar_quote(schema: &str) -> String {
    let mut quote = DOLLAR_QUOTE.to_owned();
    let mut number = 0;
    while schema.contains(&quote) {
        number += 1;
        quote = format!("$holdfast{number}$");
    }
    quote
}

/// Fills all holes in one pass, so that what is filled in is never taken for a hole.
fn fill_holes(template: &str, holes: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    let next = |rest: &str| {
        let found =
            holes.iter().filter_map(|(hole, with)| Some((rest.find(hole)?, hole.len(), with.clone())));
        found.min_by_key(|(at, ..)| *at)
    };
    while let Some((at, length, with)) = next(rest) {
        filled.push_str(&rest[..at]);
        filled.push_str(&with);
        rest = &rest[at + length..];
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_schema_name_is_quoted_in_identifiers_and_literals() {
        let text =
            fill("-- head\nselect nextval('/*schema*/s') from /*schema*/t, '/*schema name*/'", "a\"b'c");
        assert_eq!(text, "select nextval('\"a\"\"b''c\".s') from \"a\"\"b'c\".t, 'a\"b''c'\n");
    }

    #[test]
    fn a_schema_name_that_looks_like_the_template_is_a_name_only() {
        assert_eq!(fill("/*schema*/t", "/*schema name*/"), "\"/*schema name*/\".t\n");
        assert_eq!(fill("'/*schema name*/'", "/*schema*/"), "'/*schema*/'\n");
        let text = fill("do $holdfast$ '/*schema name*/' $holdfast$", "a$holdfast$b$holdfast1$");
        assert_eq!(text, "do $holdfast2$ 'a$holdfast$b$holdfast1$' $holdfast2$\n");
    }

    #[test]
    fn parameter_comments_and_types_agree() {
        for (name, source, types) in sources() {
            let mut told = Vec::new();
            for line in source.lines().filter_map(|line| line.strip_prefix("-- $")) {
                let (number, rest) = line.split_once(' ').expect("a number, then a name");
                assert_eq!(number.parse::<usize>().expect("a number"), told.len() + 1, "{name}");
                let words = rest.split(" (").next().expect("split gives at least one part");
                told.push(words.rsplit(' ').next().expect("split gives at least one part").to_owned());
            }
            assert_eq!(told, types, "{name}");
        }
    }

    fn sources() -> Vec<(&'static str, String, Vec<String>)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
        Statements::new("s")
            .all()
            .into_iter()
            .map(|statement| {
                let path = root.join(format!("{}.sql", statement.name));
                let source = std::fs::read_to_string(path).expect("the file that was included");
                (statement.name, source, statement.types.iter().map(type_word).collect())
            })
            .collect()
    }

    fn type_word(kind: &Type) -> String {
        let (base, array) = match kind.name().strip_prefix('_') {
            Some(base) => (base, "[]"),
            None => (kind.name(), ""),
        };
        let word = match base {
            "int8" => "bigint",
            "int4" => "int",
            "bool" => "boolean",
            other => other,
        };
        format!("{word}{array}")
    }
}
