//! `dacapo xtp`: XTP 4.0 as it is, over UDP, IP, Ethernet or TCP connections.
//!
//! ```text
//!   listen   served.rs, per association: files -> folder, transactions -> back
//!   send     files, as units in messages of one stream    <- what was saved, with its hash
//!   ping     transactions                                  capture   packets of an interface
//!   bench    becomes `dacapo-eval xtp`
//!      \______ `dacapo_term::xtp`: the network, the host, signals; calls that wait ______/
//! ```

mod capture;
mod listen;
mod ping;
mod receipt;
mod send;
mod served;

use crate::cli::{Xtp, XtpArgs};
use crate::exit::{Exit, Failure};
use dacapo_term::xtp::{below, patience};

/// Runs the command.
pub fn run(args: &XtpArgs) -> Result<Exit, Failure> {
    match &args.what {
        Xtp::Listen(args) => listen::run(args),
        Xtp::Send(args) => send::run(args),
        Xtp::Ping(args) => ping::run(args),
        Xtp::Capture(args) => capture::run(args),
        Xtp::Bench(args) => super::bench::run_xtp(args),
    }
}
