//! The far end: a host that serves one session to all who join, at several ports, and says what it
//! uses when asked.
//!
//! ```text
//!   standard input   a line -> one look, as JSON, on standard output     end -> it ends
//! ```

use super::flow;
use super::look::Look;
use crate::cli::BenchScaleArgs;
use crate::core_app::{App, AppEvent};
use crate::exit::{Exit, Failure};
use crate::output::line;
use dacapo::{Address, Error};
use serde_json::json;
use std::io::{Read, stdin};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::Duration;

const INPUT: u32 = 1;

/// Ports of one call: as many as a host listens at with one.
const PORTS_PER_CALL: usize = 16;

/// Serves at so many ports, with units where they are asked for, until standard input ends, or a
/// signal comes.
pub fn serve(ports: u32, args: &BenchScaleArgs) -> Result<Exit, Failure> {
    let failed = |error: &Error| Failure::core("bench scale: the far end", error);
    let mut app = App::open()?;
    let addrs = vec![Address::from((Ipv4Addr::LOCALHOST, 0)); ports as usize];
    for some in addrs.chunks(PORTS_PER_CALL) {
        app.host.listen(some).map_err(|error| failed(&error))?;
    }
    let spec = flow::spec()?;
    let published = app.core().publish(spec, flow::provider(args.send, args.sessions));
    published.map_err(|error| failed(&error))?;
    let watched = app.reactor().watch(stdin().as_fd(), INPUT);
    watched.map_err(|error| Failure::run_time("bench scale: standard input", error))?;
    let addresses: Vec<String> = app.host.listening().iter().map(ToString::to_string).collect();
    line(json!({ "event": "listening", "addresses": addresses }));
    loop {
        match app.next(Duration::from_secs(60))? {
            Some(AppEvent::Signal(signal)) => return Ok(Exit::Signal(signal)),
            Some(AppEvent::Ready) => {
                let mut words = [0; 256];
                let len = stdin().lock().read(&mut words).unwrap_or(0);
                if len == 0 {
                    return Ok(Exit::Success);
                }
                let asked = words.iter().take(len).filter(|byte| **byte == b'\n').count();
                for _ in 0..asked {
                    line(Look::at(app.core())?.to_json());
                }
            }
            Some(AppEvent::Core(_)) | None => {}
        }
    }
}
