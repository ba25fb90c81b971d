//! [`Inbound`]: the peer's stream on its way to the user.
//!
//! ```text
//!   open --WCLOSE--> bytes lack? --all here, or the user stops--> closed: RCLOSE is told
//! ```
//!
//! Invariant: that this end takes no more is told once by a packet of its own making; every packet
//! says it from then on.

use crate::arrival::{Arrival, Outcome, Read};
use crate::config::{Config, Mode};
use crate::receiver::Receiver;
use crate::wire::{Header, Options, Payload, Span};
use dacapo_base::Time;

/// The peer's stream.
#[derive(Debug)]
pub struct Inbound {
    receiver: Receiver,
    /// The peer sends nothing again (NOERR).
    is_lossy: bool,
    /// RCLOSE has been sent, or is due.
    is_close_told: bool,
    /// Packets with a tag that had no room and are not sent again.
    refused: u64,
}

impl Inbound {
    /// A stream whose first byte has the number `start`.
    pub fn new(start: u64, config: &Config, mode: &Mode) -> Self {
        let is_selective = mode.retransmission == crate::Retransmission::Selective;
        let receiver = Receiver::new(start, config.buffer_len, is_selective, mode.reserve)
            .growing_to(config.buffer_len_max);
        Self { receiver, is_lossy: false, is_close_told: false, refused: 0 }
    }

    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Keeps more or less than now, where all of the window was used, and takes that from `left`.
    pub fn adjust(&mut self, now: Time, left: &mut usize) {
        self.receiver.adjust(now, left);
    }

    /// Whether nothing more is taken: all has come, or the user reads no more.
    pub fn is_closed(&self) -> bool {
        self.receiver.is_complete() || self.receiver.is_stopped()
    }

    /// Whether bytes lack that are sent again.
    pub fn lacks(&self) -> bool {
        self.receiver.has_gap() && !self.is_lossy
    }

    /// What is said of the stream beyond `rseq` in a packet with room for `count` spans: what has
    /// come, where all of it can be named. Else what lacks, in several packets (decided here), of
    /// which this has the number `packet`: in each the first gap, by which that is known, and
    /// others in turn; and whether another packet goes on.
    pub fn spans(&self, packet: u8, count: usize) -> (Vec<Span>, bool) {
        let mut arrived = self.receiver.spans();
        if arrived.len() > count && count > 1 {
            return gaps(&arrived, self.receiver.rseq(), packet, count);
        }
        arrived.truncate(count);
        (arrived, false)
    }

    /// Takes the data of a packet. A gap is new only where it is to be reported at once.
    pub fn handle_data(&mut self, header: &Header, payload: &Payload<'_>) -> Outcome {
        let options = header.options;
        self.is_lossy = options.has(Options::NOERR);
        let mut outcome = self.receiver.accept(&Arrival {
            seq: header.seq,
            data: payload.data,
            tag: payload.tag,
            is_end: options.has(Options::EOM),
            is_lossy: self.is_lossy,
            is_unbounded: options.has(Options::NOFLOW),
        });
        // What is sent again comes again.
        let is_lost = outcome.is_refused && self.is_lossy;
        self.refused += u64::from(is_lost && payload.tag.is_some());
        outcome.is_gap_new &= options.has(Options::FASTNAK) && !self.is_lossy;
        outcome
    }

    /// An empty message can only be carried by the packet that opens, which is sent until it is
    /// answered; elsewhere it could get lost without a gap. True where this is one.
    pub fn handle_empty(&mut self, header: &Header, payload: &Payload<'_>) -> bool {
        let is_one = payload.data.is_empty() && header.options.has(Options::EOM);
        if is_one {
            self.receiver.mark_empty(payload.tag);
        }
        is_one
    }

    /// Who sends nothing again asks after a silence: what it sent before is here or lost. True
    /// where that is so.
    pub fn handle_request(&mut self, header: &Header) -> bool {
        let is_one = header.options.has(Options::NOERR | Options::SREQ);
        if is_one {
            self.receiver.skip_to(header.seq);
        }
        is_one
    }

