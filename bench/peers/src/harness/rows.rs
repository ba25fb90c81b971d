//! The rows of the table: which program, how it is told what to do, what it is compared with.
//!
//! To add a peer: a program with the command line of `peers::Order`, and rows here. Invariant: a
//! row stands behind its control, so that the two run within seconds of each other.

/// What a row measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How much goes through in one direction.
    Bulk,
    /// How long 64 bytes take.
    Latency,
}

/// How an end waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Asleep.
    Block,
    /// Looking again and again.
    Spin,
}

impl Wait {
    /// The word for it on every command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Spin => "spin",
        }
    }
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program of this folder, and its kind.
    Peer(&'static str, &'static str),
    /// `dacapo bench net`, and its options.
    Dacapo(&'static [&'static str]),
    /// `dacapo bench xtp`, the window at both ends, and options of the near one.
    Xtp(&'static str, &'static [&'static str]),
}

impl Program {
    /// Whether it is a measurement of the command `dacapo`.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Dacapo(_) | Self::Xtp(..))
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    pub measure: Measure,
    pub program: Program,
    /// Bytes of a message.
    pub size: usize,
    pub wait: Wait,
    /// Whether nothing may be lost; otherwise the table shows how much was.
    pub is_reliable: bool,
    /// The row that its ratios are to.
    pub control: Option<&'static str>,
}

/// Rows whose disturbance disturbs a round.
pub const CONTROLS: [&str; 2] = ["gso", "tcp"];

const fn bulk(
    name: &'static str,
    what: &'static str,
    program: Program,
    size: usize,
    is_reliable: bool,
) -> Row {
    let (measure, wait) = (Measure::Bulk, Wait::Block);
    let control = Some(if is_reliable { "tcp" } else { "gso" });
    Row { name, what, measure, program, size, wait, is_reliable, control }
}

/// The same with another row to compare it with.
const fn beside(control: &'static str, row: Row) -> Row {
    Row { control: Some(control), ..row }
}

const fn latency(name: &'static str, what: &'static str, program: Program, wait: Wait) -> Row {
    let control = Some(match wait {
        Wait::Block => "udp-64",
        Wait::Spin => "udp-64-spin",
    });
    let (measure, size) = (Measure::Latency, 64);
    Row { name, what, measure, program, size, wait, is_reliable: true, control }
}

const PLAIN: &str = "peer-plain";
const QUINN: &str = "peer-quinn";
const ZENOH: &str = "peer-zenoh";
const SRT: &str = "peer-srt";
const AERON: &str = "peer-aeron";
const ZMQ: &str = "peer-zmq";
const URING: &str = "peer-uring";
const XDP: &str = "peer-xdp";
const OURS_UDP: Program = Program::Dacapo(&["--transport", "udp", "--graph", "segment,sequence"]);
const OURS_TCP: Program = Program::Dacapo(&["--transport", "tcp"]);
const OURS_QUIC: Program = Program::Dacapo(&["--transport", "quic"]);
const OURS_QUIC_DATAGRAM: Program =
    Program::Dacapo(&["--transport", "quic-datagram", "--graph", "segment,sequence"]);

const XTP: Program = Program::Xtp("2MiB", &["--mode", "stream"]);
const XTP_NOCHECK: Program = Program::Xtp("2MiB", &["--mode", "stream", "--no-check"]);

/// Every row, in the order of a round.
pub const ROWS: [Row; 38] = [
    bulk("gso", "bare UDP with GSO and GRO", Program::Peer(PLAIN, "gso"), 1472, false),
    bulk("ours-udp", "dacapo udp {sequence, segment}", OURS_UDP, 60 << 10, false),
    bulk("tcp", "kernel TCP", Program::Peer(PLAIN, "tcp"), 128 << 10, true),
    bulk("ours-tcp", "dacapo over tcp", OURS_TCP, 60 << 10, true),
    bulk("xtp", "XTP over udp, checksum", XTP, 64 << 10, true),
    bulk("xtp-nocheck", "XTP over udp, NOCHECK", XTP_NOCHECK, 64 << 10, true),
    bulk("gso-uring", "the same by io_uring", Program::Peer(URING, "gso"), 1472, false),
    bulk("udp", "UDP one by one", Program::Peer(PLAIN, "udp"), 1472, false),
    bulk("udp-xdp", "datagrams by AF_XDP", Program::Peer(XDP, "udp"), 1472, false),
    bulk("quinn", "quinn, one stream (TLS)", Program::Peer(QUINN, "stream"), 60 << 10, true),
    beside("quinn", bulk("ours-quic", "dacapo over quic (TLS)", OURS_QUIC, 60 << 10, true)),
    bulk("quinn-dgram", "quinn, datagrams (TLS)", Program::Peer(QUINN, "datagram"), 1400, false),
    beside(
        "quinn-dgram",
        bulk(
            "ours-quic-datagram",
            "dacapo quic-datagram (TLS)",
            OURS_QUIC_DATAGRAM,
            60 << 10,
            false,
        ),
    ),
    bulk("srt-file", "SRT, file mode", Program::Peer(SRT, "file"), 1456, true),
    bulk("srt-live", "SRT, live mode", Program::Peer(SRT, "live"), 1456, true),
    bulk("zmq", "ZeroMQ over tcp", Program::Peer(ZMQ, "tcp"), 64 << 10, true),
    bulk("zenoh-tcp", "Zenoh over tcp", Program::Peer(ZENOH, "tcp"), 8 << 10, true),
    bulk("zenoh-udp", "Zenoh over udp", Program::Peer(ZENOH, "udp"), 8 << 10, false),
    bulk("aeron", "Aeron over udp", Program::Peer(AERON, "udp"), 1440, true),
    latency("udp-64", "UDP", Program::Peer(PLAIN, "udp"), Wait::Block),
    latency("ours-udp-64", "dacapo udp {sequence, segment}", OURS_UDP, Wait::Block),
    latency("udp-64-spin", "UDP", Program::Peer(PLAIN, "udp"), Wait::Spin),
    latency("ours-udp-64-spin", "dacapo udp {sequence, segment}", OURS_UDP, Wait::Spin),
    latency("udp-64-uring", "UDP by io_uring", Program::Peer(URING, "udp"), Wait::Block),
    latency("udp-64-uring-spin", "UDP by io_uring", Program::Peer(URING, "udp"), Wait::Spin),
    latency("udp-64-xdp", "UDP by AF_XDP", Program::Peer(XDP, "udp"), Wait::Block),
    latency("udp-64-xdp-spin", "UDP by AF_XDP", Program::Peer(XDP, "udp"), Wait::Spin),
    latency("tcp-64", "kernel TCP", Program::Peer(PLAIN, "tcp"), Wait::Block),
    latency("ours-tcp-64", "dacapo over tcp", OURS_TCP, Wait::Block),
    latency("quinn-64", "quinn, one stream (TLS)", Program::Peer(QUINN, "stream"), Wait::Block),
    beside("quinn-64", latency("ours-quic-64", "dacapo over quic (TLS)", OURS_QUIC, Wait::Block)),
    latency(
        "quinn-dgram-64",
        "quinn, datagrams (TLS)",
        Program::Peer(QUINN, "datagram"),
        Wait::Block,
    ),
    beside(
        "quinn-dgram-64",
        latency(
            "ours-quic-datagram-64",
            "dacapo quic-datagram (TLS)",
            OURS_QUIC_DATAGRAM,
            Wait::Block,
        ),
    ),
    latency("srt-live-64", "SRT, live mode", Program::Peer(SRT, "live"), Wait::Block),
    latency("zmq-64", "ZeroMQ over tcp", Program::Peer(ZMQ, "tcp"), Wait::Block),
    latency("zenoh-tcp-64", "Zenoh over tcp", Program::Peer(ZENOH, "tcp"), Wait::Block),
    latency("zenoh-udp-64", "Zenoh over udp", Program::Peer(ZENOH, "udp"), Wait::Block),
    latency("aeron-64-spin", "Aeron over udp", Program::Peer(AERON, "udp"), Wait::Spin),
];

/// The row of that name.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// The names of a row, of its control, and of the control of that, up to one that is its own.
fn chain(name: &str) -> impl Iterator<Item = &'static str> {
    let control = |below: &&'static Row| {
        below.control.and_then(row).filter(|control| control.name != below.name)
    };
    std::iter::successors(row(name), control).map(|row| row.name)
}

