//! [`Table`]: rows under a heading, as wide as there is room.
//!
//! ```text
//!   fits          columns with two spaces between them
//!   nearly fits   with one
//!   too wide      the words of the widest columns go on below each other
//!   far too wide  a line for each cell: its heading, and what it says
//! ```
//!
//! Invariant: whatever the width, every word is there.

use super::{Cell, Ink, columns, has_colour, line};
use crate::wrap::{width, words};

/// Between two columns.
const GAP: usize = 2;

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

    /// Prints the table; on a terminal as wide as that is.
    pub fn print(&self) {
        self.print_within(usize::MAX);
    }

    /// The same, in so many columns where it is not on a terminal.
    pub fn print_within(&self, most: usize) {
        self.lines(has_colour(), columns().unwrap_or(most)).iter().for_each(line);
    }

    fn lines(&self, colour: bool, room: usize) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..count).map(|column| self.width(column)).collect();
        let gaps = count.saturating_sub(1);
        if widths.iter().sum::<usize>() + GAP * gaps <= room {
            return self.columns(&widths, GAP, colour);
        }
        let gap = if widths.iter().sum::<usize>() + gaps <= room { 1 } else { GAP };
        match self.narrow(&mut widths, room.saturating_sub(gap * gaps)) {
            true => self.columns(&widths, gap, colour),
            false => self.records(colour),
        }
    }

    /// Takes room from the widest columns that have words to break, until all have `room`.
    fn narrow(&self, widths: &mut [usize], room: usize) -> bool {
        let least: Vec<usize> = (0..widths.len()).map(|column| self.longest_word(column)).collect();
        while widths.iter().sum::<usize>() > room {
            let columns = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
            let Some((widest, _)) = columns.max_by_key(|(width, _)| **width) else { return false };
            *widest -= 1;
        }
        true
    }

    fn columns(&self, widths: &[usize], gap: usize, colour: bool) -> Vec<String> {
        let right: Vec<bool> = (0..widths.len()).map(|column| self.is_numeric(column)).collect();
        let mut lines = Vec::new();
        for row in &self.rows {
            let parts: Vec<Vec<String>> =
                row.iter().zip(widths).map(|(cell, width)| broken(&cell.text, *width)).collect();
            for at in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
                let cells = row.iter().zip(&parts).zip(widths.iter().zip(&right));
                let texts: Vec<String> = cells
                    .map(|((cell, parts), (width, right))| {
                        let text = parts.get(at).map(String::as_str).unwrap_or_default();
                        pad(&Cell::new(text, cell.ink), *width, *right, colour)
                    })
                    .collect();
                lines.push(texts.join(&" ".repeat(gap)).trim_end().to_owned());
            }
        }
        lines
    }

    /// A line for each cell, and an empty one between two rows.
    fn records(&self, colour: bool) -> Vec<String> {
        let Some((heading, rows)) = self.rows.split_first() else { return Vec::new() };
        let widest = heading.iter().map(|cell| width(&cell.text)).max().unwrap_or(0);
        let record = |row: &Vec<Cell>| {
            let cells = heading.iter().zip(row).filter(|(_, cell)| !cell.text.is_empty());
            let lines: Vec<String> = cells
                .map(|(head, cell)| {
                    let head = pad(head, widest, false, colour);
                    format!("{head}  {}", pad(cell, 0, false, colour)).trim_end().to_owned()
                })
                .collect();
            lines.join("\n")
        };
        let records: Vec<String> = rows.iter().map(record).collect();
        vec![records.join("\n\n")]
    }

    fn width(&self, column: usize) -> usize {
        self.cells(column).map(|cell| width(&cell.text)).max().unwrap_or(0)
    }

    fn longest_word(&self, column: usize) -> usize {
        let words = self.cells(column).flat_map(|cell| cell.text.split_whitespace());
        words.map(width).max().unwrap_or(0)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    /// A column whose every word below the heading begins with a digit.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some()
            && cells.all(|cell| cell.text.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// What fits stays as it is, with all its spaces.
fn broken(text: &str, columns: usize) -> Vec<String> {
    if width(text) <= columns { vec![text.to_owned()] } else { words(text, columns) }
}

fn pad(cell: &Cell, columns: usize, right: bool, colour: bool) -> String {
    let space = " ".repeat(columns.saturating_sub(width(&cell.text)));
    let word = if colour && cell.ink != Ink::Plain && !cell.text.is_empty() {
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
        let expected = ["flow   sent", "video   750", "é         5"];
        assert_eq!(table().lines(false, usize::MAX), expected);
        assert_eq!(table().lines(false, 11), expected);
        assert_eq!(table().lines(false, 10), ["flow  sent", "video  750", "é        5"]);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let coloured = table().lines(true, usize::MAX);
        assert_eq!(coloured[0], "\x1b[1mflow\x1b[0m   \x1b[1msent\x1b[0m");
        assert_eq!(coloured[2], "é         \x1b[1;31m5\x1b[0m");
    }

    #[test]
    fn wide_cells_go_on_below_themselves() {
        let mut table = Table::new(&["state", "found"]);
        table.row(vec!["ok".into(), "a wait of 1 ms".into()]);
        let expected = ["state  found", "ok     a wait", "       of 1 ms"];
        assert_eq!(table.lines(false, 14), expected);
    }

    #[test]
    fn what_fits_in_no_way_is_a_line_for_each_cell() {
        let lines = table().lines(false, 5).join("\n");
        assert_eq!(lines, "flow  video\nsent  750\n\nflow  é\nsent  5");
        assert_eq!(Table::default().lines(false, 0), [""; 0]);
    }
}
