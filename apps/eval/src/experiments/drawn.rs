//! `drawn`: how often each module is chosen for 10,000 drawn requests; the same in every run.

use super::own::{self, By, Of, Own};
use crate::peers::words;

/// The experiment.
pub static DRAWN: Own = Own {
    id: "drawn",
    what: "how often each module that has requests of its own is chosen for 10,000 drawn ones",
    of: Of::Each {
        rows: crate::drawn::names,
        command: |rig, row| own::command(rig, words(["drawn", "--module", row, "--json"])),
    },
    patience_s: 600,
    seconds: 20.0,
    rounds: [1, 0],
    by: By::Seeds,
    figures: &[
        ("share", "share of what is granted", true, "modules[].share"),
        ("granted", "granted", true, "granted"),
        ("refused", "refused", false, "refused"),
    ],
    goals: &[],
};
