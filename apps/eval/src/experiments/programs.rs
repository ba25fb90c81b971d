//! Programs that several experiments run.

use crate::peers::{Dacapo, Listed, Which};

/// A program of `eval/peers`, and the first word of its command line.
pub const fn listed(program: &'static str, kind: &'static str) -> Listed {
    Listed { program, kind }
}

pub static TCP: Listed = listed("peer-plain", "tcp");
pub static UDP: Listed = listed("peer-plain", "udp");
pub static QUINN: Listed = listed("peer-quinn", "stream");
pub static QUINN_BBR: Listed = listed("peer-quinn", "stream-bbr");
pub static SRT_FILE: Listed = listed("peer-srt", "file");
pub static ZMQ: Listed = listed("peer-zmq", "tcp");
pub static ZENOH_TCP: Listed = listed("peer-zenoh", "tcp");

pub const UDP_OPTIONS: &[&str] = &["--transport", "udp", "--graph", "segment,sequence"];
pub const TCP_OPTIONS: &[&str] = &["--transport", "tcp"];
pub static OURS_UDP: Dacapo = Dacapo::new(Which::Now, UDP_OPTIONS);
pub static OURS_TCP: Dacapo = Dacapo::new(Which::Now, TCP_OPTIONS);
