//! Reading columns of a row. A column that cannot be read is stored data that cannot be understood.

use tokio_postgres::types::FromSql;

use crate::{
    error::{Error, ErrorKind, Result},
    pool::Row,
};

/// The column as the type that is asked for.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &str) -> Result<T> {
    row.try_get(name)
        .map_err(|error| Error::new(ErrorKind::Corrupt, format!("read column {name}")).caused_by(error))
}
