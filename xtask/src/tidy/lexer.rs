//! A small lexer of Rust: words, literals and punctuation, each with its line; comments apart.
//!
//! Enough of Rust's lexical grammar that a rule never takes the text of a string, a character or a
//! comment for code: nested block comments, raw strings of every prefix, byte and C strings,
//! characters against lifetimes, raw identifiers.
//!
//! What the compiler would refuse gives some tokens, never a panic, and every step consumes at
//! least one byte.
//!
//! ```text
//!   let c = '"'; // quote      ->   Ident(let) Ident(c) Punct(=) Char('"') Punct(;)
//!                                   Comment(// quote)
//! ```
//!
//! Source: The Rust Reference, "Lexical structure".

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or an identifier, raw ones with their `r#`.
    Ident,
    /// `'a`, `'static`.
    Lifetime,
    /// A number with its suffix; a sign in an exponent is a token of its own.
    Number,
    /// A string of any kind, prefix and quotes included.
    Str,
    /// A character or byte, prefix and quotes included.
    Char,
    /// One character of anything else.
    Punct,
}

/// One token: its kind, where it stands in the text (bytes) and its first line (from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// The line it begins on, from 1.
    pub line: usize,
}

/// One comment, line or block, documentation or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its bytes in the text, the markers included, the end of a line excluded.
    pub range: Range<usize>,
    /// The line it begins on, from 1.
    pub line: usize,
    /// The line it ends on, from 1.
    pub line_end: usize,
}

/// The tokens and the comments of `text`, both in order.
#[must_use]
pub fn lex(text: &str) -> (Vec<Token>, Vec<Comment>) {
    let mut lexer = Lexer { text, at: 0, line: 1, tokens: Vec::new(), comments: Vec::new() };
    while let Some(first) = lexer.peek(0) {
        lexer.step(first);
    }
    (lexer.tokens, lexer.comments)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest().chars().nth(ahead)
    }

    /// Consumes `len` bytes, and one character at least.
    fn take(&mut self, len: usize) {
        let least = self.peek(0).map_or(0, char::len_utf8);
        let end = (self.at + len.max(least)).min(self.text.len());
        let taken = self.text.get(self.at..end).unwrap_or_default();
        self.line += taken.matches('\n').count();
        self.at = end;
    }

    fn token(&mut self, kind: Kind, len: usize) {
        let (start, line) = (self.at, self.line);
        self.take(len);
        self.tokens.push(Token { kind, range: start..self.at, line });
    }

    fn comment(&mut self, len: usize) {
        let (start, line) = (self.at, self.line);
        self.take(len);
        self.comments.push(Comment { range: start..self.at, line, line_end: self.line });
    }

    fn step(&mut self, first: char) {
        let rest = self.rest();
        if first.is_whitespace() {
            self.take(first.len_utf8());
        } else if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment_len(rest));
        } else if is_word_start(first) {
            self.word();
        } else if first.is_ascii_digit() {
            self.token(Kind::Number, number_len(rest));
        } else if first == '"' {
            self.token(Kind::Str, quoted_len(rest, '"'));
        } else if first == '\'' {
            let (kind, len) = tick(rest);
            self.token(kind, len);
        } else {
            self.token(Kind::Punct, first.len_utf8());
        }
    }

    /// An identifier, or a literal that begins with letters (`r"…"`, `b'…'`, `c"…"`).
    fn word(&mut self) {
        let rest = self.rest();
        let len = word_len(rest);
        let (word, after) = rest.split_at(len);
        let raw = matches!(word, "r" | "br" | "cr").then(|| raw_string_len(after)).flatten();
        if let Some(raw_len) = raw {
            self.token(Kind::Str, len + raw_len);
        } else if matches!(word, "b" | "c") && after.starts_with('"') {
            let whole = len + quoted_len(after, '"');
            self.token(Kind::Str, whole);
        } else if word == "b" && after.starts_with('\'') {
            let whole = len + quoted_len(after, '\'');
            self.token(Kind::Char, whole);
        } else if word == "r" && after.strip_prefix('#').is_some_and(starts_word) {
            let whole = len + 1 + word_len(after.get(1..).unwrap_or_default());
            self.token(Kind::Ident, whole);
        } else {
            self.token(Kind::Ident, len);
        }
    }
}

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn starts_word(text: &str) -> bool {
    text.chars().next().is_some_and(is_word_start)
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

/// `1_000u32`, `0xff`, `1.5e3`; the dots of `1..2` and `1.max(2)` stay outside.
fn number_len(text: &str) -> usize {
    let whole = word_len(text);
    let after = text.get(whole..).unwrap_or_default();
    match after.strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            whole + 1 + word_len(fraction)
        }
        _ => whole,
    }
}

