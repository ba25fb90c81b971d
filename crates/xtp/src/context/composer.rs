//! [`Composer`]: what the packets of an association say: options, keys and numbers, as its parts
//! stand.
//!
//! ```text
//!   every packet   key of the peer, SORT, MULTI, latest sync, RCLOSE; WCLOSE where the stream ends
//!   FIRST, DATA    the options of the user, EDGE, EOM, BTAG; END where nothing comes back any more
//!   CNTL … TCNTL   RES, NOERR, EDGE; rseq, alloc, echo
//!   JCNTL          of a member: SREQ; of a transmitter: under the member's key
//! ```
//!
//! It changes nothing: who sends a packet tells the parts that it has left.

use super::addressing::Addressing;
use super::inbound::Inbound;
use super::length::{Length, SPANS_AT};
use super::outbound::Outbound;
use super::replies::Replies;
use super::terms::Terms;
use crate::members::{Due, Word};
use crate::requests::Requests;
use crate::sender::{Piece, Sender};
use crate::wire::{
    Body, Code, Control, Diagnostic, Format, HEADER_LEN, Header, Key, Options, Payload, Reason,
    SPAN_LEN, Service, Spans, Traffic, TrafficControl, Writer,
};

/// What a control packet has at most, besides spans and messages.
pub const CONTROL_LEN: usize = HEADER_LEN + 32 + 24;
/// A CNTL; and a DIAG of ours, which is shorter.
pub const CNTL_LEN: usize = HEADER_LEN + Control::LEN;

/// What the packets of an association say.
#[derive(Clone, Copy)]
pub struct Composer<'a> {
    pub addressing: &'a Addressing,
    pub terms: &'a Terms,
    pub outbound: &'a Outbound,
    pub requests: &'a Requests,
    pub inbound: &'a Inbound,
    pub replies: &'a Replies,
    /// What was not sent never will be: this is no orderly end.
    pub is_aborting: bool,
}

