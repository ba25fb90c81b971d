//! The parts of a receiver, each by itself.

mod account;
mod delivery;
mod epochs;
mod settling;
mod whole;

use dacapo_wire::session::End;

fn end_of(units: u64) -> End {
    End { flow: 3, epoch: 0, units, bytes: 0, hash: [0; 32], code: 0, text: String::new() }
}
