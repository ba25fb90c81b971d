//! `choices`: the requests of docs/choices.md, each with the module that it is for, without it, and
//! run, whole cores in virtual time; the same in every run, whatever the load.

use super::own::{self, By, Of, Own};
use crate::peers::words;

/// The experiment.
pub static CHOICES: Own = Own {
    id: "choices",
    what: "requests for which a module is right: without it, and run 200 times in virtual time",
    of: Of::Each {
        rows: crate::choices::names,
        command: |rig, row| {
            own::command(rig, words(["choices", "--cell", row, "--seeds", "200", "--json"]))
        },
    },
    patience_s: 3_600,
    seconds: 120.0,
    rounds: [1, 0],
    by: By::Seeds,
    figures: &[
        ("held", "share of seeds in which all that is asked holds", true, "cells[].held_share"),
        ("lost_ppm", "units lost, ppm", false, "cells[].lost_ppm"),
        ("delay_ms", "99 of 100 take at most, ms", false, "cells[].delay_p99_ms"),
        ("without", "without it, × its processor time (0: refused)", true, "cells[].without_cost"),
    ],
    goals: &[],
};
