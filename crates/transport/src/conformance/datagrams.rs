//! Rules about single datagrams and trains: sizes, boundaries, and where they go.

use super::side::{WAITS_MAX, assert_arrive, random_bytes};
use super::{Ends, Make};
use crate::{Outgoing, SendError, Sent, TrafficClass};

/// Empty, small, typical and the longest datagrams arrive whole, in both lanes.
pub fn boundaries_are_kept_for_every_size(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let longest = ends.client.transport.datagram_len_max();
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        for len in [0, 1, 1_200.min(longest), 1_452.min(longest), longest] {
            let bytes = random_bytes(len as u64, len);
            ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, &bytes));
            assert_arrive(&mut ends, vec![bytes], &format!("{lane:?}, {len} bytes"));
        }
    }
    let sent = ends.client.stats().sent;
    assert_eq!(sent, ends.server.stats().received);
    assert_eq!((sent.datagrams, sent.trains), (10, 0));
    ends.end();
}

/// A train arrives as its datagrams, whatever is joined on the way: even and uneven, with short
/// ends and with segments so long that two of them hardly fit a buffer.
pub fn trains_arrive_as_the_datagrams_they_are_made_of(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let trains = [(1_200, 12_000), (1_200, 1_201), (1_452, 60_000), (1, 64), (100, 20_050)];
    let long = [(30_000, 65_000), (40_000, 64_000)];
    let longest = ends.client.transport.datagram_len_max();
    for (segment_len, len) in trains.into_iter().chain(long) {
        // Where datagrams must be shorter there are more of them.
        let segment_len = longest.min(segment_len);
        let bytes = random_bytes(len as u64, len);
        let lane = TrafficClass::Data;
        let train = Outgoing::train(lane, ends.server_addr, &bytes, segment_len);
        ends.client.send_all(&train);
        let expected: Vec<_> = bytes.chunks(segment_len).map(<[u8]>::to_vec).collect();
        assert_eq!(expected.len(), train.datagram_count());
        assert_arrive(&mut ends, expected, &format!("{len} in {segment_len}"));
    }
    assert_eq!(ends.client.stats().sent.datagrams, ends.server.stats().received.datagrams);
    assert_eq!(ends.client.stats().sent.bytes, ends.server.stats().received.bytes);
    ends.end();
}

/// Sending to somebody who has left never waits: it is refused, or lost without a word, and a
/// stream to him is closed.
pub fn sending_to_nobody_never_hangs(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let (has_lanes, is_stream) = (ends.has_lanes(), ends.client.transport.spec().streams);
    ends.server.end();
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        for _ in 0..6 {
            let outgoing = Outgoing::datagram(lane, ends.server_addr, b"anybody?");
            match ends.client.transport.send(&outgoing) {
                Ok(Sent::All) | Err(SendError::Refused) => {}
                Ok(Sent::Blocked { .. }) | Err(SendError::Closed) if !has_lanes => {}
                other => panic!("{lane:?}: {other:?}"),
            }
            ends.client.drain();
        }
    }
    if !has_lanes {
        let outgoing = Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"anybody?");
        let is_closed = (0..WAITS_MAX).any(|_| {
            let result = ends.client.transport.send(&outgoing);
            ends.client.wait();
            ends.client.drain();
            match result {
                Err(SendError::Closed) => true,
                Err(SendError::Refused) => !is_stream,
                _ => false,
            }
        });
        assert!(is_closed, "whoever sends to nobody is told in the end");
    }
    assert_eq!(ends.client.arrival_count(), 0);
    ends.client.end();
}

/// A datagram beyond the limit, alone or in a train, is refused whole, and the transport goes on.
pub fn an_oversized_datagram_is_too_large(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let longest = ends.client.transport.datagram_len_max();
    let bytes = vec![0; 2 * longest + 2];
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        for (bytes, segment_len) in [(&bytes[..=longest], longest + 1), (&bytes[..], longest + 1)] {
            let remote = ends.server_addr;
            let result =
                ends.client.transport.send(&Outgoing::train(lane, remote, bytes, segment_len));
            assert!(matches!(result, Err(SendError::TooLarge { .. })), "{result:?}");
        }
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"short"));
        assert_arrive(&mut ends, vec![b"short".to_vec()], "after a long one");
    }
    assert_eq!(ends.client.stats().too_large, 4);
    ends.end();
}
