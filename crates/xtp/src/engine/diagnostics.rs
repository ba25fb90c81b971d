//! [`Limiter`]: how many diagnostics a source gets.
//!
//! Sources share 256 counters by a hash of their address, so that a flood from many addresses takes
//! no memory; who shares one with a flood gets less.

use crate::wire::{Body, Code, Diagnostic, Format, Header, Key, Reason, Writer};
use dacapo_base::Time;
use std::net::IpAddr;
use std::time::Duration;

/// Diagnostics in a second to a source (decided here).
const PER_SECOND: u32 = 10;
const COUNTERS: usize = 256;

/// How many diagnostics went where.
#[derive(Debug)]
pub struct Limiter(Vec<(Time, u32)>);

impl Default for Limiter {
    fn default() -> Self {
        Self(vec![(Time::ZERO, 0); COUNTERS])
    }
}

impl Limiter {
    /// Whether one may go to this host now; counts it.
    pub fn admits(&mut self, now: Time, host: IpAddr) -> bool {
        let octets = match host {
            IpAddr::V4(host) => u128::from(host.to_bits()),
            IpAddr::V6(host) => host.to_bits(),
        };
        let folded = (octets ^ octets >> 64) as u64;
        let hash = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        let Some((since, count)) = self.0.get_mut(hash as usize) else { return false };
        if now.since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= PER_SECOND
    }
}

/// A diagnostic in answer to a packet; it carries the packet's `sync`, which tells to what it is an
/// answer.
pub fn answer(to: &Header, code: Code, reason: Reason) -> Vec<u8> {
    let header = Header { sync: to.sync, ..Header::new(to.key.answer(), Format::Diag) };
    let message = reason.name().unwrap_or_default().as_bytes();
    let body = Body::Diag(Diagnostic { code, reason, message });
    let mut packet = Vec::new();
    // A diagnostic of ours is never too long.
    let _ = Writer::packet(&header, &body, &mut packet);
    debug_assert_eq!(Key::answer(header.key), to.key);
    packet
}
