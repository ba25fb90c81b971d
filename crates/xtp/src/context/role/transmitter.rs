//! What the members of a reliable group say, and what that does to the stream.
//!
//! ```text
//!   a member's packet --> Said --.
//!   time, silence ---------------+--> settle: the least that all have said --> Outbound
//!   a request to join -----------'         '--> Settlement: too few | delivered
//! ```

use crate::context::outbound::Outbound;
use crate::context::terms::Terms;
use crate::group::Leaving;
use crate::members::Members;
use crate::requests::Requests;
use crate::sender::Sender;
use crate::wire::{Body, Code, Diagnostic, Header, Reason};
use dacapo_base::Time;

/// What is new of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing that counts.
    Nothing,
    /// One does not like something, and stays.
    Remark(Code, Reason),
    /// What one has of the stream.
    Status,
    /// One has joined.
    Joined,
    /// One is none any more.
    Parted,
}

/// What all members together have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// More are gone than may be.
    TooFew,
    /// Nobody says anything.
    Nobody,
    /// They have said so much of the stream; perhaps that all up to a request for delivery is with
    /// their users.
    Settled {
        /// Whether it is.
        is_delivered: bool,
    },
}

impl Members {
    /// A member says something, under the key that was offered to it.
    pub fn handle_packet(
        &mut self,
        now: Time,
        header: &Header,
        body: &Body<'_>,
        (outbound, requests, terms): (&mut Outbound, &Requests, &mut Terms),
    ) -> Said {
        let offered = header.key.value();
        if !self.has(offered) {
            return Said::Nothing;
        }
        let (control, spans) = match body {
            Body::Cntl(control) => (control, None),
            Body::Ecntl(control, spans) => (control, Some(*spans)),
            Body::Tcntl(said, traffic) => {
                self.handle_limits(offered, traffic.limits.unwrap_or_default());
                self.narrow(now, outbound, terms);
                (&said.control, None)
            }
            Body::Diag(Diagnostic { code, reason, .. }) => match *code {
                Code::CONTEXT_REFUSED | Code::CONTEXT_ABANDONED | Code::INVALID_CONTEXT => {
                    self.part(offered, Leaving::Refused(*code, *reason), true);
                    return Said::Parted;
                }
                _ => return Said::Remark(*code, *reason),
            },
            _ => return Said::Nothing,
        };
        let heard = outbound.handle_member_status(control, spans, requests);
        if self.handle_status(now, header, control, &heard) { Said::Parted } else { Said::Status }
    }

    /// The narrowest limits of all members hold.
    pub fn narrow(&mut self, now: Time, outbound: &mut Outbound, terms: &mut Terms) {
        outbound.adopt(now, terms, Some(self.narrowest()));
        self.handle_rate(outbound.rate());
    }

    /// What all members together have said now: of what has arrived, of windows, of requests.
    pub fn settle_stream(
        &mut self,
        now: Time,
        outbound: &mut Outbound,
        requests: &mut Requests,
    ) -> Settlement {
        if self.is_too_few() {
            return Settlement::TooFew;
        }
        let is_delivered = self.settle().map(|settled| outbound.settle(now, &settled, requests));
        self.watch_stream(now, outbound.sender(), requests);
        is_delivered.map_or(Settlement::Nobody, |is_delivered| Settlement::Settled { is_delivered })
    }

    /// Looks who holds up the others.
    pub fn watch_stream(&mut self, now: Time, sender: &Sender, requests: &Requests) {
        let asked = requests.is_in_handshake().then_some(requests.sync());
        self.watch(now, sender.next(), sender.is_blocked(), asked);
    }

