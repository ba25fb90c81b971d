//! `setup`: from nothing to a message that is there and back: a process each time, a connection, or
//! a further session of one.

use super::programs::listed;
use super::table::{Table, curve, set_up, start};
use crate::experiment::Site;
use crate::peers::{Listed, SetUp};

static TCP: Listed = listed("peer-plain", "setup");
static QUINN: Listed = listed("peer-quinn", "setup");
static RESUMED: Listed = listed("peer-quinn", "resume");
static SRT: Listed = listed("peer-srt", "setup");
static CONNECTION: SetUp = SetUp { new: "connection" };
static SESSION: SetUp = SetUp { new: "session" };

/// Who both ends are is proved by `quinn` for one of them, and by dacapo for both.
pub static SETUP: Table = Table {
    id: "setup",
    what: "how long it takes to connect, and for the first 64 bytes to be there and back",
    site: Site::Veth,
    axis: "bytes of the message",
    unit: "B there and back",
    points: &[64.0],
    curves: &[
        curve("tcp", "kernel TCP, nothing proved", "quinn", |x| set_up(&TCP, x as usize)),
        curve("quinn", "quinn, a whole handshake", "quinn", |x| set_up(&QUINN, x as usize)),
        curve("quinn-resumed", "quinn, a session of TLS that is resumed", "quinn", |x| {
            set_up(&RESUMED, x as usize)
        }),
        curve("srt", "SRT in live mode, nothing proved", "quinn", |x| set_up(&SRT, x as usize)),
        curve("ours", "dacapo, an endpoint, a connection and a session", "quinn", |x| {
            set_up(&CONNECTION, x as usize)
        }),
        curve("ours-session", "dacapo, a further session of a connection", "quinn", |x| {
            set_up(&SESSION, x as usize)
        }),
        curve("tcp-start", "kernel TCP, a process from start to end", "quinn-start", |x| {
            start(&TCP, x as usize)
        }),
        curve("quinn-start", "quinn, a process from start to end", "quinn-start", |x| {
            start(&QUINN, x as usize)
        }),
        curve("srt-start", "SRT, a process from start to end", "quinn-start", |x| {
            start(&SRT, x as usize)
        }),
        curve("ours-start", "dacapo, a process from start to end", "quinn-start", |x| {
            start(&CONNECTION, x as usize)
        }),
    ],
    controls: &[("tcp-64", "p50_us"), ("quinn-64", "cpu_us")],
    figures: &[
        ("p50_us", "p50 µs", false, true),
        ("p99_us", "p99 µs", false, true),
        ("per_s", "a second, one after the other", true, true),
        ("cpu_us", "CPU µs of both ends, each", false, true),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[
        ("ours-64", "p50_us", "connect to first byte there and back × quinn", false, false, 1.5),
        (
            "ours-session-64",
            "p50_us",
            "a further session between the same hosts",
            true,
            false,
            150.0,
        ),
        ("ours-session-64", "per_s", "sessions a second, opened and closed", true, true, 1_000.0),
    ],
    link: None,
    rounds: 7,
    seconds: 1.5,
};
