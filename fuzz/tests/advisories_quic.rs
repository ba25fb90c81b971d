//! Advisories of QUIC stacks and of others who answer strangers, driven through a core of ours.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{check_empty, check_held, check_serves, let_in, serving, somebody};
use dacapo_fuzz::known;
use dacapo_fuzz::oracle::limit;
use dacapo_fuzz::rig::balance::Balance;
use dacapo_fuzz::rig::packet::{self, crypto, var};
use dacapo_fuzz::rig::peer::Peer;
use dacapo_fuzz::rig::{Rig, Sent};
use std::time::Duration;

/// Half-open connections that a core admits without a proof of the address.
const UNPROVED_MAX: u16 = 16;

/// Types of frames that nobody has defined, short and long.
fn unknown_frames() -> Vec<Vec<u8>> {
    let kinds = [0x1F, 0x21, 0x3F, 0x40, 0x30, 0xFF, 0x4021, 0x1234_5678, (1 << 62) - 1];
    kinds.iter().map(|&kind| [var(kind), vec![0; 24]].concat()).collect()
}

/// RUSTSEC-2023-0063 (quinn-proto): a frame of unknown type was a panic.
#[test]
fn adv_rustsec_2023_0063_unknown_frame_types() {
    for frames in unknown_frames() {
        let mut rig = serving();
        rig.handle(somebody(1), &packet::initial(&[9; 8], &[7; 8], &[], 0, &frames));
        rig.settle();
        let (mut peer, ..) = let_in(&mut rig, 66);
        let bytes = peer.sealed(&frames).expect("it is let in");
        rig.handle_frames(peer.control, &bytes, &frames);
        peer.talk(&mut rig);
        assert!(peer.lost.is_some(), "a frame {frames:x?} is taken");
        check_serves(&mut rig, 67);
        check_empty(&mut rig);
    }
}

/// RUSTSEC-2024-0373 (quinn-proto): `Endpoint::retry` and what follows could panic.
#[test]
fn adv_rustsec_2024_0373_retry_again_and_again() {
    let mut rig = serving();
    for number in 0..UNPROVED_MAX {
        let id = [number as u8 + 100; 8];
        rig.handle(somebody(number), &packet::initial(&id, &[7; 8], &[], 0, &[1]));
    }
    rig.settle();
    rig.take_sent();
    // From here on addresses must be proved: the same beginning is asked to prove it each time.
    let mut peer = Peer::client(&rig, 66, 5);
    let first = peer.begin(&rig);
    for _ in 0..20 {
        rig.handle(peer.control, &first);
        rig.settle();
    }
    let retries = rig.take_sent();
    assert_eq!(retries.len(), 20, "each is answered, and nothing kept");
    let token = retry_token(&retries[0]).expect("a Retry has a token");
    for at in 0..token.len() {
        let mut altered = token.clone();
        altered[at] ^= 1;
        rig.handle(peer.control, &packet::initial(&[3; 8], &[7; 8], &altered, 0, &[1]));
    }
    for len in 0..token.len() {
        rig.handle(peer.control, &packet::initial(&[4; 8], &[7; 8], &token[..len], 0, &[1]));
    }
    rig.settle();
    rig.take_sent();
    check_serves(&mut rig, 67);
    rig.pass(Duration::from_secs(30));
    rig.take_sent();
    check_empty(&mut rig);
}

/// The token of a Retry packet: what lies between its ids and the tag of 16 bytes.
fn retry_token(sent: &Sent) -> Option<Vec<u8>> {
    let bytes = &sent.bytes;
    let (dcid_len, rest) = bytes.get(5..)?.split_first()?;
    let (scid_len, rest) = rest.get(usize::from(*dcid_len)..)?.split_first()?;
    let rest = rest.get(usize::from(*scid_len)..)?;
    rest.get(..rest.len().checked_sub(16)?).map(<[u8]>::to_vec)
}

