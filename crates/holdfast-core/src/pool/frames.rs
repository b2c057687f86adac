//! The messages of both ends of a connection on which statements travel together: which `Sync`s are left out, and what the driver
//! hears instead.
//!
//! Invariants: the driver hears one end for each request, in order; the marks never reach the server; what is not between marks
//! goes through unchanged; messages may come in any pieces. No I/O.

use std::collections::VecDeque;

use tokio::io::ReadBuf;

/// Sent as a query of its own before the statements of a flight.
pub(super) const TOGETHER: &str = "-- holdfast: together";

/// Sent behind them.
pub(super) const APART: &str = "-- holdfast: apart   ";

/// Tag and length.
const HEADER: usize = 5;

/// Room that a session keeps for its next messages; one that carried a large message does not keep as much for good.
const KEPT: usize = 1 << 20;

/// What the driver still has to hear, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The server's answer to one request.
    Answer,
    /// Nothing of the server: a mark.
    Mark,
    /// Requests with one end for all.
    Together { requests: usize, answered: usize, failed: bool },
}

/// What the driver writes.
#[derive(Default)]
pub(super) struct Frontend {
    /// The start of a message whose header, or whose mark, is not complete.
    begun: Vec<u8>,
    /// Bytes of a message that are still to come and go through.
    rest: usize,
    /// Between the marks.
    together: bool,
    /// A statement between the marks was sent without its end.
    open: bool,
    /// The request under way runs something, so its answer says when it ends.
    runs: bool,
    /// For the server.
    pub(super) waiting: Vec<u8>,
}

/// What the server writes.
#[derive(Default)]
pub(super) struct Backend {
    /// Of the server, as far as messages are not complete.
    pub(super) raw: Vec<u8>,
    /// For the driver, from `taken` on.
    ready: Vec<u8>,
    taken: usize,
}

impl Frontend {
    /// Takes what the driver writes.
    pub(super) fn take(&mut self, mut bytes: &[u8], expected: &mut VecDeque<Expected>) {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let through = self.rest.min(bytes.len());
                self.waiting.extend_from_slice(&bytes[..through]);
                self.rest -= through;
                bytes = &bytes[through..];
                continue;
            }
            let wanted = self.wanted().saturating_sub(self.begun.len()).min(bytes.len());
            self.begun.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.begun.len() >= self.wanted() {
                self.message(expected);
            }
        }
    }

    /// Bytes of the begun message that are needed to judge it: its header, and all of a query as long as a mark.
    fn wanted(&self) -> usize {
        let body = body_of(&self.begun);
        match self.begun.first() {
            Some(b'Q') if body == Some(TOGETHER.len() + 1) => HEADER + TOGETHER.len() + 1,
            _ => HEADER,
        }
    }

    fn message(&mut self, expected: &mut VecDeque<Expected>) {
        let begun = std::mem::take(&mut self.begun);
        let text = begun[HEADER..].strip_suffix(&[0]);
        match begun[0] {
            b'Q' if text == Some(TOGETHER.as_bytes()) => {
                expected.push_back(Expected::Mark);
                self.together = true;
                return;
            }
            b'Q' if text == Some(APART.as_bytes()) => {
                self.end_together();
                self.together = false;
                expected.push_back(Expected::Mark);
                return;
            }
            b'S' if self.together => {
                match expected.back_mut() {
                    Some(Expected::Together { requests, .. }) if self.open => *requests += 1,
                    _ => expected.push_back(Expected::Together { requests: 1, answered: 0, failed: false }),
                }
                self.open = true;
                // The driver closes a statement whenever the last of its owners drops it.
                if !std::mem::take(&mut self.runs) {
                    self.end_together();
                }
                return;
            }
            b'E' => self.runs = self.together,
            b'Q' => {
                // A query of the simple protocol has an end of its own.
                self.end_together();
                expected.push_back(Expected::Answer);
            }
            b'S' | b'F' => expected.push_back(Expected::Answer),
            _ => {}
        }
        self.rest = body_of(&begun).unwrap_or(0).saturating_sub(begun.len() - HEADER);
        self.waiting.extend_from_slice(&begun);
    }

    fn end_together(&mut self) {
        if std::mem::take(&mut self.open) {
            self.waiting.extend_from_slice(&[b'S', 0, 0, 0, 4]);
        }
    }
}

