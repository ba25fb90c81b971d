//! [`Outbound`]: the user's stream on its way to the peer, and when it waits.
//!
//! ```text
//!   write --> Sender --> pieces --> what is asked with each: nothing | SREQ | DREQ | EDGE
//!               |  '-- more is announced: 5 ms, then it goes as it is
//!               '----- the window is closed: asked for after WTIMER, then after twice the time
//! ```
//!
//! Invariants: status is asked for with every piece after which nothing more can go, so a sender
//! never waits for nothing; WCLOSE is on the packet that holds the last byte and on what follows
//! it, not on what is sent again from before it, because the end of the stream is where the packet
//! with WCLOSE ends (decided here: the published descriptions call the bits sticky and do not speak
//! of that).

use crate::arrival::Message;
use crate::config::{Config, Mode};
use crate::flush_timer::FlushTimer;
use crate::sender::{Piece, Report, Sender};
use crate::wire::{Control, Options};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Status is asked for after so many bytes at the latest, a quarter of a megabyte, however wide the
/// window: what was lost when it was sent again is known only by what is answered after that.
const ASK_LEN_MAX: usize = 256 << 10;
/// The longest that a closed window is waited for before it is asked for.
const WINDOW_WAIT_MAX: Duration = Duration::from_secs(60);

/// What goes with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nothing is asked.
    None,
    /// Status, by SREQ or by a change of EDGE.
    Status,
    /// Delivery.
    Delivery,
}

/// The user's stream.
#[derive(Debug)]
pub struct Outbound {
    sender: Sender,
    /// When what waits for more that was announced goes out without it.
    flush_timer: FlushTimer,
    /// When a closed window is asked for, and how long was waited for it.
    window_at: Option<Time>,
    window_wait: Duration,
    wants_room: bool,
    /// Places up to which the user wants to know of delivery.
    deliveries: VecDeque<u64>,
    ask_len: u64,
    unasked: u64,
    edge: bool,
    /// WCLOSE has been sent.
    is_end_told: bool,
    /// RCLOSE has come.
    is_closed: bool,
}

impl Outbound {
    /// Nothing is written.
    pub fn new(config: &Config, mode: &Mode) -> Self {
        let (buffer_len, window) = (config.buffer_len, config.first_window);
        Self {
            sender: Sender::new(buffer_len, window, mode.without_repair, mode.without_window),
            flush_timer: FlushTimer::default(),
            window_at: None,
            window_wait: Duration::ZERO,
            wants_room: false,
            deliveries: VecDeque::new(),
            ask_len: (buffer_len / 4).min(ASK_LEN_MAX) as u64,
            unasked: 0,
            edge: false,
            is_end_told: false,
            is_closed: false,
        }
    }

    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The value of EDGE on what is sent.
    pub const fn edge(&self) -> bool {
        self.edge
    }