/// The first message of a client of the stand-in for TLS, with these transport parameters.
fn hello(params: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for field in [&[1_u8; 32][..], b"dacapo", b"dacapo/1", params] {
        body.extend_from_slice(&(field.len() as u16).to_be_bytes());
        body.extend_from_slice(field);
    }
    let len = (body.len() + 3).max(300);
    body.resize(len - 3, 0);
    [&[1], &(len as u16).to_be_bytes()[..], &body].concat()
}

/// Transport parameters as a client says them: initial_source_connection_id and some figures.
fn parameters() -> Vec<u8> {
    let mut params = Vec::new();
    for (id, value) in [(0x0F, vec![7; 8]), (4, var(262_144)), (5, var(65_536)), (8, var(100))] {
        packet::write_var(id, &mut params);
        packet::write_var(value.len() as u64, &mut params);
        params.extend_from_slice(&value);
    }
    params
}

/// RUSTSEC-2026-0037 (quinn-proto): a cut number in the transport parameters was an `unwrap` that
/// anybody could reach with one packet.
#[test]
fn adv_rustsec_2026_0037_truncated_transport_parameters() {
    let whole = parameters();
    let mut all: Vec<Vec<u8>> = (0..=whole.len()).map(|len| whole[..len].to_vec()).collect();
    for first in [0x40, 0x80, 0xC0, 0xFF] {
        all.push([whole.as_slice(), &[first]].concat());
        all.push([whole.as_slice(), &[0x05, 0x01, first]].concat());
        all.push([whole.as_slice(), &[0x05, first]].concat());
    }
    let mut taken = 0;
    for params in all {
        let mut rig = serving();
        let frames = crypto(0, &hello(&params));
        rig.handle(somebody(1), &packet::initial(&[9; 8], &[7; 8], &[], 0, &frames));
        rig.settle();
        taken += usize::from(rig.core().connection_count() == 1);
        check_serves(&mut rig, 67);
    }
    assert!(taken >= 1, "whole parameters are taken, so the others came as far");
}

/// RUSTSEC-2026-0185 (quinn-proto): fragments of a stream that come out of order were kept at the
/// price of the datagrams that they came in.
#[test]
fn adv_rustsec_2026_0185_scattered_fragments_of_a_stream() {
    check_serves(&mut scattered(), 67);
}

/// A core that was given them.
fn scattered() -> Rig {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let before = rig.meter;
    // Every second byte of the window of a stream, backwards, a few in a datagram.
    let offsets: Vec<u64> = (1..32_000).map(|at| 2 * at).rev().collect();
    for some in offsets.chunks(100) {
        let frames: Vec<u8> = some.iter().flat_map(|&at| packet::stream(0, at, &[7])).collect();
        let bytes = peer.sealed(&frames).expect("it is let in");
        rig.handle_frames(peer.control, &bytes, &frames);
        rig.settle();
        rig.take_sent();
        check_held(&rig, before, 1 << 20);
    }
    rig
}

/// What is allowed for that is what it takes, and no more than a tenth above it.
#[test]
fn known_the_churn_of_scattered_fragments_is_as_wide_as_it_was_measured() {
    let most = scattered().meter.churn_max.max(scattered_handshake().meter.churn_max);
    let known = known::CHURN_BYTES;
    assert!(most <= known && known <= most + most / 10, "{most} bytes, {known} are allowed");
}

/// The same by CRYPTO frames, for which nobody need be let in; GHSA-892h-r6cr-53g4 (Go) is the
/// flood of them afterwards.
#[test]
fn adv_ghsa_892h_crypto_flood_before_and_after() {
    let mut rig = scattered_handshake();
    rig.take_sent();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let before = rig.meter;
    for number in 0..2_000 {
        let bytes = peer.sealed(&crypto(number * 500, &[2; 400])).expect("it is let in");
        rig.handle(peer.control, &bytes);
        rig.settle();
        rig.take_sent();
        check_held(&rig, before, 256 << 10);
    }
    check_serves(&mut rig, 67);
}

