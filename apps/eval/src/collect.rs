//! `dacapo-eval collect`: what comes by UDP, on standard output.

use crate::cli::CollectArgs;
use crate::exit::{Exit, Failure};
use std::io::Write;
use std::net::UdpSocket;

/// The longest datagram there is.
const DATAGRAM_LEN: usize = 1 << 16;

/// Runs the command, until it is ended or nobody reads.
pub fn run(args: &CollectArgs) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::run_time("collect", error);
    let refused = |error| Failure::run_time("collect", format!("{}: {error}", args.at));
    let socket = UdpSocket::bind(args.at).map_err(refused)?;
    let mut out = std::io::stdout().lock();
    let mut datagram = vec![0; DATAGRAM_LEN];
    loop {
        let len = socket.recv(&mut datagram).map_err(failed)?;
        out.write_all(datagram.get(..len).unwrap_or_default()).map_err(failed)?;
        out.flush().map_err(failed)?;
    }
}
