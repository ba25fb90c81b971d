//! `copies`: how often a unit is copied in user space, and whether memory is allocated for it, by
//! what callgrind counts; the same in every run, whatever the load.

use super::own::{self, By, Of, Own};
use crate::copies::transports;
use crate::peers::words;

/// The experiment.
pub static COPIES: Own = Own {
    id: "copies",
    what: "how often a unit of 60 KiB is copied in user space at one end, counted by callgrind",
    of: Of::Each {
        rows: || {
            let of = |name: &str| {
                (name.to_owned(), format!("a flow over {name}, all that is below in it"))
            };
            transports().into_iter().map(of).collect()
        },
        command: |rig, row| own::command(rig, words(["copies", "--over", row, "--json"])),
    },
    patience_s: 300,
    seconds: 30.0,
    rounds: [1, 0],
    by: By::Valgrind,
    figures: &[
        ("send", "send", false, "rows[way=send].copies"),
        ("pieces", "recv_with, by pieces", false, "rows[way=pieces].copies"),
        ("slice", "recv_with, as a slice", false, "rows[way=slice].copies"),
        ("into", "recv_into", false, "rows[way=into].copies"),
        ("recv", "recv", false, "rows[way=recv].copies"),
        (
            "send_allocator",
            "instructions of the allocator, send",
            false,
            "rows[way=send].allocator_instructions",
        ),
        (
            "pieces_allocator",
            "the same, recv_with",
            false,
            "rows[way=pieces].allocator_instructions",
        ),
    ],
    goals: &[],
};