    /// Whether the peer has said that it takes no more (RCLOSE).
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether all was sent, and the peer takes no more.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.sender.is_all_sent()
    }

    /// When [`Outbound::handle_time`] has something to do; else `NEVER`.
    pub fn flush_at(&self) -> Time {
        self.flush_timer.until()
    }

    /// When [`Outbound::take_probe`] has something to do; else `NEVER`.
    pub fn window_at(&self) -> Time {
        self.window_at.unwrap_or(Time::NEVER)
    }

    /// Takes as much of a message as there is room for.
    pub fn write(&mut self, now: Time, message: &Message<'_>) -> usize {
        let Message { data, is_end, tag, asks_delivery, has_more } = *message;
        let taken = self.sender.write(data, is_end, tag);
        if has_more && !is_end && !asks_delivery {
            self.sender.hold();
            self.flush_timer.begin(now, self.sender.next(), self.sender.end());
        } else {
            self.sender.let_go();
            self.flush_timer.clear();
        }
        self.wants_room |= taken < data.len();
        if asks_delivery && taken == data.len() {
            self.deliveries.push_back(self.sender.end());
        }
        taken
    }

    /// The user writes no more.
    pub fn finish(&mut self) {
        self.sender.finish();
        self.flush_timer.clear();
    }

    /// Nothing more is sent, and nothing again.
    pub fn stop(&mut self) {
        self.sender.stop();
        self.flush_timer.clear();
        self.deliveries.clear();
    }

    /// This end has no stream, and says no end of one.
    pub fn disuse(&mut self) {
        self.stop();
        self.is_end_told = true;
    }

    /// The peer takes no more (RCLOSE): true the first time, and nothing is sent from then on.
    pub fn handle_close(&mut self) -> bool {
        let is_new = !std::mem::replace(&mut self.is_closed, true);
        if is_new {
            self.stop();
        }
        is_new
    }

    /// The peer has the association, or will never say so.
    pub fn confirm(&mut self) {
        self.sender.confirm();
    }

    /// Takes status. False when it says what cannot be: such is ignored.
    pub fn handle_report(&mut self, report: &Report<'_>) -> bool {
        self.sender.handle_report(report)
    }

    /// Takes status of one of several who all get the stream.
    pub fn handle_member_report(&mut self, report: &Report<'_>) {
        self.sender.handle_member_report(report);
    }

    /// What all who get the stream have said at least.
    pub fn settle(&mut self, floor: &Control) {
        self.sender.settle(floor);
    }

    /// More was announced and has not come: what there is goes out.
    pub fn handle_time(&mut self, now: Time) {
        if self.flush_timer.is_over(now, self.sender.next()) {
            self.sender.let_go();
        }
    }

    /// A window that stays closed is asked for, less and less often: after `timeout` first, unless
    /// a request is not answered yet.
    pub fn watch_window(&mut self, now: Time, is_waiting: bool, timeout: Duration) {
        if !self.sender.is_blocked() {
            self.window_at = None;
            self.window_wait = Duration::ZERO;
        } else if self.window_at.is_none() && !is_waiting {
            self.window_wait = (self.window_wait * 2).max(timeout).min(WINDOW_WAIT_MAX);
            self.window_at = Some(now + self.window_wait);
        }
    }

    /// Whether the closed window is to be asked for now; a probe of what lacks may go too.
    pub fn take_probe(&mut self, now: Time) -> bool {
        let is_due = self.window_at() <= now;
        if is_due {
            self.window_at = None;
            self.sender.allow_probe();
        }
        is_due
    }

    /// Whether there is room again for what could not be written; once.
    pub fn take_room(&mut self) -> bool {
        let is_room = self.wants_room && self.sender.room() > 0;
        self.wants_room &= !is_room;
        is_room
    }

    /// WCLOSE where a packet ends at the end of the stream.
    pub fn close_options(&self, packet_end: u64) -> Options {
        let is_end = self.sender.is_finished() && packet_end == self.sender.end();
        Options::WCLOSE.when(is_end)
    }

    /// The end of the stream as a packet without data, when the last data did not say it.
    pub fn empty_end(&self) -> Option<Piece> {
        let (seq, len, tag) = (self.sender.next(), 0, None);
        let is_missing = self.sender.is_all_sent() && !self.is_end_told;
        is_missing.then_some(Piece { seq, len, is_end: false, tag, is_again: false })
    }

    /// What is asked with a piece. Asked is after enough bytes, and with every packet after which
    /// nothing more can go (one that `closes` too); who neither repairs nor heeds a window asks at
    /// the end only.
    pub fn take_question(&mut self, piece: &Piece, mode: &Mode, closes: bool) -> Question {
        self.unasked = self.unasked.saturating_add(piece.len as u64);
        let is_blast = mode.without_repair && mode.without_window;
        let is_full = self.unasked >= self.ask_len || self.sender.is_last(piece);
        let end = piece.end();
        let is_delivery = self.deliveries.front().is_some_and(|place| *place <= end);
        if !(closes || is_delivery || is_full && !is_blast) {
            return Question::None;
        }
        while self.deliveries.front().is_some_and(|place| *place <= end) {
            self.deliveries.pop_front();
        }
        self.unasked = 0;
        if is_delivery {
            return Question::Delivery;
        }
        self.edge ^= mode.edge;
        Question::Status
    }

    /// A piece has been sent with these options; `sync` is the number of the next request after it,
    /// or with it.
    pub fn handle_sent(&mut self, piece: &Piece, options: Options, sync: u32) {
        self.is_end_told |= options.has(Options::WCLOSE);
        self.sender.sent(piece, sync);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000);
    const WAIT: Duration = Duration::from_millis(100);

    fn outbound(mode: Mode) -> Outbound {
        let config = Config { buffer_len: 4_000, first_window: 2_000, ..Config::default() };
        Outbound::new(&config, &mode)
    }

    fn written(mode: Mode, len: usize) -> Outbound {
        let mut outbound = outbound(mode);
        outbound.write(NOW, &Message::part(&vec![7; len]));
        outbound
    }

    /// Sends the next piece, and says what was asked with it.
    fn send(outbound: &mut Outbound, mode: &Mode) -> Question {
        let piece = outbound.sender().peek(400).or(outbound.empty_end()).expect("a piece");
        let closes = outbound.close_options(piece.end());
        let question = outbound.take_question(&piece, mode, closes.has(Options::WCLOSE));
        outbound.handle_sent(&piece, closes, 1);
        question
    }

    fn status(rseq: u64, alloc: u64) -> Report<'static> {
        let control = Control { rseq, alloc, echo: 1 };
        Report { control, spans: None, asked_up_to: Some(rseq), may_resend: true }
    }

    /// SREQ: after a quarter of the buffer, and with what nothing can follow.
    #[test]
    fn status_is_asked_for_after_enough_bytes_and_with_the_last() {
        let mode = Mode::default();
        let mut outbound = written(mode, 1_400);
        let asked: Vec<Question> = (0..4).map(|_| send(&mut outbound, &mode)).collect();
        let (none, status) = (Question::None, Question::Status);
        assert_eq!(asked, [none, none, status, status], "1,200 bytes; the last");
        let mut blocked = written(mode, 3_000);
        assert!((0..5).map(|_| send(&mut blocked, &mode)).eq([none, none, status, none, status]));
        assert_eq!(blocked.sender().peek(400), None, "the window is full");
    }

    /// EDGE in place of SREQ; DREQ goes with the byte that is to be delivered.
    #[test]
    fn edge_changes_with_each_question_but_delivery() {
        let mode = Mode { edge: true, ..Mode::default() };
        let mut outbound = outbound(mode);
        let asks_delivery = true;
        outbound.write(NOW, &Message { asks_delivery, ..Message::part(&[7; 100]) });
        assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Delivery, false));
        outbound.write(NOW, &Message::part(&[7; 100]));
        assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Status, true));
        outbound.write(NOW, &Message::part(&[7; 100]));
        assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Status, false));
    }

    #[test]
    fn who_neither_repairs_nor_heeds_a_window_asks_at_the_end() {
        let mode = Mode { without_repair: true, without_window: true, ..Mode::default() };
        let mut outbound = written(mode, 4_000);
        assert!((0..10).all(|_| send(&mut outbound, &mode) == Question::None));
        outbound.finish();
        assert_eq!(send(&mut outbound, &mode), Question::Status, "WCLOSE");
    }

    /// WCLOSE: where the stream ends, by a packet without data if need be, once.
    #[test]
    fn the_end_is_on_the_packet_that_ends_there() {
        let mode = Mode::default();
        let mut outbound = written(mode, 500);
        outbound.finish();
        assert_eq!(outbound.close_options(400), Options::NONE);
        assert_eq!(outbound.close_options(500), Options::WCLOSE);
        send(&mut outbound, &mode);
        assert_eq!(outbound.empty_end(), None, "bytes wait");
        send(&mut outbound, &mode);
        assert_eq!(outbound.empty_end(), None, "it has been said");

        let mut late = written(mode, 400);
        send(&mut late, &mode);
        late.finish();
        assert_eq!(late.empty_end().map(|piece| (piece.seq, piece.len)), Some((400, 0)));
        send(&mut late, &mode);
        assert_eq!(late.empty_end(), None);
        assert!(!late.is_over() && late.handle_close() && late.is_over());
    }

    /// RCLOSE: what was not sent never is.
    #[test]
    fn a_peer_that_takes_no_more_ends_the_stream_once() {
        let mut outbound = written(Mode::default(), 500);
        assert!(outbound.handle_close() && !outbound.handle_close());
        assert_eq!((outbound.sender().peek(400), outbound.sender().room()), (None, 0));
        assert!(outbound.is_over(), "nothing is left");
        let mut unused = super::tests::outbound(Mode::default());
        unused.disuse();
        assert_eq!(unused.empty_end(), None);
    }

    /// A closed window is asked for after WTIMER, then after twice the time, at most a minute.
    #[test]
    fn a_closed_window_is_asked_for_less_and_less_often() {
        let mode = Mode::default();
        let mut outbound = written(mode, 3_000);
        (0..5).for_each(|_| _ = send(&mut outbound, &mode));
        outbound.watch_window(NOW, true, WAIT);
        assert_eq!(outbound.window_at(), Time::NEVER, "the answer may open it");
        let mut now = NOW;
        for wait in [100, 200, 400, 800] {
            outbound.watch_window(now, false, WAIT);
            outbound.watch_window(now + WAIT / 2, false, WAIT);
            assert!(!outbound.take_probe(now));
            now += Duration::from_millis(wait);
            assert_eq!(outbound.window_at(), now);
            assert!(outbound.take_probe(now) && !outbound.take_probe(now));
        }
        for _ in 0..20 {
            outbound.watch_window(now, false, WAIT);
            now = outbound.window_at();
            assert!(outbound.take_probe(now));
        }
        outbound.watch_window(now, false, WAIT);
        assert_eq!(outbound.window_at(), now + WINDOW_WAIT_MAX);
        assert!(outbound.handle_report(&status(2_000, 4_000)));
        outbound.watch_window(now, false, WAIT);
        assert_eq!(outbound.window_at(), Time::NEVER);
        outbound.write(now, &Message::part(&[7; 4_000]));
        (0..5).for_each(|_| _ = send(&mut outbound, &mode));
        outbound.watch_window(now, false, WAIT);
        assert_eq!(outbound.window_at(), now + WAIT, "from the beginning");
    }

    #[test]
    fn what_is_announced_is_waited_for_and_room_is_told_once() {
        let mut outbound = outbound(Mode::default());
        outbound.write(NOW, &Message { has_more: true, ..Message::part(&[7; 100]) });
        assert_eq!(outbound.sender().peek(400), None);
        outbound.handle_time(outbound.flush_at());
        assert_eq!(outbound.sender().peek(400).map(|piece| piece.len), Some(100));
        assert_eq!(outbound.flush_at(), Time::NEVER);

        assert_eq!(outbound.write(NOW, &Message::part(&[7; 4_000])), 3_900);
        assert!(!outbound.take_room());
        (0..5).for_each(|_| _ = send(&mut outbound, &Mode::default()));
        assert!(outbound.handle_report(&status(400, 2_000)));
        assert!(outbound.take_room() && !outbound.take_room());
    }
}
