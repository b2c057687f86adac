//! Hints between processes: LISTEN, NOTIFY, the election of a listener, and who listens. Of tables it knows that of nodes.

use crate::{
    error::Result,
    pool::Session,
    store::{NodeKey, Statements, row::column, statements::quoted},
};

/// A channel name of PostgreSQL has at most this many bytes; longer ones are cut with a notice.
const MAX_CHANNEL_BYTES: usize = 63;

/// Marks a channel as one of this package.
const PREFIX: &str = "holdfast.";

/// The channel of a schema: its name, or for a long one its beginning and a digest.
pub fn channel(schema: &str) -> String {
    if PREFIX.len() + schema.len() <= MAX_CHANNEL_BYTES {
        return format!("{PREFIX}{schema}");
    }
    let mut cut = MAX_CHANNEL_BYTES - PREFIX.len() - 17;
    while !schema.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{PREFIX}{}.{:016x}", &schema[..cut], digest(schema))
}

/// FNV-1a: the same in every process and version, which the standard library's hashes do not promise.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Hears a channel from here on. Dropped half way the session is broken.
pub async fn listen(session: &Session, channel: &str) -> Result<()> {
    let text = include_str!("../../sql/notify/listen.sql").replace("/*channel*/", &quoted(channel));
    session.batch(&text).await
}

/// Hears nothing any more. Dropped half way the session is broken.
pub async fn unlisten(session: &Session) -> Result<()> {
    session.batch(include_str!("../../sql/notify/unlisten.sql")).await
}

/// Whether this session is the one listener of the key, for as long as it lasts. Dropped half way the session is broken.
pub async fn lead(session: &Session, statements: &Statements, key: &str) -> Result<bool> {
    let rows = session.query(&statements.notify_lead, &[&key]).await?;
    Ok(rows.first().map(|row| column(row, "won")).transpose()?.unwrap_or(false))
}

/// Sends a hint. Dropped half way it may have been sent.
pub async fn send(session: &Session, statements: &Statements, channel: &str, payload: &str) -> Result<()> {
    session.query(&statements.notify_send, &[&channel, &payload]).await.map(drop)
}

/// Where a runtime stands in the row of all whose processes listen, as it was a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Runtimes before it.
    pub before: u64,
    /// All of them, itself included when its process listens.
    pub listening: u64,
    /// Those of other processes.
    pub others: u64,
}

/// Says whether the runtimes of this process listen; returns the place of each, by its epoch. Dropped half way it may have
/// been said.
pub async fn stand(
    session: &Session,
    statements: &Statements,
    own: &[NodeKey],
    listens: bool,
) -> Result<Vec<(i64, Place)>> {
    let ids: Vec<&str> = own.iter().map(|key| key.id.as_str()).collect();
    let epochs: Vec<i64> = own.iter().map(|key| key.epoch).collect();
    let rows = session.query(&statements.notify_stand, &[&ids, &epochs, &listens]).await?;
    let count = |row, name| Ok(u64::try_from(column::<i64>(row, name)?).unwrap_or(0));
    rows.iter()
        .map(|row| {
            let (before, listening) = (count(row, "before")?, count(row, "listening")?);
            Ok((column(row, "epoch")?, Place { before, listening, others: count(row, "others")? }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_has_a_channel_of_its_own_that_postgresql_does_not_cut() {
        assert_eq!(channel("holdfast"), "holdfast.holdfast");
        let (a, b) = (channel(&format!("{}a", "ü".repeat(31))), channel(&format!("{}b", "ü".repeat(31))));
        assert!(a.len() <= MAX_CHANNEL_BYTES && b.len() <= MAX_CHANNEL_BYTES, "{a}");
        assert_ne!(a, b);
    }
}