/// The rows to run: all, or those asked for with their controls and those that judge the rounds.
///
/// # Errors
/// The name that no row has.
pub fn selected(only: &[String]) -> Result<Vec<&'static Row>, peers::Failure> {
    if let Some(name) = only.iter().find(|name| row(name).is_none()) {
        let text = format!("`{name}` is no row; `--list` shows them");
        return Err(peers::Failure(text));
    }
    let names: Vec<&str> = only.iter().flat_map(|name| chain(name)).chain(CONTROLS).collect();
    let is_meant = |row: &&Row| only.is_empty() || names.contains(&row.name);
    Ok(ROWS.iter().filter(is_meant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_controls_are_rows_of_the_same_measure() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
            let control = row.control.and_then(self::row).unwrap();
            assert_eq!(control.measure, row.measure, "{}", row.name);
            assert_eq!(control.wait, row.wait, "{}", row.name);
        }
    }

    #[test]
    fn a_row_alone_brings_its_control_and_those_of_the_rounds() {
        let names = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            selected(&only).unwrap().iter().map(|row| row.name).collect()
        };
        assert_eq!(names(&["ours-udp-64"]), ["gso", "tcp", "udp-64", "ours-udp-64"]);
        assert_eq!(names(&["ours-quic-64"])[2..], ["udp-64", "quinn-64", "ours-quic-64"]);
        assert_eq!(names(&[]).len(), ROWS.len());
        assert!(selected(&["nothing".to_owned()]).is_err());
    }
}
