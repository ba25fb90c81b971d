//! [`patiently`] and [`write()`]: calls that wait as long as something comes.
//!
//! ```text
//!   call, for `most` -> done                          its result
//!        ^           -> timed out, packets came       again
//!        `------------------'
//!                    -> timed out, none came          given up
//! ```
//!
//! Invariant: without a packet a call ends after twice its time at the latest.

use dacapo::Time;
use dacapo::xtp_net::{CallError, ContextId, Host, Message};
use std::time::Duration;

/// Calls with a time `most` from now, and again when that is over, as long as packets came.
///
/// # Errors
/// Those of the call, which must be one that can be repeated.
pub fn patiently<T>(
    host: &mut Host,
    most: Duration,
    mut call: impl FnMut(&mut Host, Time) -> Result<T, CallError>,
) -> Result<T, CallError> {
    loop {
        let before = host.counters().packets_received;
        let until = host.after(most);
        match call(host, until) {
            Err(CallError::TimedOut) if host.counters().packets_received > before => {}
            done => return done,
        }
    }
}

/// Writes all of a message.
///
/// # Errors
/// [`CallError`]; a part of it may have been taken.
pub fn write(
    host: &mut Host,
    id: ContextId,
    message: &Message<'_>,
    most: Duration,
) -> Result<(), CallError> {
    let mut rest = *message;
    patiently(host, most, |host, until| host.write_rest(id, &mut rest, until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo::xtp_net::{Config, InternetConfig, Udp};
    use std::net::{SocketAddr, UdpSocket};

    #[test]
    fn what_comes_begins_the_time_anew_and_silence_ends_it() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let network = Udp::bind(&InternetConfig::new(here)).unwrap();
        let mut host = Host::new(Box::new(network), Config::default()).unwrap();
        let peer = UdpSocket::bind(here).unwrap();
        let mut calls = 0;
        let result = patiently(&mut host, Duration::ZERO, |host, _| -> Result<(), CallError> {
            calls += 1;
            if calls <= 3 {
                peer.send_to(&[0; 32], host.local()).unwrap();
                let before = host.counters().packets_received;
                while host.counters().packets_received == before {
                    host.turn(Duration::from_secs(1))?;
                }
            }
            Err(CallError::TimedOut)
        });
        assert!(matches!(result, Err(CallError::TimedOut)));
        assert_eq!(calls, 4);
    }
}
