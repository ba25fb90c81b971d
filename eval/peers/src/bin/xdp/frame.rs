//! Frames by hand: Ethernet (IEEE 802.3), IPv4 (RFC 791) without options, UDP (RFC 768).
//!
//! ```text
//!   0            14           34      42
//!   | to from IP | ... UDP .. | ports | payload, which begins with its number
//! ```
//!
//! UDP's checksum is left out (0), which IPv4 allows; bare UDP over veth does without it too, by
//! offload.

use nix::net::if_::if_nametoindex;
use peers::Failure;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Bytes before the payload.
pub const HEAD_LEN: usize = 42;

const LEARN_TRIES: usize = 100;
const LEARN_PAUSE: Duration = Duration::from_millis(10);
/// Where nobody listens, so that only the kernels hear of it.
const DISCARD_PORT: u16 = 9;

type Mac = [u8; 6];

/// From here to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The number of the interface.
    pub interface: u32,
    macs: [Mac; 2],
    ips: [Ipv4Addr; 2],
    port: u16,
}

impl Way {
    /// The way to an address, whose hardware address the kernel is made to learn.
    ///
    /// # Errors
    /// It is not over Ethernet and IPv4, or nobody has the address.
    pub fn to(address: SocketAddr) -> Result<Self, Failure> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((address.ip(), DISCARD_PORT))?;
        socket.send(&[0])?;
        let ips = [ipv4(socket.local_addr()?.ip())?, ipv4(address.ip())?];
        for _ in 0..LEARN_TRIES {
            let table = std::fs::read_to_string("/proc/net/arp")?;
            if let Some((mac, device)) = neighbour(&table, ips[1]) {
                let own = std::fs::read_to_string(format!("/sys/class/net/{device}/address"))?;
                let own = parse_mac(own.trim())
                    .ok_or_else(|| Failure(format!("{device} has no hardware address")))?;
                let interface = if_nametoindex(device)?;
                return Ok(Self { interface, macs: [own, mac], ips, port: address.port() });
            }
            std::thread::sleep(LEARN_PAUSE);
        }
        Err(Failure(format!("cannot run here: no Ethernet leads to {}", address.ip())))
    }

    /// A frame with a payload of so many bytes.
    pub fn frame(&self, payload_len: usize) -> Vec<u8> {
        let [here, there] = self.ips;
        let mut frame = Vec::with_capacity(HEAD_LEN + payload_len);
        frame.extend(self.macs[1]);
        frame.extend(self.macs[0]);
        frame.extend([0x08, 0x00]);
        let mut head = vec![0x45, 0];
        head.extend((28 + payload_len as u16).to_be_bytes());
        head.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        head.extend(here.octets());
        head.extend(there.octets());
        let sum = checksum(&head);
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(head);
        for word in [self.port, self.port, 8 + payload_len as u16, 0] {
            frame.extend(word.to_be_bytes());
        }
        frame.resize(HEAD_LEN + payload_len, 7);
        frame
    }
}

/// Sends a frame back to where it came from: both pairs of addresses are exchanged, which leaves
/// the checksum as it is; the ports are the same.
pub fn turn_around(frame: &mut [u8]) {
    if frame.len() >= HEAD_LEN {
        let (to, rest) = frame.split_at_mut(6);
        to.swap_with_slice(&mut rest[..6]);
        let (from, rest) = frame[26..].split_at_mut(4);
        from.swap_with_slice(&mut rest[..4]);
    }
}

/// The interface that has this address.
///
/// # Errors
/// None has it, or the system says why it cannot be found.
pub fn interface_of(address: SocketAddr) -> Result<u32, Failure> {
    let ip = ipv4(address.ip())?;
    let has_it = |it: &nix::ifaddrs::InterfaceAddress| {
        it.address.and_then(|it| it.as_sockaddr_in().map(|it| it.ip())) == Some(ip)
    };
    let found = nix::ifaddrs::getifaddrs()?.find(has_it);
    let found = found.ok_or_else(|| Failure(format!("no interface has {ip}")))?;
    Ok(if_nametoindex(found.interface_name.as_str())?)
}

fn ipv4(ip: IpAddr) -> Result<Ipv4Addr, Failure> {
    match ip {
        IpAddr::V4(ip) => Ok(ip),
        IpAddr::V6(ip) => Err(Failure(format!("cannot run here: {ip} is not of IPv4"))),
    }
}

/// Hardware address and interface of a neighbour, out of `/proc/net/arp`.
fn neighbour(table: &str, ip: Ipv4Addr) -> Option<(Mac, &str)> {
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, mac, _, device] = words.as_slice() else { return None };
        let is_it = address.parse() == Ok(ip) && *flags == "0x2";
        is_it.then(|| Some((parse_mac(mac)?, *device)))?
    })
}

fn parse_mac(text: &str) -> Option<Mac> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// The checksum of a head of IPv4 (RFC 1071).
fn checksum(head: &[u8]) -> u16 {
    let words = head.chunks_exact(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way() -> Way {
        let ips = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];
        Way { interface: 2, macs: [[1; 6], [2; 6]], ips, port: 21_000 }
    }

    #[test]
    fn a_frame_says_how_long_it_is_and_its_head_sums_to_nothing() {
        let frame = way().frame(64);
        assert_eq!(frame.len(), HEAD_LEN + 64);
        assert_eq!(frame[..14], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 92);
        assert_eq!(u16::from_be_bytes([frame[38], frame[39]]), 72);
        assert_eq!(checksum(&frame[14..34]), 0);
    }

    #[test]
    fn a_frame_that_is_turned_around_is_the_one_of_the_other_end() {
        let Way { interface, macs: [a, b], ips: [c, d], port } = way();
        let other = Way { interface, macs: [b, a], ips: [d, c], port };
        let mut frame = way().frame(64);
        turn_around(&mut frame);
        assert_eq!(frame, other.frame(64));
        turn_around(&mut [0; HEAD_LEN - 1]);
    }

    #[test]
    fn a_neighbour_is_read_from_the_kernels_table_once_it_is_known() {
        let table = "IP address HW type Flags HW address Mask Device\n\
            10.9.0.3 0x1 0x0 00:00:00:00:00:00 * veth0\n\
            10.9.0.2 0x1 0x2 0a:01:02:03:04:ff * veth0\n";
        let known = neighbour(table, Ipv4Addr::new(10, 9, 0, 2));
        assert_eq!(known, Some(([10, 1, 2, 3, 4, 255], "veth0")));
        assert_eq!(neighbour(table, Ipv4Addr::new(10, 9, 0, 3)), None);
        assert_eq!(neighbour("", Ipv4Addr::LOCALHOST), None);
    }
}