impl Backend {
    /// Tells the driver what the server wrote, as far as its messages are complete.
    pub(super) fn tell(&mut self, expected: &mut VecDeque<Expected>) {
        let raw = std::mem::take(&mut self.raw);
        let mut at = 0;
        while let Some(body) = body_of(&raw[at..]) {
            let Some(message) = raw.get(at..at + HEADER + body) else { break };
            self.message(message, expected);
            at += message.len();
        }
        self.raw = raw;
        if at == self.raw.len() {
            empty(&mut self.raw);
        } else {
            self.raw.drain(..at);
        }
        self.marks(expected);
    }

    fn message(&mut self, message: &[u8], expected: &mut VecDeque<Expected>) {
        self.marks(expected);
        match (message[0], expected.front_mut()) {
            (b'Z', Some(Expected::Together { requests, answered, failed })) => {
                // Without an error only a request that runs nothing is left, and this is its end.
                for at in *answered..*requests {
                    if *failed && at > *answered {
                        self.ready.extend_from_slice(&refusal());
                    }
                    self.ready.extend_from_slice(message);
                }
                expected.pop_front();
            }
            (b'C' | b'I' | b's', Some(Expected::Together { answered, .. })) => {
                *answered += 1;
                self.ready.extend_from_slice(message);
                self.ready.extend_from_slice(&[b'Z', 0, 0, 0, 5, b'T']);
            }
            (tag, front) => {
                if let (b'E', Some(Expected::Together { failed, .. })) = (tag, front) {
                    *failed = true;
                }
                self.ready.extend_from_slice(message);
                if tag == b'Z' {
                    expected.pop_front();
                }
            }
        }
    }

    /// Answers marks that nothing stands before.
    pub(super) fn marks(&mut self, expected: &mut VecDeque<Expected>) {
        while expected.front() == Some(&Expected::Mark) {
            expected.pop_front();
            self.ready.extend_from_slice(&[b'I', 0, 0, 0, 4, b'Z', 0, 0, 0, 5, b'T']);
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.taken == self.ready.len()
    }

    pub(super) fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let some = buffer.remaining().min(self.ready.len() - self.taken);
        buffer.put_slice(&self.ready[self.taken..self.taken + some]);
        self.taken += some;
        if self.is_drained() {
            empty(&mut self.ready);
            self.taken = 0;
        }
    }
}

/// Empties a buffer, and gives its memory back when it is large.
pub(super) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT {
        *buffer = Vec::new();
    }
}

/// Length of a message behind its header, once the header is there.
fn body_of(message: &[u8]) -> Option<usize> {
    let length: [u8; 4] = message.get(1..HEADER)?.try_into().ok()?;
    Some((u32::from_be_bytes(length) as usize).saturating_sub(4))
}

