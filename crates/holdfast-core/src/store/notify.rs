//! Hints between processes: LISTEN, NOTIFY, and the election of a listener. It reads and writes no table.

use crate::{
    error::Result,
    pool::Session,
    store::{Statements, row::column, statements::quoted},
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

/// Whether this session is the one listener of the key, for as long as it lasts. Dropped half way the session is broken.
pub async fn lead(session: &Session, statements: &Statements, key: &str) -> Result<bool> {
    let rows = session.query(&statements.notify_lead, &[&key]).await?;
    Ok(rows.first().map(|row| column(row, "won")).transpose()?.unwrap_or(false))
}

/// Sends a hint. Dropped half way it may have been sent.
pub async fn send(session: &Session, statements: &Statements, channel: &str, payload: &str) -> Result<()> {
    session.query(&statements.notify_send, &[&channel, &payload]).await.map(drop)
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