/// A core that was given fragments of a handshake.
fn scattered_handshake() -> Rig {
    let mut rig = serving();
    let before = rig.meter;
    for number in 0..200_u32 {
        let at = 4_000 + 40 * u64::from(number);
        let frames: Vec<u8> = (0..100).flat_map(|n| crypto(at + 2 * (n % 20), &[1])).collect();
        let bytes = packet::initial(&[9; 8], &[7; 8], &[], number, &frames);
        rig.handle_frames(somebody(1), &bytes, &frames);
        rig.settle();
        check_held(&rig, before, 320 << 10);
    }
    rig
}

/// GHSA-9q54-f358-3fqf (s2n-quic): one datagram of a stranger caused 7,800 times its size.
#[test]
fn adv_ghsa_9q54_memory_for_a_datagram_of_a_stranger() {
    let first = packet::initial(&[9; 8], &[7; 8], &[], 0, &crypto(0, &hello(&parameters())));
    let version = [&[0xC3, 0xFA, 0xCE, 0xB0, 0x0C, 8], &[1; 8][..], &[8], &[2; 8], &[0; 1_180]];
    let stranger = [&[0x43], &[5; 60][..]].concat();
    for bytes in [first, version.concat(), stranger, vec![0x80; 1_200], vec![0x81; 1_200]] {
        let mut rig = serving();
        // The oracle of the rig is asked for every datagram.
        rig.handle(somebody(1), &bytes);
        let most = limit(bytes.len());
        assert!(rig.meter.call_max <= most, "{:?}", rig.meter);
    }
}

/// The strict form of the same: what one datagram allocates, and what a table of connections costs.
#[test]
fn known_a_datagram_of_a_stranger_costs_no_more_than_the_oracle_allows() {
    let mut rig = serving();
    for number in 0..UNPROVED_MAX {
        let id = [number as u8; 8];
        rig.handle(somebody(number), &packet::initial(&id, &[7; 8], &[], 0, &[1]));
        assert!(rig.meter.call_max <= limit(1_200), "connection {number}: {:?}", rig.meter);
    }
    assert!(rig.meter.live <= 512 << 10, "{:?}", rig.meter);
}

/// Ours, found by `core_quic`: a first packet that closes its connection left it in the table for
/// good, because quinn-proto 0.11.19 sets no timer for it.
#[test]
fn adv_quinn_0_11_19_a_first_packet_that_closes_leaves_nothing() {
    for frames in [vec![0x1C, 0, 0, 0], vec![0x1D, 0, 0], vec![0x1C, 0, 4, 0, 1, 1]] {
        let mut rig = serving();
        for number in 0..200_u8 {
            let first = packet::initial(&[number; 8], &[7; 8], &[], 0, &frames);
            rig.handle(somebody(number.into()), &first);
            rig.settle();
        }
        rig.take_sent();
        check_empty(&mut rig);
    }
}

/// Ours: closed connections that never got through do not count for the limit of strangers.
#[test]
fn known_connections_that_are_closed_half_way_are_bounded_too() {
    let mut rig = serving();
    for number in 0..400_u16 {
        let id = [&number.to_be_bytes()[..], &[1; 6]].concat();
        let from = somebody(number);
        rig.handle(from, &packet::initial(&id, &[7; 8], &[], 0, &[1]));
        // A frame that must not be there closes it.
        rig.handle(from, &packet::initial(&id, &[7; 8], &[], 1, &[0x1E]));
        rig.settle();
    }
    let count = rig.core().connection_count();
    assert!(count <= 2 * usize::from(UNPROVED_MAX), "{count} connections of strangers");
}

/// Ours, found by `core_quic`: one frame for the last stream opens all before it, each with state.
/// The oracle is asked for each frame, and they may be opened a part at a time only.
#[test]
fn adv_rfc9000_3_2_a_frame_for_the_last_stream_opens_all() {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let before = rig.meter;
    let mut opened = 1;
    loop {
        let streams: Vec<_> = std::iter::from_fn(|| peer.open()).collect();
        let Some(last) = streams.last() else { break };
        opened += streams.len();
        peer.push(*last, &[0]);
        // It is told of more with an acknowledgement that waits a little.
        peer.talk(&mut rig);
        rig.pass(Duration::from_millis(30));
        peer.talk(&mut rig);
        check_held(&rig, before, 256 << 10);
    }
    assert!((870..=886).contains(&opened), "{opened} streams");
    check_serves(&mut rig, 67);
}

