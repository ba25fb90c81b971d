//! Rules about the two lanes. Where control and data have a way each, a datagram stays on its own;
//! where they share a stream, everything is data, nothing is lost, and the order is that of the
//! sends.

use super::{Arrival, Ends, Make};
use crate::{DATA_LANES_MAX, Outgoing, Sent, TrafficClass};
use dacapo_base::Address;

/// With lanes open at both ends, control arrives as control and data as data, both ways, from the
/// addresses that the lanes have. Without lanes both arrive as data from the stream's address.
pub fn a_datagram_arrives_by_the_lane_it_was_sent_by(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let has_lanes = ends.has_lanes();
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        let by_data = lane == TrafficClass::Data || !has_lanes;
        let client_here = if by_data { ends.client_data } else { ends.client_addr };
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"there"));
        let there = Arrival { bytes: b"there".to_vec(), remote: client_here, by_data };
        assert_eq!(ends.await_server(1), [there]);
        ends.server.send_all(&Outgoing::datagram(lane, client_here, b"back"));
        let back = Arrival { bytes: b"back".to_vec(), remote: ends.server_addr, by_data };
        assert_eq!(ends.await_client(1), [back]);
    }
    ends.end();
}

/// Data sent before a lane is open goes by control, or by the stream; it is not lost.
pub fn data_without_a_lane_goes_by_control(make: Make<'_>) {
    let mut ends = Ends::new(make());
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"early"));
    let (remote, by_data) = (ends.client_addr, !ends.has_lanes());
    let early = Arrival { bytes: b"early".to_vec(), remote, by_data };
    assert_eq!(ends.await_server(1), [early]);
    ends.end();
}

/// After a close data arrives by control, after another open by data again. A stream is untouched
/// by either.
pub fn a_lane_can_be_closed_and_opened_again(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let has_lanes = ends.has_lanes();
    for open in [true, false, true] {
        if open {
            ends.server.transport.open_data(ends.client_data).expect("a lane opens");
        } else {
            ends.server.transport.close_data(ends.client_data);
            ends.server.transport.close_data(ends.client_data);
        }
        ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"data"));
        let arrivals = ends.await_server(1);
        assert_eq!(arrivals[0].by_data, open || !has_lanes);
        assert_eq!(arrivals[0].remote, ends.client_data);
    }
    ends.end();
}

/// Opening twice is once, and there is a bound, which a close makes room below. Streams are found,
/// and none is opened by asking.
pub fn data_lanes_are_idempotent_and_bounded(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let has_lanes = ends.has_lanes();
    let server = &mut ends.server.transport;
    let first = server.open_data(ends.client_data).expect("it is open");
    assert_eq!(server.open_data(ends.client_data).expect("it is open"), first);
    let here = ends.client_data;
    let other = |index: usize| match here.ip() {
        Some(_) => here.at_port(10_000 + index as u16),
        None => Address::other(here.scheme(), format!("nobody-{index}").as_bytes())
            .expect("a short address"),
    };
    let mut open = 1;
    let refused = loop {
        match server.open_data(other(open)) {
            Ok(_) => open += 1,
            Err(error) => break error,
        }
        assert!(open <= DATA_LANES_MAX, "{open} lanes");
    };
    assert_eq!(server.open_data(ends.client_data).expect("it is open"), first);
    if has_lanes {
        assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded, "{refused}");
        server.close_data(other(1));
        server.open_data(other(open)).expect("there is room for one");
    } else {
        assert_eq!(refused.kind(), std::io::ErrorKind::NotConnected, "{refused}");
        assert_eq!(open, 1, "only the stream that is there");
        assert!(refused.to_string().contains(&other(1).to_string()), "{refused}");
    }
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"still here"));
    assert!(ends.await_server(1)[0].by_data);
    ends.end();
}

/// A burst of data that fills its queue drops no control (D7). Where they share a stream, both may
/// have to wait, and everything that was taken arrives, in the order of the sends. The maker gives
/// transports with small queues.
pub fn a_burst_of_data_never_drops_control(make_small: Make<'_>) {
    let mut ends = Ends::with_data(make_small());
    if !ends.has_lanes() {
        return a_burst_on_one_stream(ends);
    }
    for index in 0..400_u64 {
        let data = Outgoing::datagram(TrafficClass::Data, ends.server_addr, &[7; 500]);
        ends.client.transport.send(&data).expect("no error");
        if index.is_multiple_of(100) {
            let control = Outgoing::datagram(TrafficClass::Control, ends.server_addr, b"control");
            assert_eq!(ends.client.transport.send(&control).expect("no error"), Sent::All);
        }
    }
    ends.await_until(|ends| ends.server.arrivals().iter().filter(|a| !a.by_data).count() == 4);
    let arrivals = ends.server.take_arrivals();
    assert_eq!(arrivals.iter().filter(|arrival| !arrival.by_data).count(), 4);
    assert!(!arrivals[0].by_data, "control comes first");
    ends.server.drain();
    ends.end();
}

fn a_burst_on_one_stream(mut ends: Ends) {
    let (mut taken, mut blocked) = (Vec::new(), 0);
    for index in 0..400_u64 {
        let is_control = index.is_multiple_of(100);
        let lane = if is_control { TrafficClass::Control } else { TrafficClass::Data };
        let bytes = [index.to_be_bytes().as_slice(), &[7; 500]].concat();
        let outgoing = Outgoing::datagram(lane, ends.server_addr, &bytes);
        while ends.client.transport.send(&outgoing).expect("no error") != Sent::All {
            blocked += 1;
            // Control waits for room and is then taken.
            if !is_control {
                break;
            }
            ends.client.turn();
            ends.server.turn();
            ends.client.wait();
            assert!(blocked < 1_000_000, "there is never room");
        }
        if is_control || ends.client.stats().sent.datagrams > taken.len() as u64 {
            taken.push(bytes);
        }
    }
    assert!(blocked > 0, "the queue was never full");
    let count = taken.len();
    ends.await_until(|ends| ends.server.arrival_count() >= count);
    let arrived: Vec<_> = ends.server.take_exactly(count).into_iter().map(|a| a.bytes).collect();
    assert!(arrived == taken, "what was taken arrives in order");
    assert_eq!(ends.server.stats().drops.total(), 0);
    ends.end();
}
