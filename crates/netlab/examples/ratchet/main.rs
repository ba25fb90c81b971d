//! What `cargo xtask ratchet` counts the instructions of: work that is the same in every run.
//!
//! ```text
//!   two cores in one thread, back to back:   transmit --copy--> packet of the other    (datagrams)
//!                                            transmit --StreamEnd--> bytes --StreamEnd (streams)
//!   clock: jumps to the earliest deadline when nothing is left to do
//! ```
//!
//! Invariants: nothing depends on the clock, the environment, the command's words or a hash's seed;
//! only what runs inside [`counted`] is counted; a run that did not do its work fails.
//!
//! `cargo run --release -p dacapo-netlab --example ratchet -- udp-large|udp-small|tcp|control`

// What goes wrong here ends the program, and so the check that it is for.
#![allow(clippy::unwrap_used, reason = "a program for a check")]

mod bulk;
mod control;
mod pair;
mod ports;
mod streams;

use std::process::ExitCode;

/// Bytes of a unit that needs many segments.
const LARGE: usize = 60 * 1024;

/// Bytes of a unit that nearly fills a datagram.
const SMALL: usize = 1_400;

/// The transports, by their numbers on the wire.
const UDP: u16 = 1;
const TCP: u16 = 3;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let work: fn() -> String = match name.as_str() {
        "udp-large" => || bulk::run(UDP, LARGE, 2_000),
        "udp-small" => || bulk::run(UDP, SMALL, 50_000),
        "tcp" => || bulk::run(TCP, LARGE, 2_000),
        "control" => || control::run(150),
        _ => {
            eprintln!("unknown work \"{name}\"; one of udp-large, udp-small, tcp, control");
            return ExitCode::from(2);
        }
    };
    // Where the stack of a thread begins does not depend on the words and the environment of the
    // process, which lie on the main thread's, and how a copy is done depends on where it begins.
    match std::thread::spawn(work).join() {
        Ok(done) => {
            println!("{name}: {done}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Does the work that is counted: callgrind collects while this function runs, and not otherwise.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    // Not the last thing here, so that this function is left when the work is done.
    std::hint::black_box(());
}