/// Beginnings of real clients that never go on, each said once or twice.
fn half_begun() -> Balance {
    let (mut rig, mut balance) = (serving(), Balance::default());
    for number in 0..40_u16 {
        let first = Peer::client(&rig, 1, number.into()).begin(&rig);
        balance.give(&mut rig, somebody(number), &first);
        rig.pass(Duration::from_millis(700));
        balance.collect(&mut rig);
        if number % 2 == 0 {
            balance.give(&mut rig, somebody(number), &first);
        }
    }
    for _ in 0..30 {
        rig.pass(Duration::from_secs(1));
        balance.collect(&mut rig);
    }
    balance
}

/// CVE-2021-38425 (DDS discovery) and the like: somebody's address is flooded in our name.
#[test]
fn adv_cve_2021_38425_amplification_before_the_address_is_proved() {
    half_begun().check();
}

/// Ours, found by `core_datagram`: quinn-proto begins a datagram when a byte is left of three times
/// what came; RFC 9000, section 8.1, is kept to the byte.
#[test]
fn adv_rfc9000_8_1_amplification_to_the_byte() {
    let (mut rig, mut balance) = (serving(), Balance::default());
    let from = somebody(2);
    for _ in 0..2 {
        let first = Peer::client(&rig, 1, 4).begin(&rig);
        balance.give(&mut rig, from, &first);
        rig.pass(Duration::from_millis(2_000));
        balance.collect(&mut rig);
    }
    rig.pass(Duration::from_secs(30));
    balance.collect(&mut rig);
    balance.check();
}

/// CVE-2023-6193 (quiche): a flood of PATH_CHALLENGE was answered out of an unbounded queue.
#[test]
fn adv_cve_2023_6193_path_challenge_flood() {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let before = rig.meter;
    let (mut received, mut sent) = (0, 0);
    for _ in 0..300 {
        let frames: Vec<u8> = (0..120_u64).flat_map(challenge).collect();
        let bytes = peer.sealed(&frames).expect("it is let in");
        received += bytes.len();
        rig.handle(peer.control, &bytes);
        check_held(&rig, before, 128 << 10);
    }
    rig.settle();
    sent += rig.take_sent().iter().map(|sent| sent.bytes.len()).sum::<usize>();
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
    check_serves(&mut rig, 67);
}

fn challenge(number: u64) -> Vec<u8> {
    [&[0x1A], &number.to_be_bytes()[..]].concat()
}

/// CVE-2024-22189 (quic-go): NEW_CONNECTION_ID that retires all before, faster than the
/// RETIRE_CONNECTION_ID that each asks for goes out.
#[test]
fn adv_cve_2024_22189_connection_id_flood() {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let before = rig.meter;
    for number in 1..4_000_u64 {
        let id = [&number.to_be_bytes()[..], &[3; 8]].concat();
        let mut frame = vec![0x18];
        packet::write_var(number, &mut frame);
        packet::write_var(number, &mut frame);
        frame.push(16);
        frame.extend_from_slice(&id);
        frame.extend_from_slice(&[number as u8; 16]);
        let Some(bytes) = peer.sealed(&frame) else { break };
        rig.handle(peer.control, &bytes);
        check_held(&rig, before, 128 << 10);
    }
    rig.settle();
    rig.take_sent();
    check_serves(&mut rig, 67);
}

/// CVE-2025-4820 and -4821 (quiche): acknowledgements of packets that were never sent open the
/// window of the sender.
#[test]
fn adv_cve_2025_4820_acknowledgement_of_what_was_not_sent() {
    for largest in [1_000, 1 << 20, (1 << 62) - 1] {
        let mut rig = serving();
        let (mut peer, ..) = let_in(&mut rig, 66);
        let frame = [vec![0x02], var(largest), vec![0, 0, 5]].concat();
        let bytes = peer.sealed(&frame).expect("it is let in");
        rig.handle(peer.control, &bytes);
        peer.talk(&mut rig);
        assert!(peer.lost.is_some(), "an acknowledgement of {largest} is taken");
        check_serves(&mut rig, 67);
        check_empty(&mut rig);
    }
}

