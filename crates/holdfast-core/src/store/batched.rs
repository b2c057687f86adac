//! A statement over rows gets them as one array for each column, and unpacks them. With one row at a time that is half of its work,
//! so such a statement has a second text, made of the first, that takes the columns of one row as they are.

use tokio_postgres::types::{Kind, Type};

use crate::pool::Statement;

/// A statement over rows.
#[derive(Debug)]
pub(super) struct Batched {
    /// As it is written: one array for each column.
    pub(super) many: Statement,
    /// For a single row.
    pub(super) one: Statement,
}

/// The type of what is in an array; of anything else its own.
pub(super) fn element(kind: &Type) -> &Type {
    match kind.kind() {
        Kind::Array(element) => element,
        _ => kind,
    }
}

/// The text for a single row: `unnest($1::text[], ...)` becomes `(select $1::text, ...)`.
pub(super) fn for_one(text: &str) -> String {
    let mut one = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, unpacked)) = rest.split_once("unnest(") {
        let (columns, after) = unpacked.split_once(')').expect("the statements are ours");
        one.push_str(before);
        one.push_str("(select ");
        one.push_str(&columns.replace("[]", ""));
        rest = match after.trim_start().strip_prefix("with ordinality") {
            Some(after) => {
                one.push_str(", 1::bigint");
                after
            }
            None => after,
        };
        one.push(')');
    }
    one.push_str(rest);
    one
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Statements;

    #[test]
    fn a_single_row_needs_no_arrays() {
        assert_eq!(
            for_one(
                "select a.x from unnest($1::text[], $2::int[])\n  with ordinality as a (x, y, ix), unnest($1::text[]) as b (x)"
            ),
            "select a.x from (select $1::text, $2::int, 1::bigint) as a (x, y, ix), (select $1::text) as b (x)"
        );
        for statement in Statements::new("s").all_for_one() {
            let Statement { name, text, types } = statement;
            assert!(!text.contains("unnest(") && !text.contains("cardinality("), "{name}");
            let arrays = (1..=types.len()).filter(|number| text.contains(&format!("${number}::text[]")));
            assert_eq!(arrays.count(), 0, "{name}");
            assert!(types.iter().all(|kind| !matches!(kind.kind(), Kind::Array(_))), "{name}");
        }
    }
}
