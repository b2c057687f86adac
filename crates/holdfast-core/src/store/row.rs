//! Reading columns of a row. A column that cannot be read is stored data that cannot be understood.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// A time as whole ms since 1970, rounded down. The server does not count them: its numeric takes longer than the rest of a
/// row that is returned.
pub(super) fn column_ms(row: &Row, name: &str) -> Result<i64> {
    let time: SystemTime = column(row, name)?;
    let ms = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()),
        Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).map(|ms| -ms),
    };
    ms.map_err(|error| Error::new(ErrorKind::Corrupt, format!("read column {name}")).caused_by(error))
}