/// RUSTSEC-2024-0011 (snow): forged packets moved the receiver's state and blocked what was real.
#[test]
fn adv_rustsec_2024_0011_forged_packets_move_nothing() {
    let mut rig = serving();
    let (mut peer, hub, _) = let_in(&mut rig, 66);
    for _ in 0..2_000 {
        let mut bytes = peer.sealed(&[0x01, 0, 0, 0]).expect("it is let in");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        rig.handle(peer.control, &bytes);
    }
    peer.say(hub, dacapo_wire::hub::List { request: 7 });
    peer.talk(&mut rig);
    let next = peer.next(hub);
    assert!(matches!(next, Some(dacapo_wire::message::Message::Listing(_))), "{next:?}");
}

/// CVE-2020-15166 (libzmq): a stranger who connects and says nothing keeps out who is known.
#[test]
fn adv_cve_2020_15166_silent_strangers_keep_nobody_out() {
    let mut rig = serving();
    let (mut honest, hub, _) = let_in(&mut rig, 66);
    for number in 0..2_000_u16 {
        let id = [&number.to_be_bytes()[..], &[1; 6]].concat();
        rig.handle(somebody(number), &packet::initial(&id, &[7; 8], &[], 0, &[1]));
        rig.settle();
        rig.take_sent();
    }
    assert!(rig.core().connection_count() <= 300);
    honest.say(hub, dacapo_wire::hub::List { request: 1 });
    honest.talk(&mut rig);
    assert!(honest.next(hub).is_some(), "who is known is heard");
    check_serves(&mut rig, 67);
}

/// libzmq issue 954, MediaMTX issue 4678: every failed attempt left something behind.
#[test]
fn adv_libzmq_954_failed_handshakes_leave_nothing() {
    let mut rig = serving();
    check_serves(&mut rig, 60);
    check_empty(&mut rig);
    let before = rig.meter.live;
    for number in 0..1_000_u16 {
        let mut wrong = hello(&parameters());
        // Another protocol's name.
        let at = wrong.windows(8).position(|it| it == b"dacapo/1").unwrap();
        wrong[at] = b'D';
        let id = [&number.to_be_bytes()[..], &[1; 6]].concat();
        rig.handle(somebody(number), &packet::initial(&id, &[7; 8], &[], 0, &crypto(0, &wrong)));
        rig.settle();
        rig.take_sent();
    }
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.core().connection_count(), 0);
    let left = rig.meter.live - before;
    assert!(left <= 16 << 10, "{left} bytes are left of 1,000 failures");
}

/// CVE-2024-2169 ("Loop DoS"): two servers that answer each other's errors for ever.
#[test]
fn adv_cve_2024_2169_no_error_is_answered_with_an_error() {
    let stranger = [&[0x43], &[5; 400][..]].concat();
    let version = [&[0xC3, 0xFA, 0xCE, 0xB0, 0x0C, 8], &[1; 8][..], &[8], &[2; 8], &[0; 1_180]];
    let unknown = packet::initial(&[9; 8], &[7; 8], &[], 0, &[0x1E]);
    let junk = [vec![0x80; 200], vec![0x81; 200], vec![0; 200], vec![0x82; 200]].into_iter();
    for bytes in junk.chain([stranger, version.concat(), unknown]) {
        let mut cores = [serving(), Rig::new(9)];
        let mut under_way = vec![bytes.clone()];
        let mut rounds = 0;
        while !under_way.is_empty() {
            let core = &mut cores[rounds % 2];
            under_way.iter().for_each(|bytes| core.handle(somebody(7), bytes));
            core.settle();
            under_way = core.take_sent().into_iter().map(|sent| sent.bytes).collect();
            rounds += 1;
            assert!(rounds <= 12, "two cores answer each other after {:x?}", &bytes[..8]);
        }
    }
}
