//! [`Sending`]: the sums of the row and the columns that are being sent.
//!
//! ```text
//!             c0 c1 c2 c3              a source is added to the sum of its row and of its column
//!   shelf     +- +- +- +-              shelves are `rows` high, and each column's lie lower or
//!             |  |  |  +-              higher than its neighbour's
//!             |  |  +- |
//! ```
//!
//! A row ends with its last source. A column ends when a source comes that lies on the next shelf,
//! and its sum leaves behind that one. Either ends, with what it has, a span after its first.
//!
//! Invariants: a sum is as long as the longest source; one is kept for each column and one for the
//! row, and nothing of a source but these.

use super::{BOTH, COLUMNS_ONLY, ROWS_ONLY};
use crate::blocks::leaving::Leaving;
use crate::blocks::sums::{add, set};
use crate::parity::sliding;
use dacapo_base::Time;
use dacapo_lift::{Cx, Setup};
use dacapo_packet::Packet;
use dacapo_wire::sliding::{CODED_AT, Header, low};
use std::ops::Range;
use std::time::Duration;

/// What has a sum, and of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// A bit for rows, one for columns.
    pub arrangement: u64,
    /// How many sources a row has, and how far apart those of a column are.
    pub columns: u64,
    /// How many sources a column has.
    pub rows: u64,
    /// How long after its first source a sum leaves at most.
    pub span: Duration,
}

impl Terms {
    fn has(&self, bit: u64) -> bool {
        self.arrangement & bit != 0
    }

    /// The column of a source, and the shelf that it lies on there.
    fn place(&self, number: u64) -> (usize, u64) {
        let (row, column) = (number / self.columns, number % self.columns);
        let lower = lower(column, self.columns, self.rows);
        (column as usize, (row + lower) / self.rows)
    }
}

/// How many rows the shelves of a column lie lower than those of the first: so that as many columns
/// end in each row as in any other, as far apart as there are rows.
pub(super) fn lower(column: u64, columns: u64, rows: u64) -> u64 {
    if columns < rows { column * rows / columns } else { column % rows }
}

/// A row or a column.
#[derive(Debug, Default)]
struct Group {
    sum: Vec<u8>,
    /// How many sources it has, and the number of the last.
    count: u8,
    last: u64,
    /// When its first source was sent.
    begun: Time,
}

impl Group {
    /// Adds sources, of which the last has this number and none is longer than `longest`.
    fn add<'a>(
        &mut self,
        (last, now): (u64, Time),
        longest: usize,
        sources: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let (is_new, count) = (self.count == 0, sources.len() as u8);
        (self.count, self.last) = (self.count + count, last);
        let sources = sources.map(|coded| ((), coded));
        if is_new {
            self.begun = now;
            self.sum.resize(longest, 0);
            return set(std::slice::from_mut(&mut self.sum), &[()], sources, |(), ()| 1);
        }
        if self.sum.len() < longest {
            self.sum.resize(longest, 0);
        }
        add(std::slice::from_mut(&mut self.sum), &[()], sources, |(), ()| 1);
    }
}

/// A sum that is due.
#[derive(Debug)]
struct Sum {
    header: Header,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Sending {
    /// The number of the next source.
    next: u64,
    /// What rows and columns are laid out by.
    laid: Terms,
    row: Group,
    columns: Vec<Group>,
    class: u8,
    /// The sums that are due, and lists that are used again.
    due: Vec<Sum>,
    spare: Vec<Vec<u8>>,
    leaving: Leaving,
}

impl Sending {
    pub fn new(setup: &Setup, terms: Terms) -> Self {
        let mut columns = Vec::new();
        columns.resize_with(terms.columns as usize, Group::default);
        Self {
            next: 0,
            laid: terms,
            row: Group::default(),
            columns,
            class: 0,
            due: Vec::new(),
            spare: Vec::new(),
            leaving: Leaving::new(setup),
        }
    }

    /// Numbers as many sources as the packet has segments, and adds them; how many sums are due
    /// with them. `None`, and nothing done, when there is no room for the header.
    pub fn add(&mut self, cx: &mut Cx<'_>, packet: &mut Packet, terms: &Terms) -> Option<usize> {
        let segments = packet.segment_count();
        sliding::number(cx, packet, self.next)?;
        self.class = packet.class;
        if self.laid != *terms {
            self.lay(*terms);
        }
        let mut at = 0;
        while at < segments {
            // The rest of a row, at once.
            let rest = self.laid.columns.saturating_sub(self.row.count.into()).max(1) as usize;
            let run = at..segments.min(at + rest);
            at = run.end;
            self.add_run(cx, packet, run);
        }
        Some(self.push_due(cx))
    }

