//! The rows, a file per kind of fault.
//!
//! [`FILES`], the one list. A new file exports `ROWS: &[Fault]` and gets a line here.

mod clock;
mod contact;
mod life;
mod link;
mod path;
mod process;
pub mod seeds;
mod setup;
mod trials;
mod wire;

use crate::fault::Fault;

/// The files, in the order of the table.
pub const FILES: &[(&str, &[Fault])] = &[
    ("The link", link::ROWS),
    ("The path", path::ROWS),
    ("Set-up", setup::ROWS),
    ("Life", life::ROWS),
    ("Clocks", clock::ROWS),
    ("The hostile wire, on real sockets", wire::ROWS),
    ("Contact, on real sockets", contact::ROWS),
    ("Processes, files, limits, hostile peers", process::ROWS),
    ("Everything at once", seeds::ROWS),
];

/// Every row, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Fault> {
    FILES.iter().flat_map(|(_, rows)| *rows)
}

/// The row of a name.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static Fault> {
    all().find(|row| row.id == id)
}