/// What the server would have said of a statement behind one that failed.
fn refusal() -> Vec<u8> {
    let fields = b"SERROR\0VERROR\0C25P02\0Mcurrent transaction is aborted, commands ignored until end of transaction block\0\0";
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    [b"E", &length.to_be_bytes()[..], fields].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of one of the two ends.
    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short");
        [&[tag], &length.to_be_bytes()[..], body].concat()
    }

    fn query(text: &str) -> Vec<u8> {
        message(b'Q', &[text.as_bytes(), &[0]].concat())
    }

    fn statement(name: &str) -> Vec<u8> {
        [message(b'B', name.as_bytes()), message(b'E', b"0"), message(b'S', b"")].concat()
    }

    /// Tags of the messages in these bytes.
    fn tags(mut bytes: &[u8]) -> String {
        let mut tags = String::new();
        while let Some(body) = body_of(bytes) {
            tags.push(bytes[0].into());
            bytes = &bytes[HEADER + body..];
        }
        tags
    }

    /// What the server gets, and what the driver hears when it answers so, whatever the pieces in which both come.
    fn exchange(written: &[Vec<u8>], answered: &[Vec<u8>], piece: usize) -> (String, String) {
        let (mut frontend, mut backend) = (Frontend::default(), Backend::default());
        let mut expected = VecDeque::new();
        for some in written.concat().chunks(piece) {
            frontend.take(some, &mut expected);
            backend.marks(&mut expected);
        }
        for some in answered.concat().chunks(piece) {
            backend.raw.extend_from_slice(some);
            backend.tell(&mut expected);
        }
        assert_eq!(expected, [], "every request has its end");
        (tags(&frontend.waiting), tags(&backend.ready))
    }

    fn everywhere(written: &[Vec<u8>], answered: &[Vec<u8>], server: &str, driver: &str) {
        for piece in [1, 2, 3, 7, 100_000] {
            let (got, heard) = exchange(written, answered, piece);
            assert_eq!((got.as_str(), heard.as_str()), (server, driver), "in pieces of {piece}");
        }
    }

    fn ready(status: u8) -> Vec<u8> {
        message(b'Z', &[status])
    }

    #[test]
    fn statements_between_the_marks_have_one_end_and_the_driver_hears_one_for_each() {
        let written = [query(TOGETHER), statement("a"), statement("b"), query(APART), statement("c")];
        let answer = || [message(b'2', b""), message(b'D', b"row"), message(b'C', b"SELECT 1\0")].concat();
        let answered = [answer(), answer(), ready(b'I'), answer(), ready(b'I')];
        everywhere(&written, &answered, "BEBESBES", "IZ2DCZ2DCZIZ2DCZ");
    }

    #[test]
    fn behind_an_error_the_driver_hears_that_the_rest_was_refused() {
        let written = [
            query(TOGETHER),
            statement("a"),
            statement("b"),
            statement("c"),
            query(APART),
            query("rollback"),
        ];
        let answered = [
            message(b'2', b""),
            message(b'C', b"INSERT 0 1\0"),
            message(b'E', b"SERROR\0\0"),
            ready(b'E'),
            message(b'C', b"ROLLBACK\0"),
            ready(b'I'),
        ];
        everywhere(&written, &answered, "BEBEBESQ", "IZ2CZEZEZIZCZ");
    }

    #[test]
    fn an_error_of_the_last_statement_is_its_own() {
        let written = [query(TOGETHER), statement("a"), query(APART)];
        let answered = [message(b'E', b"SERROR\0\0"), ready(b'E')];
        everywhere(&written, &answered, "BES", "IZEZIZ");
    }

    #[test]
    fn a_simple_query_between_the_marks_keeps_its_own_end() {
        let written = [query(TOGETHER), statement("a"), query("rollback"), query(APART)];
        let answered = [message(b'C', b"x"), ready(b'T'), message(b'C', b"ROLLBACK\0"), ready(b'I')];
        everywhere(&written, &answered, "BESQ", "IZCZCZIZ");
    }

    #[test]
    fn nothing_between_the_marks_is_nothing_for_the_server() {
        everywhere(&[query(TOGETHER), query(APART)], &[], "", "IZIZ");
    }

    #[test]
    fn a_request_that_runs_nothing_has_its_end_between_the_marks_too() {
        let close = [message(b'C', b"Sname\0"), message(b'S', b"")].concat();
        let written = [query(TOGETHER), statement("a"), close, statement("b"), query(APART)];
        let answer = || [message(b'2', b""), message(b'C', b"x")].concat();
        let answered = [answer(), message(b'3', b""), ready(b'T'), answer(), ready(b'T')];
        everywhere(&written, &answered, "BECSBES", "IZ2CZ3Z2CZIZ");
        let answered = [message(b'E', b"SERROR\0\0"), ready(b'E'), message(b'E', b"SERROR\0\0"), ready(b'E')];
        everywhere(&written, &answered, "BECSBES", "IZEZEZEZIZ");
    }

    #[test]
    fn a_session_that_the_server_ends_behind_an_error_hears_both() {
        let (mut backend, mut expected) = (Backend::default(), VecDeque::new());
        Frontend::default().take(&[query(TOGETHER), statement("a"), statement("b")].concat(), &mut expected);
        backend.raw = [message(b'E', b"SERROR\0\0"), message(b'E', b"SFATAL\0\0")].concat();
        backend.tell(&mut expected);
        assert_eq!(tags(&backend.ready), "IZEE");
    }

    #[test]
    fn what_the_server_says_by_itself_goes_through() {
        let written = [query(TOGETHER), statement("a"), query(APART)];
        let answered = [
            message(b'N', b"notice"),
            message(b'2', b""),
            message(b'A', b"hint"),
            message(b'C', b"x"),
            message(b'S', b"setting"),
            ready(b'T'),
        ];
        everywhere(&written, &answered, "BES", "IZN2ACZSIZ");
    }

    #[test]
    fn a_query_as_long_as_a_mark_is_a_query() {
        let text = "select 'as long mark'";
        assert_eq!(text.len(), TOGETHER.len());
        assert_eq!(APART.len(), TOGETHER.len());
        everywhere(&[query(text)], &[message(b'C', b"x"), ready(b'I')], "Q", "CZ");
    }
}