    /// Adds some of a packet's segments, which lie in one row.
    fn add_run(&mut self, cx: &Cx<'_>, packet: &Packet, run: Range<usize>) {
        let (laid, now) = (self.laid, cx.now());
        let coded = |at: usize| cx.pool.segment(packet, at).get(CODED_AT..).unwrap_or_default();
        let (first, longest) = (self.next, coded(run.start).len());
        self.next += run.len() as u64;
        if laid.has(COLUMNS_ONLY) {
            for (number, at) in (first..).zip(run.clone()) {
                self.add_to_column(number, coded(at), now);
            }
        }
        if laid.has(ROWS_ONLY) {
            self.row.add((self.next - 1, now), longest, run.map(coded));
            if u64::from(self.row.count) >= laid.columns {
                self.end_row();
            }
        }
    }

    /// Ends all rows and columns, and begins others.
    fn lay(&mut self, terms: Terms) {
        self.end_begun_until(Time::NEVER);
        self.columns.resize_with(terms.columns as usize, Group::default);
        self.laid = terms;
    }

    fn add_to_column(&mut self, number: u64, coded: &[u8], now: Time) {
        let (column, shelf) = self.laid.place(number);
        let is_next = self
            .columns
            .get(column)
            .is_some_and(|group| group.count > 0 && self.laid.place(group.last).1 != shelf);
        if is_next {
            self.end_column(column);
        }
        if let Some(group) = self.columns.get_mut(column) {
            group.add((number, now), coded.len(), std::iter::once(coded));
        }
    }

    /// The sum of a row is due, unless it is of a source that its column has, too.
    fn end_row(&mut self) {
        if self.laid.arrangement == BOTH && self.row.count == 1 {
            self.row.sum.clear();
            self.row.count = 0;
        }
        end(&mut self.row, 1, &mut self.due, &mut self.spare);
    }

    fn end_column(&mut self, column: usize) {
        let step = self.laid.columns as u8;
        if let Some(group) = self.columns.get_mut(column) {
            end(group, step, &mut self.due, &mut self.spare);
        }
    }

    fn end_begun_until(&mut self, until: Time) {
        if self.row.begun <= until {
            self.end_row();
        }
        for column in 0..self.columns.len() {
            if self.columns.get(column).is_some_and(|group| group.begun <= until) {
                self.end_column(column);
            }
        }
    }

    /// Ends what was begun until then; its sums wait to be sent.
    pub fn end_old(&mut self, cx: &mut Cx<'_>, until: Time) {
        self.end_begun_until(until);
        self.push_due(cx);
    }

    /// When the row or column was begun that was begun first.
    pub fn oldest(&self) -> Option<Time> {
        let all = self.columns.iter().chain(Some(&self.row));
        all.filter(|group| group.count > 0).map(|group| group.begun).min()
    }

    /// Makes trains of the sums that are due; how many these are.
    fn push_due(&mut self, cx: &mut Cx<'_>) -> usize {
        let longest = self.due.iter().map(|sum| sum.bytes.len()).max().unwrap_or(0);
        self.due.iter_mut().for_each(|sum| sum.bytes.resize(longest, 0));
        for sums in self.due.chunks(self.leaving.most(longest).max(1)) {
            let sums = sums.iter().map(|sum| (sum.header.emit(), sum.bytes.as_slice()));
            self.leaving.push(cx, (cx.now(), self.class), longest, sums);
        }
        let count = self.due.len();
        self.spare.extend(self.due.drain(..).map(|sum| sum.bytes));
        count
    }

    /// The sums that wait.
    pub fn leaving(&mut self) -> &mut Leaving {
        &mut self.leaving
    }

    /// Forgets rows and columns; the numbers go on, and what waits is still to leave.
    pub fn forget(&mut self) {
        for group in self.columns.iter_mut().chain(Some(&mut self.row)) {
            group.sum.clear();
            group.count = 0;
        }
    }
}

/// The sum of a row or column is due, if it has one.
fn end(group: &mut Group, step: u8, due: &mut Vec<Sum>, spare: &mut Vec<Vec<u8>>) {
    if group.count == 0 {
        return;
    }
    let mut next = spare.pop().unwrap_or_default();
    next.clear();
    let bytes = std::mem::replace(&mut group.sum, next);
    let header = Header { number: low(group.last), sources: group.count, key: step, length: 0 };
    due.push(Sum { header, bytes });
    group.count = 0;
}