    /// The stream ends where the packet does, when it says so (WCLOSE). False where it said
    /// otherwise before.
    pub fn handle_close(&mut self, options: Options, packet_end: u64) -> bool {
        if !options.has(Options::WCLOSE) {
            return true;
        }
        let is_sound = self.receiver.set_end(packet_end);
        if is_sound && (options.has(Options::NOERR) || self.is_lossy) {
            self.receiver.skip_to(packet_end);
        }
        is_sound
    }

    /// Whether RCLOSE is to be told now; once.
    pub fn take_close(&mut self) -> bool {
        self.is_closed() && !std::mem::replace(&mut self.is_close_told, true)
    }

    /// A packet of data with these options has been sent.
    pub fn handle_sent(&mut self, options: Options) {
        self.is_close_told |= options.has(Options::RCLOSE);
    }

    /// Takes how many packets with a tag were lost for want of room.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Gives the user what is next.
    pub fn read(&mut self, into: &mut [u8]) -> Read {
        self.receiver.read(into)
    }

    /// The user has room for `len` bytes more (reservation).
    pub fn post(&mut self, len: usize) {
        self.receiver.post(len);
    }

    /// The user reads no more; true the first time.
    pub fn stop(&mut self) -> bool {
        let is_new = !self.receiver.is_stopped();
        if is_new {
            self.receiver.stop();
        }
        is_new
    }

    /// The stream begins here, before anything has come.
    pub fn restart(&mut self, start: u64) {
        self.receiver.restart(start);
    }

    /// One past the last byte that is taken, as it is said to the peer from now on.
    pub fn tell_alloc(&mut self) -> u64 {
        self.receiver.tell_alloc()
    }
}

/// The most packets in which is said what lacks; what lacks beyond is said another time.
const PACKETS_MAX: u8 = 8;

