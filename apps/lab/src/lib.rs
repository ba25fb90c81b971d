//! Faults by the thousand: what is put in, what is expected, and what was seen.
//!
//! ```text
//!   faults/*.rs   ROWS: fault -> injector -> expected -> run        the table, a file per kind
//!        |
//!   fault         Fault, Scale, Seen        sweep   many seeds on every core of the machine
//!        |
//!   dacapo-lab    list | run NAME | faults --write docs/faults.md | check | nightly --minutes N
//! ```
//!
//! The table of faults as code, so that every figure in `docs/faults.md` can be had again with one
//! command.
//!
//! Invariants: everything in virtual time follows from seeds; a row that fails says which seed, and
//! how it is repeated; no figure is written that a run did not give.
//!
//! A new kind of fault is a file in `faults/` that exports `ROWS`, and a line in
//! [`faults::FILES`].

pub mod alarms;
pub mod cli;
pub mod commands;
pub mod document;
pub mod fault;
pub mod faults;
pub mod history;
pub mod nightly;
pub mod progress;
pub mod records;
pub mod setup;
pub mod stock;
pub mod sweep;
pub mod table;
pub mod wire;

pub use fault::{Fault, Scale, Seen};
