//! The flight: statements with their parameters, left out when they have no rows, and the answers told apart.
//!
//! Columns are built row by row and sent as one array for each column.

use tokio_postgres::types::ToSql;

use super::lock::Turns;
use crate::{
    error::Result,
    pool::{Row, Session, Statement},
    store::batched::Batched,
};

/// The parameters of one statement.
pub(super) type Params<'a> = Vec<&'a (dyn ToSql + Sync)>;

/// Rows of a statement.
pub(super) trait Columns {
    /// One array for each column; `None` without rows.
    fn params(&self) -> Option<Params<'_>>;

    /// The columns of the only row, when there is just one.
    fn only_row(&self) -> Option<Params<'_>>;
}

/// Statements whose answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Locked,
    YieldedTurns,
    FoundTurns,
    FoundActivities,
    FoundResults,
    HeldActivities,
    ToldResults,
    Scheduled,
    Belated,
    RetriedActivities,
    EndedStandalone,
    Enqueued,
    Undone,
    Begun,
    Created,
    Compared,
    Told,
    SettledTurns,
    Retaken,
    EndedTurns,
    Awaited,
    /// Nothing is read.
    Other,
}

/// The statements of one batch, in order.
#[derive(Default)]
pub(super) struct Flight<'a> {
    kinds: Vec<Step>,
    statements: Vec<&'a Statement>,
    params: Vec<Params<'a>>,
}

impl<'a> Flight<'a> {
    /// Adds a statement; without parameters it has no rows and is left out.
    pub(super) fn add(&mut self, step: Step, statement: &'a Statement, params: Option<Params<'a>>) {
        if let Some(params) = params {
            self.kinds.push(step);
            self.statements.push(statement);
            self.params.push(params);
        }
    }

    /// Adds a statement over rows, in the form that their number asks for; `more` are parameters that are the same for all rows.
    pub(super) fn rows(
        &mut self,
        step: Step,
        statement: &'a Batched,
        rows: &'a dyn Columns,
        more: &[&'a (dyn ToSql + Sync)],
    ) {
        let (statement, params) = match rows.only_row() {
            Some(row) => (&statement.one, Some(row)),
            None => (&statement.many, rows.params()),
        };
        self.add(
            step,
            statement,
            params.map(|params| params.into_iter().chain(more.iter().copied()).collect()),
        );
    }

    /// Adds a statement whose rows belong to turns: the turns' columns go first.
    pub(super) fn guarded(
        &mut self,
        step: Step,
        statement: &'a Statement,
        turns: &'a Turns<'a>,
        params: Option<Params<'a>>,
    ) {
        let params = params.map(|rest| turns.guard_params().into_iter().chain(rest).collect());
        self.add(step, statement, params);
    }

    /// Sends everything in one transaction; without a statement nothing.
    pub(super) async fn run(self, session: &Session, settings: &str) -> Result<Answers> {
        if self.statements.is_empty() {
            return Ok(self.answered(Vec::new()));
        }
        let rows = session.transaction(settings, &self.steps()).await?;
        Ok(self.answered(rows))
    }

    /// The names of its statements, in order.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.statements.iter().map(|statement| statement.name).collect()
    }

    fn steps(&self) -> Vec<(&Statement, &[&(dyn ToSql + Sync)])> {
        let params = self.params.iter().map(Vec::as_slice);
        self.statements.iter().copied().zip(params).collect()
    }

    fn answered(self, rows: Vec<Vec<Row>>) -> Answers {
        Answers { rows: self.kinds.into_iter().zip(rows).collect() }
    }
}

/// The rows that came back.
pub(super) struct Answers {
    rows: Vec<(Step, Vec<Row>)>,
}

impl Answers {
    /// Rows of a step; none when it was left out.
    pub(super) fn rows(&self, step: Step) -> &[Row] {
        self.rows.iter().find(|(kind, _)| *kind == step).map_or(&[], |(_, rows)| rows.as_slice())
    }
}

/// Makes a row type and the columns that hold many of it; the order of the fields is the order of the parameters.
macro_rules! columns {
    ($(#[$doc:meta])* $columns:ident<$life:lifetime> of $row:ident { $($field:ident: $kind:ty,)* }) => {
        #[doc = concat!("One row of [`", stringify!($columns), "`].")]
        #[derive(Debug)]
        pub(super) struct $row<$life> {
            $(pub(super) $field: $kind,)*
        }

        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $columns<$life> {
            $(pub(super) $field: Vec<$kind>,)*
        }

        impl<$life> $columns<$life> {
            /// Adds a row.
            pub(super) fn push(&mut self, row: $row<$life>) {
                $(self.$field.push(row.$field);)*
            }

        }

        impl $crate::store::commit::flight::Columns for $columns<'_> {
            fn params(&self) -> Option<$crate::store::commit::flight::Params<'_>> {
                if self.instance.is_empty() {
                    return None;
                }
                Some(vec![$(&self.$field),*])
            }

            fn only_row(&self) -> Option<$crate::store::commit::flight::Params<'_>> {
                if self.instance.len() != 1 {
                    return None;
                }
                Some(vec![$(&self.$field[0]),*])
            }
        }
    };
}
pub(super) use columns;