/// What lacks: the first gap, which begins at `rseq`, and of the others those that are this
/// packet's turn; and whether there are more.
fn gaps(arrived: &[Span], rseq: u64, packet: u8, count: usize) -> (Vec<Span>, bool) {
    let lefts = std::iter::once(rseq).chain(arrived.iter().map(|span| span.right));
    let mut all = lefts.zip(arrived).map(|(left, span)| Span { left, right: span.left });
    let mut gaps: Vec<Span> = all.next().into_iter().collect();
    let each = count.saturating_sub(1);
    let mut rest = all.skip(each.saturating_mul(packet.into()));
    gaps.extend(rest.by_ref().take(each));
    (gaps, rest.next().is_some() && packet < PACKETS_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Format, Key};

    fn inbound() -> Inbound {
        Inbound::new(0, &Config { buffer_len: 4_000, ..Config::default() }, &Mode::default())
    }

    fn header(options: Options, seq: u64) -> Header {
        Header { options, seq, ..Header::new(Key::returned(7), Format::Data) }
    }

    fn take(inbound: &mut Inbound, options: Options, seq: u64, len: usize) -> Outcome {
        let (data, tag) = (vec![7; len], Some([1; 8]));
        inbound.handle_data(&header(options, seq), &Payload { data: &data, tag })
    }

    /// FASTNAK: a gap is reported at once where it is asked for and can be repaired.
    #[test]
    fn a_gap_is_news_with_fastnak_only_and_never_with_noerr() {
        for (options, is_news, lacks) in [
            (Options::NONE, false, true),
            (Options::FASTNAK, true, true),
            (Options::FASTNAK | Options::NOERR, false, false),
        ] {
            let mut inbound = inbound();
            let outcome = take(&mut inbound, options, 100, 10);
            assert_eq!((outcome.is_gap_new, inbound.lacks()), (is_news, lacks), "{options:?}");
        }
    }

    /// WCLOSE ends the stream where the packet ends; a second word must agree.
    #[test]
    fn the_stream_ends_where_the_packet_with_wclose_does() {
        let mut inbound = inbound();
        assert!(inbound.handle_close(Options::NONE, 3) && !inbound.is_closed());
        take(&mut inbound, Options::NONE, 0, 10);
        assert!(!inbound.handle_close(Options::WCLOSE, 9), "bytes beyond it have come");
        assert!(inbound.handle_close(Options::WCLOSE, 20) && !inbound.is_closed());
        assert!(!inbound.handle_close(Options::WCLOSE, 21));
        assert!(!inbound.take_close());
        assert!(take(&mut inbound, Options::NONE, 20, 1).is_violation);
        take(&mut inbound, Options::NONE, 10, 10);
        assert!(inbound.is_closed() && inbound.take_close() && !inbound.take_close());
    }

    /// NOERR: what lacks at the end, or before a request, is lost.
    #[test]
    fn what_is_not_sent_again_is_given_up_at_the_end_and_at_a_request() {
        let mut by_end = inbound();
        assert!(by_end.handle_close(Options::WCLOSE | Options::NOERR, 10) && by_end.is_closed());
        let mut by_request = inbound();
        assert!(!by_request.handle_request(&header(Options::SREQ, 5)));
        assert!(by_request.handle_request(&header(Options::SREQ | Options::NOERR, 5)));
        assert_eq!(by_request.read(&mut [0; 10]), Read::Hole { len: 5 });
        let mut lossy = inbound();
        take(&mut lossy, Options::NOERR, 0, 5);
        assert!(lossy.handle_close(Options::WCLOSE, 10) && lossy.is_closed());
    }

    /// RCLOSE goes with data or by itself, once.
    #[test]
    fn a_reader_that_stops_tells_so_once() {
        let mut inbound = inbound();
        assert!(inbound.stop() && !inbound.stop());
        assert!(inbound.take_close() && !inbound.take_close());
        let mut told = super::tests::inbound();
        told.stop();
        told.handle_sent(Options::NONE);
        told.handle_sent(Options::RCLOSE);
        assert!(!told.take_close(), "data has said it");
    }

    #[test]
    fn tagged_packets_without_room_count_where_they_do_not_come_again() {
        let mut inbound = inbound();
        take(&mut inbound, Options::NONE, 3_999, 10);
        assert_eq!(inbound.take_refused(), 0);
        take(&mut inbound, Options::NOERR, 3_999, 10);
        assert_eq!((inbound.take_refused(), inbound.take_refused()), (1, 0));
    }

    #[test]
    fn an_empty_message_is_one_with_an_end_and_no_data() {
        let is_one = |options, data| {
            inbound().handle_empty(&header(options, 0), &Payload { data, tag: None })
        };
        assert!(is_one(Options::EOM, b""));
        assert!(!is_one(Options::EOM, b"1") && !is_one(Options::NONE, b""));
    }

    /// ECNTL: of more spans than a packet holds what lacks is named, in several.
    #[test]
    fn what_a_packet_does_not_hold_is_said_by_what_lacks_in_several() {
        let mut inbound = inbound();
        for seq in [100, 200, 300, 400, 500] {
            take(&mut inbound, Options::NONE, seq, 10);
        }
        let said = |packet, count| {
            let (spans, has_more) = inbound.spans(packet, count);
            (spans.iter().map(|it| (it.left, it.right)).collect::<Vec<_>>(), has_more)
        };
        let arrived = [100, 200, 300, 400, 500].map(|left| (left, left + 10));
        assert_eq!(said(0, 5), (arrived.to_vec(), false));
        assert_eq!(said(0, 3), (vec![(0, 100), (110, 200), (210, 300)], true));
        assert_eq!(said(1, 3), (vec![(0, 100), (310, 400), (410, 500)], false));
        assert_eq!(said(2, 3), (vec![(0, 100)], false), "they were filled meanwhile");
        assert_eq!((said(0, 1), said(0, 0)), ((vec![(100, 110)], false), (vec![], false)));
        for place in 6..39 {
            take(&mut inbound, Options::NONE, 100 * place, 10);
        }
        let packets = (0..).take_while(|packet| inbound.spans(*packet, 2).1).count();
        assert_eq!(packets, 7, "and one more");
    }
}
