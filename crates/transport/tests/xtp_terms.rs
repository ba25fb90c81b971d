//! What is known of a flow reaches XTP: its first packet, as it is on the wire.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

use dacapo_base::{Random, Time};
use dacapo_packet::Pool;
use dacapo_transport::stream::StreamParams;
use dacapo_transport::xtp::{Config, HEAD_LEN, Mode, Xtp};
use dacapo_transport::{StreamTransport, Transport};
use dacapo_xtp::wire::{Body, Frame, Limits, Options};
use std::net::UdpSocket;
use std::time::Duration;

/// Options and limits of the packet by which a stream is opened.
fn first(mode: Mode, terms: StreamParams) -> (Options, Option<Limits>) {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let remote = listener.local_addr().unwrap();
    let random = Random::from_number(1);
    let mut dialer = Xtp::dial(remote, [7; 16], mode, &terms, random, &Config::default()).unwrap();
    let mut pool = Pool::new(1 << 20);
    dialer.recv(Time::ZERO, &mut pool, &mut Vec::new());
    assert!(dialer.poll_stream().is_none());
    let mut buffer = [0; 2_000];
    let len = listener.recv(&mut buffer).unwrap();
    let frame = Frame::open(&buffer[HEAD_LEN..len]).unwrap();
    let Body::First(_, traffic, _) = frame.body().unwrap() else { panic!("no FIRST") };
    (frame.header.options, traffic.limits)
}

#[test]
fn a_flow_of_which_nothing_is_known_is_checked_and_has_no_limit() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let (options, limits) = first(mode, StreamParams::default());
        assert!(!options.has_any(Options::NOCHECK | Options::SORT), "{mode:?}");
        assert_eq!(limits.map_or(0, |limits| limits.out_rate), 0, "{mode:?}");
        assert_eq!(options.has(Options::NOERR), mode == Mode::Datagrams, "{mode:?}");
    }
}

#[test]
fn a_bound_is_a_rate_and_a_check_above_saves_one_below() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let terms = StreamParams {
            bound_bps: 8_000_000,
            is_checked: true,
            priority: 5,
            ..StreamParams::default()
        };
        let (options, limits) = first(mode, terms);
        assert!(options.has(Options::NOCHECK) && options.has(Options::SORT), "{mode:?}");
        let limits = limits.unwrap();
        // An eighth more than the bound, in bytes.
        assert!(limits.out_rate.abs_diff(1_125_000) < 15_000, "{mode:?}: {limits:?}");
        assert!(limits.out_burst >= 11_250, "{mode:?}: {limits:?}");
    }
}
