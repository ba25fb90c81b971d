//! What commands print: lines, tables, colours.
//!
//! What it is: the only writer of standard output. A reader that went away (`dacapo ls | head -1`)
//! is no error. What it is not: progress, which goes to standard error (`progress.rs`).
//!
//! Invariant: colours only on a terminal and without `NO_COLOR`; a table without them has no bytes
//! beyond what it says.

use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Prints a line on standard output.
pub fn line(text: impl fmt::Display) {
    // Nobody reads any more: there is nobody to tell.
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints a value as JSON on standard output, readable.
pub fn json(value: &serde_json::Value) {
    line(format_args!("{value:#}"));
}

/// Prints a text that is meant for a file, such as a script: half of it must not pass for all.
///
/// # Errors
/// It could not be written, and not because nobody reads any more.
pub fn document(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints a line on standard error.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How a word is set off on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// As usual.
    Plain,
    /// A heading.
    Bold,
    /// As it should be.
    Good,
    /// Not as one would wish.
    Fair,
    /// Not as it should be.
    Bad,
}

impl Ink {
    fn escape(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Fair => "\x1b[33m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// True when standard output is a terminal that may be coloured.
pub fn has_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stdout().is_terminal()
}

/// A word with its ink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    ink: Ink,
}

impl Cell {
    /// A word that is set off.
    pub fn new(text: impl Into<String>, ink: Ink) -> Self {
        Self { text: text.into(), ink }
    }
}

impl<T: fmt::Display> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::new(value.to_string(), Ink::Plain)
    }
}

/// Rows under a heading; numbers to the right, words to the left.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with this heading.
    pub fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|text| Cell::new(*text, Ink::Bold)).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Prints the table.
    pub fn print(&self) {
        let colour = has_colour();
        self.lines(colour).iter().for_each(line);
    }

    fn lines(&self, colour: bool) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        let right: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let render = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&widths).zip(&right);
            let words: Vec<String> =
                cells.map(|((cell, width), right)| pad(cell, *width, *right, colour)).collect();
            words.join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(render).collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    }

    /// A column whose every word below the heading begins with a digit.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some()
            && cells.all(|cell| cell.text.starts_with(|c: char| c.is_ascii_digit()))
    }
}

fn pad(cell: &Cell, width: usize, right: bool, colour: bool) -> String {
    let space = " ".repeat(width.saturating_sub(cell.text.chars().count()));
    let word = if colour && cell.ink != Ink::Plain {
        format!("{}{}\x1b[0m", cell.ink.escape(), cell.text)
    } else {
        cell.text.clone()
    };
    if right { space + &word } else { word + &space }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["flow", "sent"]);
        table.row(vec!["video".into(), 750.into()]);
        table.row(vec!["é".into(), Cell::new("5", Ink::Bad)]);
        table
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        assert_eq!(table().lines(false), ["flow   sent", "video   750", "é         5"]);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let coloured = table().lines(true);
        assert_eq!(coloured[0], "\x1b[1mflow\x1b[0m   \x1b[1msent\x1b[0m");
        assert_eq!(coloured[2], "é         \x1b[1;31m5\x1b[0m");
    }
}