impl Composer<'_> {
    const fn sender(&self) -> &Sender {
        self.outbound.sender()
    }

    const fn length(&self) -> &Length {
        self.outbound.length()
    }

    fn traffic(&self) -> Traffic {
        self.terms.traffic(self.length().packet_max())
    }

    /// What every packet says.
    fn header(&self, format: Format, options: Options, seq: u64, packet_end: u64) -> Header {
        Header {
            key: self.addressing.peer_key(),
            options: options | self.terms.options() | self.close_options(packet_end),
            format,
            sort: self.terms.sort().unwrap_or(0),
            sync: self.requests.sync(),
            seq,
        }
    }

    /// RCLOSE, and WCLOSE where the packet ends at the end of the stream.
    pub fn close_options(&self, packet_end: u64) -> Options {
        if self.is_aborting {
            return Options::NONE;
        }
        let rclose = Options::RCLOSE.when(self.inbound.is_closed());
        self.outbound.close_options(packet_end) | rclose
    }

    fn edge(&self) -> Options {
        Options::EDGE.when(self.outbound.edge())
    }

    fn data_options(&self, piece: &Piece) -> Options {
        self.terms.data_options() | self.edge() | Options::BTAG.when(piece.tag.is_some())
    }

    fn control_header(&self, format: Format, options: Options) -> Header {
        let next = self.sender().next();
        self.header(format, options | self.terms.control_options() | self.edge(), next, next)
    }

    /// What has arrived here, and may come.
    pub fn control(&self) -> Control {
        let receiver = self.inbound.receiver();
        let (rseq, alloc) = (receiver.rseq(), receiver.alloc());
        Control { rseq, alloc, echo: self.replies.echo() }
    }

    fn own_control(&self) -> TrafficControl {
        TrafficControl { control: self.control(), xkey: self.addressing.own_key() }
    }

    /// FIRST with this data; gives its options, and whether it was written.
    pub fn first(&self, piece: &Piece, into: &mut Vec<u8>) -> (Options, bool) {
        let sender = self.sender();
        let (is_finished, up_to) = (sender.is_finished(), sender.next().max(piece.end()));
        // A message without bytes is one that opens and finishes with nothing between.
        let is_message = !matches!(self.terms.service(), Service::Stream | Service::Unspecified);
        let is_empty = is_message && is_finished && sender.end() == 0;
        let request = match self.terms.is_quiet() {
            true => Options::END.when(is_finished && up_to == sender.end()),
            false => Options::SREQ,
        };
        let options =
            self.data_options(piece) | Options::EOM.when(piece.is_end || is_empty) | request;
        let header = self.header(Format::First, options, piece.seq, piece.end());
        let mut writer = Writer::begin(&header, into);
        self.addressing.segment().emit(writer.bytes());
        self.traffic().emit(writer.bytes());
        (header.options, self.write_piece(piece, writer))
    }

    /// DATA with this piece, and `request`; gives its options, and whether it was written.
    pub fn data(&self, piece: &Piece, request: Options, into: &mut Vec<u8>) -> (Options, bool) {
        let (sender, end) = (self.sender(), piece.end());
        let ends = self.terms.is_quiet() && sender.is_finished() && end == sender.end();
        let options = self.data_options(piece)
            | request
            | Options::END.when(ends)
            | Options::EOM.when(piece.is_end);
        let header = self.header(Format::Data, options, piece.seq, end);
        (header.options, self.write_piece(piece, Writer::begin(&header, into)))
    }

    fn write_piece(&self, piece: &Piece, mut writer: Writer<'_>) -> bool {
        writer.bytes().extend_from_slice(piece.tag.as_ref().map_or(&[], |tag| &tag[..]));
        self.sender().copy(piece, writer.bytes());
        writer.finish().is_ok()
    }

    /// CNTL with these options.
    pub fn cntl(&self, options: Options, into: &mut Vec<u8>) -> bool {
        write(&self.control_header(Format::Cntl, options), &Body::Cntl(self.control()), into)
    }

    /// CNTL, or where bytes lack ECNTL, of which this has the number `packet` where that takes
    /// several. Whether it was written, and whether another goes on.
    pub fn status(&self, packet: u8, into: &mut Vec<u8>) -> (bool, bool) {
        if !self.inbound.lacks() {
            return (self.cntl(Options::NONE, into), false);
        }
        let (spans, has_more) = self.inbound.spans(packet, self.length().spans_max());
        let body = Body::Ecntl(self.control(), Spans::List(&spans));
        (write(&self.control_header(Format::Ecntl, Options::NONE), &body, into), has_more)
    }

    /// Whether the next status may go to a peer that has not shown its address.
    pub fn affords_status(&self) -> bool {
        let len = || {
            if self.replies.is_traffic_due() {
                CONTROL_LEN
            } else if self.inbound.lacks() {
                let spans = self.inbound.receiver().spans();
                let count = spans.len().min(self.length().spans_max());
                SPANS_AT.saturating_add(count.saturating_mul(SPAN_LEN))
            } else {
                CNTL_LEN
            }
        };
        self.addressing.affords_by(len)
    }

    /// TCNTL with these options.
    pub fn tcntl(&self, options: Options, into: &mut Vec<u8>) -> bool {
        let body = Body::Tcntl(self.own_control(), self.traffic());
        write(&self.control_header(Format::Tcntl, options), &body, into)
    }

    /// DIAG about what the peer has sent.
    pub fn remark(&self, (code, reason): (Code, Reason), into: &mut Vec<u8>) -> bool {
        let body = Body::Diag(Diagnostic { code, reason, message: b"" });
        write(&Header::new(self.addressing.peer_key(), Format::Diag), &body, into)
    }

    /// JCNTL of who asks to join, with this number.
    pub fn request_to_join(&self, sync: u32, into: &mut Vec<u8>) -> bool {
        let mode = self.terms.mode();
        let options = Options::SREQ
            | Options::MULTI
            | Options::SORT.when(mode.sort.is_some())
            | Options::RES.when(mode.reserve);
        let (sort, key) = (mode.sort.unwrap_or(0), self.addressing.peer_key());
        let header = Header { options, sync, sort, ..Header::new(key, Format::Jcntl) };
        let segment = *self.addressing.segment();
        write(&header, &Body::Jcntl(self.own_control(), segment, self.traffic()), into)
    }

    /// Whether that may go to a peer that has not shown its address.
    pub fn affords_request_to_join(&self) -> bool {
        let len = || {
            let segment_len = self.addressing.segment().len();
            HEADER_LEN + TrafficControl::LEN + segment_len + self.traffic().len()
        };
        self.addressing.affords_by(len)
    }

    /// FIRST to a group, without data: members begin with what is sent after they have joined.
    pub fn invitation(&self, into: &mut Vec<u8>) -> bool {
        let next = self.sender().next();
        let options = self.terms.data_options() | self.edge() | Options::SREQ;
        let body = Body::First(*self.addressing.segment(), self.traffic(), Payload::default());
        write(&self.header(Format::First, options, next, next), &body, into)
    }

    /// What goes to one member or candidate.
    pub fn word(&self, word: &Word, into: &mut Vec<u8>) -> bool {
        let header = match word.due {
            Due::Offer => self.control_header(Format::Jcntl, Options::NONE),
            Due::Admission => {
                let options = Options::SREQ | self.edge();
                self.header(Format::Jcntl, options, word.start, word.start)
            }
            Due::Status => self.control_header(Format::Cntl, Options::NONE),
            Due::Question => self.control_header(Format::Cntl, Options::SREQ),
        };
        let header = Header { key: Key::returned(word.key), ..header };
        let control = Control { rseq: 0, alloc: 0, echo: word.asked };
        let body = if header.format == Format::Jcntl {
            let control = TrafficControl { control, xkey: word.offered };
            Body::Jcntl(control, *self.addressing.segment(), self.traffic())
        } else {
            Body::Cntl(control)
        };
        write(&header, &body, into)
    }
}

