//! Sending: the socket of the lane, one call per train where the kernel can.

use super::Udp;
use super::channel::Channel;
use super::lanes::Place;
use crate::transport::datagrams_in;
use crate::{Outgoing, SendError, Sent, TrafficClass, Transport};
use dacapo_io::{Kept, send_past};
use dacapo_sys::udp;
use std::net::SocketAddr;

impl Udp {
    pub(super) fn send_out(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let segment_len = outgoing.datagram_len();
        let datagram_len_max = self.datagram_len_max();
        if segment_len > datagram_len_max {
            return Err(SendError::TooLarge { mtu: Some(datagram_len_max) });
        }
        let remote = outgoing.remote.ip().ok_or(SendError::Unreachable)?;
        let place = self.place_for(outgoing.lane, remote).ok_or(SendError::Unreachable)?;
        let channel = self.lanes.channel(place).ok_or(SendError::Closed)?;
        let to = if channel.remote.is_some() { None } else { Some(remote) };
        let segment = u16::try_from(segment_len).ok();
        let send = || channel.socket.send(to, outgoing.bytes, segment, outgoing.ecn);
        let (kept, result) = send_past(|kept| kept != Kept::Other, send);
        match (kept, &result) {
            (None, _) | (_, Err(udp::SendError::MessageTooLarge)) => {}
            (Some(Kept::Refused), _) => self.refused = Some(outgoing.remote),
            (Some(_), _) => self.too_large = Some(channel.hint(remote)),
        }
        self.stats.refused += u64::from(kept == Some(Kept::Refused));
        let sent = match result {
            Ok(sent) => sent,
            Err(udp::SendError::WouldBlock) => udp::Sent::default(),
            // No event tells when a device has room, so there is nothing to watch for.
            Err(udp::SendError::NoBuffers) => return Ok(Sent::Blocked { bytes_taken: 0 }),
            Err(error) => {
                let error = classify(error, channel);
                self.stats.refused += u64::from(matches!(error, SendError::Refused));
                return Err(error);
            }
        };
        if sent.calls > 0 {
            let (count, most) = (
                datagrams_in(sent.bytes, segment_len),
                datagrams_in(sent.call_bytes_max, segment_len),
            );
            self.stats.count_taken(count, sent.bytes, sent.calls, most);
        }
        if sent.calls > 0 && sent.bytes == outgoing.bytes.len() {
            return Ok(Sent::All);
        }
        self.watch_write(place, true);
        Ok(Sent::Blocked { bytes_taken: sent.bytes })
    }

    fn place_for(&mut self, lane: TrafficClass, remote: SocketAddr) -> Option<Place> {
        let data = match lane {
            TrafficClass::Data => self.lanes.data_to(remote),
            TrafficClass::Control => None,
        };
        if data.is_none() && remote.ip().is_multicast() {
            // Only a data lane to a group knows how it is to be reached.
            return None;
        }
        data.or_else(|| self.control_place(remote))
    }

    fn control_place(&self, remote: SocketAddr) -> Option<Place> {
        match self.dialled {
            Some(dialled) => (dialled == remote).then_some(Place::Control(0)),
            None => self.lanes.control_to(remote),
        }
    }

    /// Counts what was not taken; what was is counted where the calls are made.
    pub(super) fn count_refusal(&mut self, result: &Result<Sent, SendError>) {
        let stats = &mut self.stats;
        match result {
            Ok(Sent::All) => {}
            Ok(Sent::Blocked { .. }) => stats.would_blocks += 1,
            Err(SendError::TooLarge { .. }) => stats.too_large += 1,
            // Counted where the answer is read, which may have been in `recv`.
            Err(SendError::Refused) => {}
            Err(SendError::Unreachable) => stats.unreachable += 1,
            Err(SendError::Closed | SendError::Other(_)) => stats.errors += 1,
        }
    }
}

fn classify(error: udp::SendError, channel: &Channel) -> SendError {
    match error {
        udp::SendError::MessageTooLarge => {
            SendError::TooLarge { mtu: channel.socket.datagram_len_max() }
        }
        udp::SendError::Refused => SendError::Refused,
        udp::SendError::Unreachable => SendError::Unreachable,
        udp::SendError::Other(error) => SendError::Other(error),
        udp::SendError::WouldBlock | udp::SendError::NoBuffers => {
            SendError::Other(std::io::ErrorKind::WouldBlock.into())
        }
    }
}
