//! Values that know their place in the file.
//!
//! [`Spanned`], a value with the line and column at which it was written, and `Lines`, which finds
//! them from an offset. Invariant: lines and columns count from 1, a line is one of the file's.

use std::ops::Deref;

/// A value and where it stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl<T> Spanned<T> {
    /// Another value at the same place.
    pub fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned { value, line: self.line, column: self.column }
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Columns are counted up to here, so that a file of one long line costs no quadratic time.
const MAX_COLUMN: usize = 4_096;

/// Where the lines of a text begin.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Where the last line with text ends.
    end: usize,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        let end = text.trim_end_matches('\n').len();
        Self { text, end, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Line and column of an offset in bytes; one behind the last line break is on the last line.
    pub(crate) fn position(&self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.end);
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = line.checked_sub(1).and_then(|l| self.starts.get(l)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        let before = before.chars().take(MAX_COLUMN).count();
        (saturated(line), saturated(before.saturating_add(1)))
    }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_line_and_a_column_of_the_text() {
        let lines = Lines::new("ab\nµc\n\n");
        assert_eq!(lines.position(0), (1, 1));
        assert_eq!(lines.position(2), (1, 3));
        assert_eq!(lines.position(3), (2, 1));
        assert_eq!(lines.position(5), (2, 2));
        assert_eq!(lines.position(6), (2, 3));
        assert_eq!(lines.position(99), (2, 3), "behind the end is on the last line with text");
        assert_eq!(lines.position(4), (2, 1), "inside a character is no panic");
        assert_eq!(Lines::new("").position(5), (1, 1));
    }
}
