//! What the programs of dacapo share where they meet who started them: the terminal, the shell,
//! signals.
//!
//! ```text
//!   program (begin, end, start another) -> args, exit (codes) -> output, progress, words
//!   app: an endpoint, with the signals and descriptors that a program waits for
//!   xtp: a host of XTP, likewise
//!   folder: where they write; manual, completions: what is said of them elsewhere
//! ```
//!
//! What stands here is needed by more than one program; what one alone needs is its own.

pub mod app;
pub mod args;
pub mod completions;
pub mod exit;
#[cfg(debug_assertions)]
pub mod faults;
pub mod folder;
pub mod manual;
pub mod output;
pub mod program;
pub mod progress;
pub mod words;
pub mod wrap;
pub mod xtp;