/// From the opening quote to the closing one, escapes skipped; to the end where it is missing.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// `##"…"##` after the `r`; nothing where no raw string begins.
fn raw_string_len(text: &str) -> Option<usize> {
    let hashes = text.bytes().take_while(|&b| b == b'#').count();
    let body = text.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let found = body.find(&close).map_or(text.len(), |at| hashes + 1 + at + close.len());
    Some(found)
}

/// A character or a lifetime, at its `'`.
fn tick(text: &str) -> (Kind, usize) {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => (Kind::Char, quoted_len(text, '\'')),
        (Some(c), Some('\'')) => (Kind::Char, c.len_utf8() + 2),
        (Some(c), _) if is_word_start(c) => {
            (Kind::Lifetime, 1 + word_len(text.get(1..).unwrap_or_default()))
        }
        _ => (Kind::Punct, 1),
    }
}

/// From `/*` to its `*/`, nested ones counted; to the end where it is missing.
fn block_comment_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(Kind, &str)> {
        lex(text).0.into_iter().map(|t| (t.kind, &text[t.range])).collect()
    }

    fn kinds(text: &str) -> Vec<Kind> {
        words(text).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn strings_and_comments_hide_their_text() {
        let text = "a(\"x.unwrap() // \\\" y\"); // b.unwrap()\n/* c /* d */ e */ f";
        let seen: Vec<&str> = words(text).into_iter().map(|(_, word)| word).collect();
        assert_eq!(seen, ["a", "(", "\"x.unwrap() // \\\" y\"", ")", ";", "f"]);
        let comments: Vec<&str> = lex(text).1.into_iter().map(|c| &text[c.range]).collect();
        assert_eq!(comments, ["// b.unwrap()", "/* c /* d */ e */"]);
    }

    #[test]
    fn raw_strings_end_at_their_own_fence() {
        let text = r####"r#"a " b"# br##"c"# d"## cr"e" r#type"####;
        assert_eq!(
            words(text),
            [
                (Kind::Str, r###"r#"a " b"#"###),
                (Kind::Str, r###"br##"c"# d"##"###),
                (Kind::Str, "cr\"e\""),
                (Kind::Ident, "r#type"),
            ]
        );
    }

    #[test]
    fn a_raw_string_keeps_its_backslashes() {
        assert_eq!(words("r\"\\\" x").len(), 2);
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        use Kind::{Char, Ident, Lifetime, Punct};
        assert_eq!(
            kinds("'a' 'a '\\'' '\"' b'x' b'\\''"),
            [Char, Lifetime, Char, Char, Char, Char]
        );
        assert_eq!(kinds("<'a,'b>"), [Punct, Lifetime, Punct, Lifetime, Punct]);
        assert_eq!(kinds("'ü' x"), [Char, Ident]);
        assert_eq!(kinds("'\\u{1F600}' x"), [Char, Ident]);
    }

    #[test]
    fn numbers_leave_ranges_and_methods_alone() {
        let seen: Vec<&str> = words("1..2 1.5e3 2.max(0xff_u8)").into_iter().map(|w| w.1).collect();
        assert_eq!(seen, ["1", ".", ".", "2", "1.5e3", "2", ".", "max", "(", "0xff_u8", ")"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let (tokens, comments) = lex("a\n\"x\ny\" b\n/* 1\n2 */ c");
        let lines: Vec<usize> = tokens.iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 3, 5]);
        assert_eq!((comments[0].line, comments[0].line_end), (4, 5));
    }

    #[test]
    fn broken_text_ends_with_the_text() {
        for text in ["\"abc", "r#\"abc\"", "/* /* */", "'", "'\\", "b'", "\\ é ''"] {
            let (tokens, comments) = lex(text);
            let end =
                tokens.iter().map(|t| t.range.end).chain(comments.iter().map(|c| c.range.end));
            assert_eq!(end.max(), Some(text.len()), "{text}");
        }
    }
}
