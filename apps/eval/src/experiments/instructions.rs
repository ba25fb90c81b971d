//! `instructions`: those of fixed work, two cores back to back in virtual time. The ratchet of
//! `make test` compares them with the last that were accepted; they are the same in every run.

use super::own::{By, Of, Own};
use crate::peers::words;

/// What is counted, as `cargo xtask ratchet` calls it, and what it is.
const WORKS: [(&str, &str); 4] = [
    ("udp-large", "bulk over udp, units of 60 KiB"),
    ("udp-small", "bulk over udp, units of 1,400 B"),
    ("tcp", "bulk over tcp"),
    ("control", "sessions opened, changed and closed"),
];

/// The experiment.
pub static INSTRUCTIONS: Own = Own {
    id: "instructions",
    what: "instructions of fixed work in the core, counted by callgrind",
    of: Of::Each {
        rows: || WORKS.map(|(name, what)| (name.to_owned(), what.to_owned())).to_vec(),
        command: |_, row| words(["cargo", "xtask", "ratchet", "--json", row]),
    },
    // The program that counts may have to be built first.
    patience_s: 600,
    seconds: 25.0,
    rounds: [1, 0],
    by: By::Valgrind,
    figures: &[("instructions", "instructions", false, "instructions")],
    goals: &[],
};
