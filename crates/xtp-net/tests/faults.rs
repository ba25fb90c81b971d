//! Calls of the system that fail: what can go on goes on, what cannot is said, and sums close.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Echo, closes, host, random_bytes, send_and_read_back, transact};
use dacapo_sys::faults;
use dacapo_xtp_net::{CallError, Fault, Host, InternetConfig, Udp};
use std::time::Duration;

fn udp() -> Host {
    host(Udp::bind(&InternetConfig::new("127.0.0.1:0".parse().unwrap())).unwrap())
}

/// Faults of this thread until the end of the value: the other end is in another thread.
struct Faults;

impl Faults {
    fn new(text: &str) -> Self {
        faults::plan(&faults::parse(text).unwrap());
        Self
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        faults::plan(&[]);
    }
}

#[test]
fn a_stream_arrives_whole_whatever_call_fails_now_and_then() {
    for text in [
        "sendmsg:ENOBUFS:1/3",
        "sendmsg:EAGAIN:1/3",
        "sendmsg:EINTR:1/2",
        "sendmsg:PARTIAL:1/2",
        "sendmsg:ECONNREFUSED:1/3",
        "sendmsg:EPERM:1/3",
        "recvmsg:ECONNREFUSED:1/3",
        "recvmsg:EMSGSIZE:1/3",
        "recvmsg:EIO:1/3",
        "recvmsg:EINTR:1/2",
        "wait:EINTR:1/2",
    ] {
        let echo = Echo::new(udp());
        let mut near = udp();
        let bytes = random_bytes(1, 200_000);
        let planned = Faults::new(text);
        // A host that always has something to do waits for nothing: here it waits.
        (0..2).for_each(|_| near.turn(Duration::from_millis(1)).unwrap());
        let back = send_and_read_back(&mut near, echo.address, &bytes);
        assert!(faults::hits() > 0, "{text}: it never struck");
        drop(planned);
        assert!(back == bytes, "{text}");
        closes(&near);
        let counters = near.counters();
        let waits = text.contains("ENOBUFS") || text.contains("EAGAIN");
        assert_eq!(waits, counters.blocked > 0, "{text}: {counters:?}");
        let told: u64 = counters.faults_told.iter().sum();
        let is_told = text.starts_with("recvmsg") && !text.contains("EINTR");
        assert_eq!(is_told, told > 0, "{text}: {counters:?}");
        echo.stop();
    }
}

#[test]
fn a_call_that_always_fails_is_said_before_the_peer_is_waited_for() {
    for (text, expected) in [
        ("sendmsg:EPERM:1/1", Fault::Denied),
        ("sendmsg:EMSGSIZE:1/1", Fault::TooLong { mtu: None }),
        ("sendmsg:ENETUNREACH:1/1", Fault::Unreachable),
        ("sendmsg:EIO:1/1", Fault::Other(5)),
    ] {
        let echo = Echo::new(udp());
        let mut near = udp();
        let planned = Faults::new(text);
        let error = transact(&mut near, echo.address, b"request").unwrap_err();
        drop(planned);
        match &error {
            CallError::Unreachable(fault) => assert_eq!(*fault, expected, "{text}"),
            other => panic!("{text}: {other}"),
        }
        assert_eq!(near.counters().packets_dropped[expected.index()], 1, "{text}");
        closes(&near);
        echo.stop();
    }
}
