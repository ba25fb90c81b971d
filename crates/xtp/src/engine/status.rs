//! [`Status`]: how an association stands, for who asks instead of taking events.

use crate::context::Context;
use crate::event::End;
use crate::table::State;
use crate::wire::Service;
use std::net::SocketAddr;
use std::time::Duration;

/// How an association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where packets are sent: the address below XTP.
    pub peer: SocketAddr,
    /// What kind of association it is.
    pub service: Service,
    /// Whether the peer has answered; of what a peer has opened it always has, but a member of a
    /// reliable group waits to be admitted.
    pub is_open: bool,
    /// How it ended, when it has.
    pub end: Option<End>,
    /// The smoothed round trip, once a request was answered.
    pub rtt: Option<Duration>,
    /// Bytes that are kept at most of what has come and is not read: as many the peer may send.
    pub rx_buffer_len: usize,
    /// Bytes that are kept at most of what is sent.
    pub tx_buffer_len: usize,
}

impl Status {
    /// That of a context.
    pub(super) fn of(context: &Context) -> Self {
        let (peer, service, lifecycle) =
            (context.addressing().peer(), context.terms().service(), context.lifecycle());
        let is_open = lifecycle.state() == State::Open;
        let rtt = context.composer().requests.rtt();
        let rx_buffer_len = context.composer().inbound.receiver().capacity();
        let tx_buffer_len = context.outbound().sender().capacity();
        Self { peer, service, is_open, end: lifecycle.end(), rtt, rx_buffer_len, tx_buffer_len }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::{Config, Engine, Event, Listen, Open, UserError};
    use dacapo_base::{Random, Time};

    fn address(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    /// Carries everything until both ends are silent.
    fn exchange(ends: &mut [Engine; 2]) {
        let mut packet = Vec::new();
        for turn in 0..20 {
            let from = turn % 2;
            while ends[from].poll_packet(Time::ZERO, &mut packet).is_some() {
                ends[1 - from].handle_packet(Time::ZERO, address(from as u8), &packet);
                packet.clear();
            }
        }
    }

    #[test]
    fn both_ends_know_peer_service_state_and_end() {
        let mut ends = [1, 2].map(|seed| Engine::new(Config::default(), Random::from_number(seed)));
        ends[1].listen(Listen::on(7)).unwrap();
        let open = Open::stream(address(1), address(1), address(0));
        let open = Open { ends: open.ends.map(|(to, from)| (with_port(to, 7), from)), ..open };
        let near = ends[0].open(Time::ZERO, &open).unwrap();
        let before = ends[0].status(near).unwrap();
        assert_eq!((before.peer, before.is_open, before.end), (address(1), false, None));
        exchange(&mut ends);
        let Some(Event::Incoming { id: far, .. }) = ends[1].poll_event() else { panic!() };
        let (here, there) = (ends[0].status(near).unwrap(), ends[1].status(far).unwrap());
        assert!(here.is_open && there.is_open);
        assert_eq!((there.peer, there.service), (address(0), Service::Stream));
        ends[1].abort(Time::ZERO, far).unwrap();
        exchange(&mut ends);
        assert_eq!(ends[0].status(near).unwrap().end, Some(End::Aborted));
        ends[0].release(Time::ZERO, near).unwrap();
        assert_eq!(ends[0].status(near), Err(UserError::Released));
    }

    fn with_port(address: SocketAddr, port: u16) -> SocketAddr {
        SocketAddr::new(address.ip(), port)
    }
}
