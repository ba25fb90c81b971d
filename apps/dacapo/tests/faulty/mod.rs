//! What the tests of faults share: transfers, saved files, how long contact may be lost.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use crate::common::{Finished, LONG, Place, Running, wait_until};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// What is added to `serve`, `play`, `send` and `recv`, so that a peer that is gone is given up
/// soon after contact is lost.
pub fn give_up_args() -> &'static [&'static str] {
    &["--give-up", "1s"]
}

/// The variable that names the failpoint at which a process ends.
pub const FAILPOINT: &str = "DACAPO_FAILPOINT";

/// The variable that names system calls that fail.
pub const SYS_FAULTS: &str = "DACAPO_SYS_FAULTS";

/// What a shell says of a process that SIGKILL has ended.
pub const KILLED: Option<i32> = Some(137);

/// Faults are there in debug builds only; says so where there are none.
pub fn are_there() -> bool {
    if !cfg!(debug_assertions) {
        dacapo_base::skip("release builds have no faults");
    }
    cfg!(debug_assertions)
}

/// A command of the program with what is added to all of its kind, and perhaps a fault.
pub fn start(place: &Place, args: &[&str], fault: Option<(&str, &str)>) -> Running {
    let mut all = args.to_vec();
    if ["serve", "play", "send", "recv"].contains(&args[0]) {
        all.extend(give_up_args());
    }
    let mut command = place.command(&all);
    command.envs(fault);
    place.start_command(command)
}

/// Where a receiver listens.
pub fn address(run: &Running) -> String {
    let text = || run.out();
    assert!(wait_until(LONG, || text().contains("}\n")), "it does not listen:\n{}", run.err());
    let event: Value = serde_json::from_str(text().lines().next().unwrap()).unwrap();
    event["addresses"][0].as_str().unwrap().to_owned()
}

/// The events of this kind that a process has printed as JSON.
pub fn events(text: &str, kind: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.filter(|event: &Value| event["event"] == kind).collect()
}

/// A port at which nobody listens, neither UDP nor TCP.
pub fn free_port() -> u16 {
    loop {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Bytes none of which is zero, so that no stretch is left as a hole.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 | 1).collect()
}

/// A SHA-256 as it is printed.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names in a folder, hidden ones too; none where there is no folder.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What a process says of itself when it fails: not nothing, and no panic.
pub fn fails_typed(run: &Finished) {
    assert!(matches!(run.code, Some(1 | 3 | 6)), "code {:?}, {}", run.code, run.all());
    assert!(!run.err.contains("panicked"), "{}", run.all());
    assert!(run.err.contains("dacapo: "), "no word of why: {}", run.all());
}

/// A file of media that may have been cut off: absent, empty, or readable.
pub fn is_readable_or_nothing(place: &Place, path: &Path) {
    if fs::metadata(path).map_or(0, |found| found.len()) == 0 {
        return;
    }
    let run = place.run(&["inspect", "--json", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{} is not readable: {}", path.display(), run.all());
}

/// Every ledger in what `play --json` has printed closes, and nothing is unknown.
pub fn ledgers_close(run: &Finished) -> Value {
    let json: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
    for flow in json["flows"].as_array().unwrap() {
        let account = &flow["account"];
        assert_eq!(account["closes"], true, "{flow}");
        assert_eq!(account["units_unknown"], 0, "{flow}");
    }
    json
}
