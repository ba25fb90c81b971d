//! `dacapo-eval pace`: a file on standard output, or by UDP, at an even rate, as a live source
//! gives it: while nobody reads it stands still, and it does not hurry afterwards.

use crate::cli::PaceArgs;
use crate::exit::{Exit, Failure};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Seven packets of an MPEG transport stream.
const PIECE_LEN: usize = 1_316;

/// What timers are late is made up for, and no more.
const BEHIND_MAX: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &PaceArgs) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::run_time("pace", error);
    let mut file = std::fs::File::open(&args.file).map_err(failed)?;
    let mut out = out(args).map_err(failed)?;
    let (mut began, mut piece, mut sent) = (Instant::now(), [0; PIECE_LEN], 0_u64);
    loop {
        let read = file.read(&mut piece).map_err(failed)?;
        if read == 0 {
            return Ok(Exit::Success);
        }
        let due = Duration::from_secs_f64(sent as f64 * 8e-6 / args.mbit_per_s);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let behind = began.elapsed().saturating_sub(due);
        if behind > BEHIND_MAX {
            began += behind;
        }
        out(piece.get(..read).unwrap_or_default()).map_err(failed)?;
        sent = sent.saturating_add(read as u64);
    }
}

/// Takes a piece.
type Out = Box<dyn FnMut(&[u8]) -> io::Result<()>>;

/// Where pieces go.
fn out(args: &PaceArgs) -> io::Result<Out> {
    let Some(to) = args.to else {
        let mut out = io::stdout().lock();
        return Ok(Box::new(move |piece| {
            out.write_all(piece)?;
            out.flush()
        }));
    };
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    Ok(Box::new(move |piece| socket.send_to(piece, to).map(drop)))
}
