//! The judge: tshark reads packets that were written here.
//!
//! "Not malformed" is too weak, of 35 packets that are wrong tshark says so of 5. So every frame
//! must be XTP, have a checksum that tshark calls good, and no line of the tree may complain.
//!
//! The dissector of 4.0.17 takes a null address for 16 bytes, so packets with one are not shown to
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

const COMPLAINTS: [&str; 6] =
    ["bogus", "Unsupported", "Unknown", "incorrect", "Malformed", "Expert Info"];
/// A capture of IP packets without a frame around them.
const LINK_TYPE_RAW: u32 = 101;
const PROTOCOL_XTP: u8 = 36;

/// Whether there is a tshark; says so when there is none, and the test proves nothing.
pub fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output();
    let found = found.is_ok_and(|it| it.status.success());
    if !found {
        dacapo_base::skip("tshark is not installed");
    }
    found
}

/// Has tshark read the packets, as the payload of IPv4 with protocol 36.
pub fn judge<'a>(name: &str, packets: impl IntoIterator<Item = &'a [u8]>) {
    let path = write(name, packets);
    judge_file(&path, &[]);
    std::fs::remove_file(path).unwrap();
}

/// Has tshark read a capture; `args` tell it more. Gives the count of packets.
pub fn judge_file(path: &Path, args: &[&str]) -> usize {
    let shown = path.display();
    let count = fields(path, args).lines().count();
    assert!(count > 0, "{shown}: nothing to judge");
    let faulty = ["-Y", "!(xtp && xtp.checksum.status == 1)"];
    let faulty = fields(path, &[args, &faulty].concat());
    assert_eq!(faulty, "", "frames of {shown} that are no XTP or sum wrong");
    // Of address formats the dissector knows IPv4's only, and takes all for as long.
    let readable = ["-O", "xtp", "-Y", "!(xtp.aseg.aformat == 6)"];
    let tree = tshark(path, &[args, &readable].concat());
    let is_complaint = |line: &&str| COMPLAINTS.iter().any(|word| line.contains(word));
    let complaints: Vec<&str> = tree.lines().filter(is_complaint).collect();
    assert!(complaints.is_empty(), "{shown}: {complaints:#?}");
    count
}

/// What tshark shows of each packet: the columns of `names`, separated by tabs.
pub fn shown<'a>(
    name: &str,
    packets: impl IntoIterator<Item = &'a [u8]>,
    names: &[&str],
) -> Vec<String> {
    let path = write(name, packets);
    let args: Vec<&str> = names.iter().flat_map(|name| ["-e", name]).collect();
    let lines = tshark(&path, &[&["-T", "fields"], &args[..]].concat());
    std::fs::remove_file(path).unwrap();
    lines.lines().map(str::to_owned).collect()
}

fn fields(path: &Path, args: &[&str]) -> String {
    tshark(path, &[args, &["-T", "fields", "-e", "frame.number"]].concat())
}

fn tshark(path: &Path, args: &[&str]) -> String {
    let output = Command::new("tshark").arg("-r").arg(path).args(args).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark {args:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A capture in the form of libpcap.
fn write<'a>(name: &str, packets: impl IntoIterator<Item = &'a [u8]>) -> PathBuf {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, LINK_TYPE_RAW] {
        file.extend_from_slice(&u32::to_le_bytes(word));
    }
    for packet in packets {
        let datagram = ipv4(packet);
        let len = datagram.len() as u32;
        for word in [0, 0, len, len] {
            file.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.extend_from_slice(&datagram);
    }
    let path = std::env::temp_dir().join(format!("dacapo-xtp-{}-{name}.pcap", std::process::id()));
    std::fs::write(&path, file).unwrap();
    path
}

fn ipv4(packet: &[u8]) -> Vec<u8> {
    let len = (20 + packet.len()) as u16;
    let mut head = vec![0x45, 0];
    head.extend_from_slice(&len.to_be_bytes());
    head.extend_from_slice(&[0, 1, 0, 0, 64, PROTOCOL_XTP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    let words = head.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let fold = |sum: u32| (sum & 0xFFFF) + (sum >> 16);
    let check = !(fold(fold(sum)) as u16);
    head[10..12].copy_from_slice(&check.to_be_bytes());
    [&head, packet].concat()
}
