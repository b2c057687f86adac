//! Splits Rust text into code, string literals and comments.
//!
//! Not a parser: it knows exactly the tokens inside which code must not be looked for. The masked code has the length
//! and the line breaks of the text, so that one offset means the same place in both.

/// A string literal: where it starts, and what stands between its quotes, escapes untouched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Offset of the opening quote.
    pub(crate) offset: usize,
    /// Text between the quotes.
    pub(crate) text: String,
}

/// Code with the insides of strings, characters and comments blanked, and the strings apart.
pub(crate) fn scan(text: &str) -> (String, Vec<Literal>) {
    let mut scanner =
        Scanner { bytes: text.as_bytes(), at: 0, code: text.as_bytes().to_vec(), found: Vec::new() };
    scanner.run();
    (String::from_utf8_lossy(&scanner.code).into_owned(), scanner.found)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
    found: Vec<Literal>,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
                b'"' => self.string(),
                b'r' if !self.in_word() && self.raw_hashes().is_some() => self.raw_string(),
                b'b' | b'c' if !self.in_word() && self.peek(1) == Some(b'r') => {
                    self.at += 1;
                }
                b'\'' => self.quote(),
                _ => self.at += 1,
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Whether the byte before continues an identifier; `b` and `c` may stand before a raw string's `r`.
    fn in_word(&self) -> bool {
        let Some(before) = self.at.checked_sub(1).map(|at| self.bytes[at]) else { return false };
        if !(before.is_ascii_alphanumeric() || before == b'_') {
            return false;
        }
        let prefix = matches!(before, b'b' | b'c');
        let alone = self.at < 2
            || !(self.bytes[self.at - 2].is_ascii_alphanumeric() || self.bytes[self.at - 2] == b'_');
        !(prefix && alone)
    }

    fn blank(&mut self, from: usize, to: usize) {
        for byte in &mut self.code[from..to.min(self.bytes.len())] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }

    fn line_comment(&mut self) {
        let from = self.at;
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
        self.blank(from, self.at);
    }

    fn block_comment(&mut self) {
        let from = self.at;
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            if self.bytes[self.at..].starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.bytes[self.at..].starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    break;
                }
            } else {
                self.at += 1;
            }
        }
        self.blank(from, self.at);
    }

    fn string(&mut self) {
        let quote = self.at;
        self.at += 1;
        while self.peek(0).is_some_and(|byte| byte != b'"') {
            self.at += if self.peek(0) == Some(b'\\') { 2 } else { 1 };
        }
        self.close(quote, quote + 1, 1);
    }

    /// The number of `#` of a raw string that starts here.
    fn raw_hashes(&self) -> Option<usize> {
        let hashes = self.bytes[self.at + 1..].iter().take_while(|byte| **byte == b'#').count();
        (self.peek(1 + hashes) == Some(b'"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let hashes = self.raw_hashes().unwrap_or(0);
        let quote = self.at + 1 + hashes;
        let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
        self.at = quote + 1;
        while self.at < self.bytes.len() && !self.bytes[self.at..].starts_with(&end) {
            self.at += 1;
        }
        self.close(quote, quote + 1, end.len());
    }

    fn close(&mut self, quote: usize, from: usize, end: usize) {
        let to = self.at.min(self.bytes.len());
        let text = String::from_utf8_lossy(&self.bytes[from..to]).into_owned();
        self.blank(from, to);
        self.found.push(Literal { offset: quote, text });
        self.at = to + end;
    }

    /// A character literal is blanked; a lifetime is code.
    fn quote(&mut self) {
        let from = self.at;
        if self.peek(1) == Some(b'\\') {
            self.at += 3;
            while self.peek(0).is_some_and(|byte| byte != b'\'') {
                self.at += 1;
            }
            self.at += 1;
            self.blank(from, self.at);
            return;
        }
        let rest = self.bytes[self.at + 1..].iter().take(5);
        match rest.clone().position(|byte| *byte == b'\'') {
            Some(length) if length > 0 && self.is_one_char(length) => {
                self.at += length + 2;
                self.blank(from, self.at);
            }
            _ => self.at += 1,
        }
    }

    fn is_one_char(&self, length: usize) -> bool {
        std::str::from_utf8(&self.bytes[self.at + 1..self.at + 1 + length])
            .is_ok_and(|text| text.chars().count() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(text: &str) -> Vec<String> {
        scan(text).1.into_iter().map(|literal| literal.text).collect()
    }

    #[test]
    fn strings_and_comments_are_blanked_in_code() {
        let (code, found) = scan("let a = \"x { y\"; // }\nlet b = 1;");
        assert_eq!(code, "let a = \"     \";     \nlet b = 1;");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn raw_and_byte_strings_keep_their_quotes_inside() {
        assert_eq!(strings("r#\"a \"b\" c\"# br\"d\" b\"e\\\"f\""), ["a \"b\" c", "d", "e\\\"f"]);
    }

    #[test]
    fn a_name_that_ends_with_r_starts_no_raw_string() {
        assert_eq!(strings("var\"a\""), ["a"]);
    }

    #[test]
    fn characters_are_blanked_and_lifetimes_are_not() {
        let (code, found) = scan("fn f<'a>(x: &'a str) { x == '\"' || x == '\\'' || '{' }");
        assert!(code.contains("<'a>"), "{code}");
        assert!(!code.contains('"') && code.matches('{').count() == 1, "{code}");
        assert!(found.is_empty());
    }

    #[test]
    fn block_comments_nest() {
        let (code, _) = scan("a /* b /* c */ d */ e");
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "e"]);
    }
}