fn write(header: &Header, body: &Body<'_>, into: &mut Vec<u8>) -> bool {
    Writer::packet(header, body, into).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::arrival::Message;
    use crate::config::{Config, Mode};
    use crate::wire::{Frame, Limits, Span};
    use dacapo_base::Time;
    use std::net::SocketAddr;

    const NOW: Time = Time::from_millis(1_000);

    struct Parts {
        addressing: Addressing,
        terms: Terms,
        outbound: Outbound,
        requests: Requests,
        inbound: Inbound,
        replies: Replies,
    }

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    fn parts(service: Service, mode: Mode) -> Parts {
        let (config, terms) = (Config::default(), Terms::new(service, mode));
        let mut addressing = Addressing::opening(at(1), 7, Some((at(1), at(2))));
        addressing.handle_xkey(9);
        Parts {
            addressing,
            outbound: Outbound::new(NOW, &config, &mode),
            requests: Requests::new(NOW, config.timers, 10),
            inbound: Inbound::new(0, &config, &mode),
            replies: Replies::new(config.timers.response_wait),
            terms,
        }
    }

    impl Parts {
        fn composer(&self) -> Composer<'_> {
            let Self { addressing, terms, outbound, requests, inbound, replies } = self;
            let is_aborting = false;
            Composer { addressing, terms, outbound, requests, inbound, replies, is_aborting }
        }

        fn piece(&self) -> Piece {
            self.outbound.sender().peek_first(1_000)
        }

        fn write(&mut self, data: &[u8], is_end: bool) {
            self.outbound.write(NOW, &Message { is_end, tag: Some([1; 8]), ..Message::part(data) });
        }
    }

    /// Writes a packet, and gives its header.
    fn header(write: impl FnOnce(&mut Vec<u8>)) -> Header {
        let mut packet = Vec::new();
        write(&mut packet);
        Frame::open(&packet).unwrap().header
    }

    /// Common header: key, SORT, the latest sync; DATA: EOM, BTAG and the user's options.
    #[test]
    fn every_packet_has_the_peers_key_and_data_its_marks() {
        let mode = Mode { sort: Some(3), fast_report: true, ..Mode::default() };
        let mut parts = parts(Service::Stream, mode);
        parts.write(b"whole", true);
        let data = header(|into| _ = parts.composer().data(&parts.piece(), Options::SREQ, into));
        let marks = Options::EOM | Options::BTAG | Options::SREQ | Options::FASTNAK;
        assert_eq!(data.options, marks | Options::SORT);
        assert_eq!((data.key, data.sort, data.sync, data.seq), (Key::returned(9), 3, 10, 0));
        let first = header(|into| _ = parts.composer().first(&parts.piece(), into));
        assert_eq!((first.options, first.format), (data.options, Format::First));
    }

    /// WCLOSE where the stream ends, RCLOSE once nothing more is taken, neither on an abort.
    #[test]
    fn close_bits_are_on_what_ends_there_and_not_on_an_abort() {
        let mut parts = parts(Service::Stream, Mode::default());
        parts.write(b"whole", true);
        assert_eq!(parts.composer().close_options(5), Options::NONE);
        parts.outbound.finish();
        parts.inbound.stop();
        assert_eq!(parts.composer().close_options(4), Options::RCLOSE);
        assert_eq!(parts.composer().close_options(5), Options::RCLOSE | Options::WCLOSE);
        let aborting = Composer { is_aborting: true, ..parts.composer() };
        assert_eq!(aborting.close_options(5), Options::NONE);
        let end = header(|into| _ = aborting.cntl(Options::END, into));
        assert_eq!((end.options, end.format), (Options::END, Format::Cntl));
    }

    /// END: on the last packet of a service that lets nothing come back; EOM on an empty message.
    #[test]
    fn a_datagram_ends_with_its_only_packet_also_an_empty_one() {
        let mut parts = parts(Service::Datagram, Mode::default());
        let options =
            |parts: &Parts| header(|into| _ = parts.composer().first(&parts.piece(), into)).options;
        assert!(!options(&parts).has_any(Options::END | Options::EOM | Options::SREQ));
        parts.outbound.finish();
        assert_eq!(options(&parts), Options::END | Options::EOM | Options::WCLOSE);
    }

    /// CNTL, ECNTL, TCNTL: what has arrived, what lacks, and limits.
    #[test]
    fn status_says_what_has_arrived_and_what_lacks() {
        let mode = Mode { reserve: true, without_repair: true, ..Mode::default() };
        let mut parts = parts(Service::Stream, mode);
        parts.inbound.post(500);
        let mut packet = Vec::new();
        assert_eq!(parts.composer().status(0, &mut packet), (true, false));
        let frame = Frame::open(&packet).unwrap();
        assert_eq!(frame.header.options, Options::RES | Options::NOERR);
        let control = Control { rseq: 0, alloc: 500, echo: 0 };
        assert_eq!(frame.body(), Ok(Body::Cntl(control)));
        let late = Header { seq: 100, ..Header::new(Key::returned(7), Format::Data) };
        parts.inbound.handle_data(&late, &Payload { data: &[7; 50], tag: None });
        packet.clear();
        assert_eq!(parts.composer().status(0, &mut packet), (true, false));
        let Ok(Body::Ecntl(said, spans)) = Frame::open(&packet).unwrap().body() else { panic!() };
        assert_eq!((said, spans.iter().collect()), (control, vec![Span { left: 100, right: 150 }]));
        packet.clear();
        assert!(parts.composer().tcntl(Options::SREQ, &mut packet));
        let Ok(Body::Tcntl(said, traffic)) = Frame::open(&packet).unwrap().body() else { panic!() };
        assert_eq!((said.control, said.xkey), (control, 7));
        let data_len_max = (1_452 - HEADER_LEN) as u32;
        assert_eq!(traffic.limits, Some(Limits { data_len_max, ..Limits::default() }));
    }

    /// JCNTL: a member asks; a transmitter answers each under its own key. DIAG: no text.
    #[test]
    fn what_goes_to_one_member_has_its_key_and_what_it_asked() {
        let parts = parts(Service::ReliableMulticast, Mode::default());
        let asks = header(|into| _ = parts.composer().request_to_join(12, into));
        assert_eq!((asks.options, asks.sync), (Options::SREQ | Options::MULTI, 12));
        let invites = header(|into| _ = parts.composer().invitation(into));
        assert_eq!((invites.format, invites.sync), (Format::First, 10));
        for (due, format, seq) in [
            (Due::Offer, Format::Jcntl, 0),
            (Due::Admission, Format::Jcntl, 600),
            (Due::Status, Format::Cntl, 0),
            (Due::Question, Format::Cntl, 0),
        ] {
            let word = Word { due, to: at(3), key: 33, offered: 44, asked: 5, start: 600 };
            let mut packet = Vec::new();
            assert!(parts.composer().word(&word, &mut packet));
            let frame = Frame::open(&packet).unwrap();
            let said = frame.header;
            assert_eq!((said.key, said.format, said.seq), (Key::returned(33), format, seq));
            let asks = matches!(due, Due::Admission | Due::Question);
            assert_eq!(said.options.has(Options::SREQ), asks, "{due:?}");
            let echo = match frame.body().unwrap() {
                Body::Jcntl(said, ..) => (said.control.echo, said.xkey),
                Body::Cntl(said) => (said.echo, 44),
                other => panic!("{other:?}"),
            };
            assert_eq!(echo, (5, 44), "{due:?}");
        }
        let remark = (Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        let said = header(|into| _ = parts.composer().remark(remark, into));
        assert_eq!((said.format, said.key), (Format::Diag, Key::returned(9)));
    }
}
