//! `cost`: what each C-module costs, beside what its profile says, by which graphs are chosen.

use super::own::{self, By, Of, Own};
use crate::peers::words;

/// The experiment.
pub static COST: Own = Own {
    id: "cost",
    what: "what a C-module costs, both ends, beside its profile, by which graphs are chosen",
    of: Of::Each {
        rows: || {
            let modules = dacapo::Catalogue::default().modules;
            modules
                .iter()
                .map(|it| (it.spec.name.to_owned(), it.spec.mechanism.to_owned()))
                .collect()
        },
        command: |rig, row| own::command(rig, words(["cost", "--module", row, "--json"])),
    },
    patience_s: 120,
    seconds: 5.0,
    rounds: [5, 5],
    by: By::Clock,
    figures: &[
        ("alone_ns", "1,400 B alone, ns", false, "modules[].shapes[packets=1 bytes=1400].ns"),
        ("train_ns", "45 of them, ns", false, "modules[].shapes[packets=45 bytes=1400].ns"),
        (
            "alone_said",
            "profile ÷ measured, alone",
            true,
            "modules[].shapes[packets=1 bytes=1400].profile_ns / \
             modules[].shapes[packets=1 bytes=1400].ns",
        ),
        (
            "train_said",
            "profile ÷ measured, 45",
            true,
            "modules[].shapes[packets=45 bytes=1400].profile_ns / \
             modules[].shapes[packets=45 bytes=1400].ns",
        ),
    ],
    goals: &[],
};