    /// All who have not answered a handshake behind byte `next` are asked one by one.
    pub fn ask_each(&mut self, now: Time, next: u64, requests: &mut Requests) {
        if requests.is_due() {
            self.ask_those_behind(requests.ask_each(now, next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Message;
    use crate::config::{Config, Mode};
    use crate::group::GroupPolicy;
    use crate::members::Asked;
    use crate::wire::{Control, Format, Key, Limits, Options, Service, Traffic, TrafficControl};
    use std::net::SocketAddr;
    use std::time::Duration;

    const NOW: Time = Time::from_millis(1_000);

    struct Group {
        members: Members,
        outbound: Outbound,
        terms: Terms,
        requests: Requests,
    }

    fn at(end: u64) -> SocketAddr {
        ([192, 0, 2, end as u8], 4_040).into()
    }

    impl Group {
        /// So many members, offered the keys from 101 on, and 500 bytes that have been sent.
        fn of(count: u64, policy: GroupPolicy) -> Self {
            let (config, mode) = (Config::default(), Mode::default());
            let members = Members::new(policy, config.buffer_len, Duration::ZERO);
            let mut outbound = Outbound::new(NOW, &config, &mode);
            let requests = Requests::new(NOW, config.timers, 10);
            let terms = Terms::new(Service::ReliableMulticast, mode);
            outbound.confirm();
            outbound.write(NOW, &Message::part(&[7; 500]));
            let mut group = Self { members, outbound, terms, requests };
            (1..=count).for_each(|end| group.join(end));
            let piece = group.outbound.take_piece(NOW, true, |_| true).expect("bytes wait");
            group.outbound.handle_sent(&piece, Options::NONE, 11);
            group
        }

        fn join(&mut self, end: u64) {
            let control = Control { rseq: 0, alloc: 1_000, echo: 0 };
            let asks = TrafficControl { control, xkey: end };
            for key in [7, 100 + end] {
                let header = Header::new(Key::returned(key), Format::Jcntl);
                let (drawn, is_first) = (100 + end, key == 7);
                let (from, limits) = (at(end), None);
                let asked = Asked { from, header: &header, asks: &asks, limits, drawn, is_first };
                self.members.handle_join(NOW, &asked, (0, 10), false);
            }
        }

        fn take(&mut self, key: u64, options: Options, body: &Body<'_>) -> Said {
            let Self { members, outbound, terms, requests } = self;
            let header = Header { options, ..Header::new(Key::returned(key), Format::Cntl) };
            members.handle_packet(NOW, &header, body, (outbound, requests, terms))
        }

        fn settle(&mut self) -> Settlement {
            self.members.settle_stream(NOW, &mut self.outbound, &mut self.requests)
        }
    }

    fn status(rseq: u64) -> Control {
        Control { rseq, alloc: rseq + 1_000, echo: 10 }
    }

    /// The slowest member is what has arrived.
    #[test]
    fn what_all_members_have_is_acknowledged() {
        let mut group = Group::of(2, GroupPolicy::default());
        assert_eq!(group.take(101, Options::NONE, &Body::Cntl(status(500))), Said::Status);
        assert_eq!(group.settle(), Settlement::Settled { is_delivered: false });
        assert!(group.outbound.sender().has_unacknowledged());
        assert_eq!(group.take(102, Options::NONE, &Body::Cntl(status(500))), Said::Status);
        group.settle();
        assert!(!group.outbound.sender().has_unacknowledged());
    }

    /// TCNTL: other limits; DIAG 1 to 3: a member no more, another one is a remark.
    #[test]
    fn each_kind_of_packet_is_what_it_says_and_a_strange_key_nothing() {
        let mut group = Group::of(2, GroupPolicy::default());
        let limits = Limits { in_rate: 500, ..Limits::default() };
        let traffic = Traffic { service: Service::ReliableMulticast as u8, limits: Some(limits) };
        let said = TrafficControl { control: status(0), xkey: 1 };
        assert_eq!(group.take(101, Options::NONE, &Body::Tcntl(said, traffic)), Said::Status);
        assert_eq!(group.terms.theirs().in_rate, 500, "the narrowest hold");
        let (reason, message) = (Reason::UNSPECIFIED, &b""[..]);
        let diagnostic = |code| Body::Diag(Diagnostic { code, reason, message });
        let remark = Said::Remark(Code::PACKET_SIZE, reason);
        assert_eq!(group.take(101, Options::NONE, &diagnostic(Code::PACKET_SIZE)), remark);
        assert_eq!(group.take(109, Options::NONE, &Body::Cntl(status(9))), Said::Nothing);
        let abandoned = diagnostic(Code::CONTEXT_ABANDONED);
        assert_eq!(group.take(101, Options::NONE, &abandoned), Said::Parted);
        assert_eq!(group.take(102, Options::END, &Body::Cntl(status(500))), Said::Parted);
        assert_eq!(group.settle(), Settlement::TooFew);
    }

    #[test]
    fn with_nobody_left_who_has_to_be_nothing_is_said() {
        let policy = GroupPolicy { members_min: 0, ..GroupPolicy::default() };
        assert_eq!(Group::of(0, policy).settle(), Settlement::Nobody);
    }

    /// A handshake asks all who have not answered one by one, and drops who never does.
    #[test]
    fn who_does_not_answer_a_handshake_is_asked_and_dropped() {
        let mut group = Group::of(2, GroupPolicy::default());
        while group.members.pop_word().is_some() {}
        group.members.ask_each(NOW, 500, &mut group.requests);
        assert!(group.members.pop_word().is_none(), "no handshake");
        group.requests.begin_handshake(NOW);
        group.members.ask_each(NOW, 500, &mut group.requests);
        let asked: Vec<SocketAddr> =
            std::iter::from_fn(|| group.members.pop_word()).map(|word| word.to).collect();
        assert_eq!(asked, [at(1), at(2)]);
        let answer = Control { echo: 11, ..status(500) };
        group.take(102, Options::NONE, &Body::Cntl(answer));
        assert!(group.members.drop_the_silent(group.requests.sync()));
        assert_eq!(group.members.len(), 1);
        assert_eq!(group.members.pop_parted().map(|it| it.offered), Some(101));
    }
}
