//! What the kernel does for UDP: trains in one call (GSO, GRO), and the buffers that it gives.
//!
//! ```text
//!   8 datagrams --one call?--> loopback --one call?--> 8 datagrams
//! ```

use super::finding::Finding;
use super::loopback::{ARRIVAL_MAX, refusal};
use dacapo::text::format_size;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::Ecn;
use dacapo_sys::udp::{Buffers, Config, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

/// Any port at loopback.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const SEGMENT_LEN: u16 = 1_200;
const SEGMENTS: u32 = 8;
const TRAIN_LEN: usize = SEGMENT_LEN as usize * SEGMENTS as usize;

/// The findings.
pub fn examine() -> Vec<Finding> {
    let mut findings = match try_train() {
        Ok(train) => vec![gso(&train), gro(&train)],
        Err(error) => ["udp-gso", "udp-gro"]
            .map(|check| {
                let found = format!("not known: no train came through loopback: {error}");
                Finding::warn(check, found, "see loopback-ipv4")
            })
            .to_vec(),
    };
    let config = Config::default();
    // Without a socket there is no buffer either.
    let given = Socket::bind(LOOPBACK, &config)
        .map_or(Buffers { recv_bytes: 0, send_bytes: 0 }, |socket| socket.buffers());
    findings.push(buffer("recv-buffer", "rmem_max", given.recv_bytes, config.recv_buffer_bytes));
    findings.push(buffer("send-buffer", "wmem_max", given.send_bytes, config.send_buffer_bytes));
    findings
}

/// How a train went from one socket to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Train {
    /// What the sockets say that they use.
    uses_gso: bool,
    uses_gro: bool,
    /// The calls that it took.
    calls_out: u32,
    calls_in: u32,
}

fn try_train() -> io::Result<Train> {
    let receiver = Socket::bind(LOOPBACK, &Config::default())?;
    let mut sender = Socket::bind(LOOPBACK, &Config::default())?;
    let bytes = [0x5A; TRAIN_LEN];
    let sent = sender.send(Some(receiver.local_addr()?), &bytes, Some(SEGMENT_LEN), Ecn::NotEct);
    let sent = sent.map_err(|error| io::Error::other(error.to_string()))?;
    let mut poller = Poller::new()?;
    poller.add(receiver.as_fd(), 0, Interest::Read)?;
    let (mut len, mut calls_in) = (0, 0);
    let mut buffer = vec![0; 65_536];
    while len < sent.bytes {
        poller.wait(Some(ARRIVAL_MAX), &mut Vec::new())?;
        len += receiver.recv(&mut buffer).map_err(refusal)?.len;
        calls_in += 1;
    }
    Ok(Train {
        // A kernel that refuses a train says so by sending, and the socket goes without.
        uses_gso: sender.offloads().gso,
        uses_gro: receiver.offloads().gro,
        calls_out: sent.calls,
        calls_in,
    })
}

fn gso(train: &Train) -> Finding {
    let found = format!("{SEGMENTS} datagrams went out in {}", calls(train.calls_out));
    match train.uses_gso {
        true => Finding::ok("udp-gso", format!("used: {found}")),
        false => Finding::warn(
            "udp-gso",
            format!("not used: {found}"),
            "it works all the same, with more load; Linux has it from 4.18 on",
        ),
    }
}

fn gro(train: &Train) -> Finding {
    let found = format!("{SEGMENTS} datagrams came in {}", calls(train.calls_in));
    match train.uses_gro {
        true => Finding::ok("udp-gro", format!("used: {found}")),
        false => Finding::warn(
            "udp-gro",
            format!("not used: {found}"),
            "it works all the same, with more load; Linux has it from 5.0 on",
        ),
    }
}

fn calls(count: u32) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// `given` and `asked` in bytes.
fn buffer(check: &str, limit: &str, given: usize, asked: usize) -> Finding {
    let path = format!("/proc/sys/net/core/{limit}");
    let set = std::fs::read_to_string(path).unwrap_or_default();
    let set = if set.trim().is_empty() { "not told" } else { set.trim() };
    let size = |bytes: usize| format_size(bytes as u64);
    let found = format!("{} of {} (net.core.{limit} {set})", size(given), size(asked));
    if given >= asked {
        return Finding::ok(check, found);
    }
    let advice = format!(
        "bursts are lost in a buffer that is too small; as root: \
         sysctl -w net.core.{limit}={asked}, and in a file of /etc/sysctl.d to keep it"
    );
    Finding::warn(check, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn what_the_kernel_does_not_do_is_a_warning_and_no_failure() {
        let train = Train { uses_gso: true, uses_gro: false, calls_out: 1, calls_in: 8 };
        assert_eq!(gso(&train), Finding::ok("udp-gso", "used: 8 datagrams went out in 1 call"));
        let gro = gro(&train);
        assert_eq!(
            (gro.state, gro.found.as_str()),
            (State::Warn, "not used: 8 datagrams came in 8 calls")
        );
    }

    #[test]
    fn a_buffer_that_is_too_small_is_named_with_the_limit_to_raise() {
        let asked = 4 << 20;
        assert_eq!(buffer("recv-buffer", "rmem_max", asked, asked).state, State::Ok);
        let small = buffer("recv-buffer", "rmem_max", 212_992, asked);
        assert_eq!(small.state, State::Warn);
        assert!(small.found.starts_with("208 KiB of 4 MiB (net.core.rmem_max "), "{}", small.found);
        assert!(small.advice.unwrap().contains("net.core.rmem_max=4194304"));
    }
}
