//! [`Outbound`]: the user's stream on its way to the peer, and when it waits.
//!
//! ```text
//!   write --> Sender --> pieces, cut by length and rate --> what is asked with each: Requests
//!              ^  |  '-- more is announced: 5 ms, then it goes as it is
//!              |  '----- the window is closed: asked for after WTIMER, then after twice the time
//!              '-------- report: what has arrived <-- up to where: Requests <-- status
//! ```
//!
//! Invariants: status is asked for with every piece after which nothing more can go, so a sender
//! never waits for nothing; WCLOSE is on the packet that holds the last byte and on what follows
//! it, not on what is sent again from before it, because the end of the stream is where the packet
//! with WCLOSE ends (decided here: the published descriptions call the bits sticky and do not speak
//! of that).

use super::length::{DATA_LEN_MIN, Length};
use super::terms::Terms;
use crate::arrival::Message;
use crate::config::{Config, Mode};
use crate::flush_timer::FlushTimer;
use crate::members::{Heard, Settled};
use crate::rate::Rate;
use crate::requests::Requests;
use crate::sender::{Piece, Report, Sender};
use crate::wire::{Control, HEADER_LEN, Limits, Options, Spans, TAG_LEN};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

#[cfg(test)]
mod tests;

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

/// Why no piece leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// There is none, or it waits for credit.
    Nothing,
    /// The peer is to show its address first.
    Proof,
}

/// What is asked with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The option that asks, where one does.
    pub options: Options,
    /// The number of the next request after the piece, or with it.
    pub sync: u32,
}

/// What status has told of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether it is the answer to a request of this end.
    pub is_answer: bool,
    /// Whether it says what can be.
    pub is_sound: bool,
    /// Whether all up to a request for delivery is with the peer's user.
    pub is_delivered: bool,
}

/// The user's stream.
#[derive(Debug)]
pub struct Outbound {
    sender: Sender,
    rate: Rate,
    length: Length,
    /// When what waits for more that was announced goes out without it.
    flush_timer: FlushTimer,
    /// When a closed window is asked for, and how long was waited for it.
    window_at: Option<Time>,
    window_wait: Duration,
    wants_capacity: bool,
    /// The user had more than there was room for while most of it was under way, since it grew.
    is_held_up: bool,
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
    pub fn new(now: Time, config: &Config, mode: &Mode) -> Self {
        let (buffer_len, window) = (config.buffer_len, config.first_window);
        Self {
            sender: Sender::new(buffer_len, window, mode.without_repair, mode.without_window),
            rate: Rate::new(now, mode.limits.out_rate, mode.limits.out_burst),
            length: Length::new(config),
            flush_timer: FlushTimer::default(),
            window_at: None,
            window_wait: Duration::ZERO,
            wants_capacity: false,
            is_held_up: false,
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

    pub const fn rate(&self) -> &Rate {
        &self.rate
    }

    pub const fn length(&self) -> &Length {
        &self.length
    }

    /// The value of EDGE on what is sent.
    pub const fn edge(&self) -> bool {
        self.edge
    }

    /// Keeps more than now, to `most` at most, where that holds it up, and takes that from `left`;
    /// whether it does.
    pub fn grow(&mut self, most: usize, left: &mut usize) -> bool {
        let grows = self.is_held_up && self.sender.grow(most, left);
        self.is_held_up &= !grows;
        grows
    }

    /// Whether the user may write more, and the peer takes more.
    pub const fn is_open(&self) -> bool {
        !self.sender.is_finished() && !self.is_closed
    }

    /// Whether all was sent, and the peer takes no more.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.sender.is_all_sent()
    }

    /// When [`Outbound::handle_time`] has something to do; else `NEVER`.
    pub fn flush_at(&self) -> Time {
        self.flush_timer.until()
    }

    /// When data may go that waits for credit, or for more.
    pub fn data_at(&self) -> Time {
        self.rate.awaited().min(self.flush_at())
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
        self.wants_capacity |= taken < data.len();
        self.is_held_up |= taken < data.len() && self.sender.is_mostly_under_way();
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

    /// The peer's limits hold from now on, where it has said any that are narrower than ours.
    pub fn adopt(&mut self, now: Time, terms: &mut Terms, theirs: Option<Limits>) {
        let Some(theirs) = theirs else { return };
        terms.handle_limits(theirs);
        let (rate, burst) = terms.pace();
        self.rate.set(now, rate, burst);
        self.length.handle_limit(theirs.data_len_max);
    }

    /// Packets of more than `len` bytes do not get through; true where they were longer.
    pub fn shorten(&mut self, len: usize) -> bool {
        self.length.shorten(len)
    }

    /// The peer complains of the size of packets; returns the limit that holds.
    pub fn handle_complaint(&mut self, text: &[u8]) -> u32 {
        self.length.handle_complaint(text)
    }

    /// Status came.
    pub fn handle_status(
        &mut self,
        now: Time,
        control: &Control,
        spans: Option<Spans<'_>>,
        requests: &mut Requests,
    ) -> Told {
        let answer = requests.handle_status(now, control.echo);
        let (asked_up_to, may_resend) = (answer.up_to, answer.is_free);
        let report = Report { control: *control, spans, asked_up_to, may_resend };
        let is_sound = self.sender.handle_report(&report);
        let is_shorter = is_sound && self.length.handle_report(&report);
        requests.want_traffic(is_shorter);
        self.watch_window(now, requests.is_waiting(), requests.timeout());
        Told { is_answer: asked_up_to.is_some(), is_sound, is_delivered: answer.is_delivered }
    }

    /// One of several who all get the stream has said this; returns where the stream is.
    pub fn handle_member_status(
        &mut self,
        control: &Control,
        spans: Option<Spans<'_>>,
        requests: &Requests,
    ) -> Heard {
        let (echo, sync) = (control.echo, requests.sync());
        let report = Report {
            control: *control,
            spans,
            asked_up_to: requests.up_to(echo),
            may_resend: !requests.is_in_handshake() || echo == sync,
        };
        self.sender.handle_member_report(&report);
        let (sender, is_delivery) = (&self.sender, requests.is_delivery(echo));
        let end = sender.is_finished().then(|| sender.end());
        Heard { next: sender.next(), end, sync, is_delivery }
    }

    /// What all who get the stream have said at least; true where all up to a request for delivery
    /// is with their users.
    pub fn settle(&mut self, now: Time, settled: &Settled, requests: &mut Requests) -> bool {
        self.sender.settle(&settled.floor);
        if let Some(heard) = settled.heard {
            requests.handle_sign_of_life(heard);
        }
        if let Some(echo) = settled.echo.filter(|echo| !requests.is_delivery(*echo)) {
            requests.handle_status(now, echo);
        }
        let answered = settled.delivered;
        let is_delivered =
            answered.is_some_and(|echo| requests.handle_echo(now, echo).is_delivered);
        self.watch_window(now, requests.is_waiting(), requests.timeout());
        is_delivered
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
    pub fn take_capacity(&mut self) -> bool {
        let is_free = self.wants_capacity && self.sender.capacity_left() > 0;
        self.wants_capacity &= !is_free;
        is_free
    }

    /// WCLOSE where a packet ends at the end of the stream.
    pub fn close_options(&self, packet_end: u64) -> Options {
        let is_end = self.sender.is_finished() && packet_end == self.sender.end();
        Options::WCLOSE.when(is_end)
    }

    /// The data of a FIRST, and what is asked with it: as much as it holds behind an address of so
    /// many bytes; again, the same.
    pub fn take_front(
        &mut self,
        now: Time,
        terms: &Terms,
        segment_len: usize,
        requests: &mut Requests,
    ) -> Piece {
        let is_shorter = self.length.shorten_unanswered(requests.turns());
        requests.want_traffic(is_shorter && !terms.is_quiet());
        let traffic_len = terms.traffic(self.length.packet_max()).len();
        let head_len = HEADER_LEN + TAG_LEN + segment_len + traffic_len;
        let sender = &self.sender;
        let is_again = sender.next() > 0 || requests.is_in_handshake();
        let piece = sender.peek_first(self.length.first_len_max(head_len, is_again));
        self.length.handle_first(piece.len);
        if !terms.is_quiet() {
            requests.ask(now, sender.next().max(piece.end()), false);
        }
        piece
    }

    /// A FIRST has been sent with this data and these options; `sync` is the latest request.
    pub fn handle_front_sent(&mut self, now: Time, piece: &Piece, options: Options, sync: u32) {
        self.handle_sent(piece, options, sync);
        self.rate.take(now, piece.len);
    }

    /// Takes what leaves next: what lacks, what is new, or the end of the stream.
    ///
    /// # Errors
    /// Why nothing does; a packet that the peer does not afford waits for its proof.
    pub fn take_piece(
        &mut self,
        now: Time,
        is_repaired: bool,
        affords: impl Fn(usize) -> bool,
    ) -> Result<Piece, Wait> {
        let Some(piece) = self.sender.peek(self.length.data_max()) else {
            return self.empty_end().ok_or(Wait::Nothing);
        };
        if !affords(HEADER_LEN + TAG_LEN + piece.len) {
            return Err(Wait::Proof);
        }
        let Some(piece) = self.within_credit(now, piece, is_repaired) else {
            self.rate.wait(true);
            return Err(Wait::Nothing);
        };
        self.rate.take(now, piece.len);
        Ok(piece)
    }

    /// What of a piece may leave now. Credit that is left for less than a packet would be gone with
    /// its period: what is repaired is cut to it. What is not repaired is left whole, because two
    /// packets are lost more often than one.
    fn within_credit(&mut self, now: Time, piece: Piece, is_repaired: bool) -> Option<Piece> {
        if self.rate.covers(now, piece.len) {
            return Some(piece);
        }
        let left = self.rate.left(now);
        let is_worth_it = left >= DATA_LEN_MIN && is_repaired;
        is_worth_it.then(|| self.sender.peek(left))?
    }

    /// Nothing waits for credit, as far as is known.
    pub fn forget_wait(&mut self) {
        self.rate.wait(false);
    }

    /// The end of the stream as a packet without data, when the last data did not say it.
    fn empty_end(&self) -> Option<Piece> {
        let (seq, len, tag) = (self.sender.next(), 0, None);
        let is_missing = self.sender.is_all_sent() && !self.is_end_told;
        is_missing.then_some(Piece { seq, len, is_end: false, tag, is_again: false })
    }

    /// The request that goes with a piece; whether the packet `closes` the stream.
    pub fn ask_with(
        &mut self,
        now: Time,
        (piece, closes): (&Piece, bool),
        terms: &Terms,
        requests: &mut Requests,
    ) -> Asked {
        let question = match terms.is_quiet() {
            true => Question::None,
            false => self.take_question(piece, terms.mode(), closes),
        };
        if question == Question::None {
            let (options, sync) = (Options::NONE, requests.sync().wrapping_add(1));
            return Asked { options, sync };
        }
        let is_delivery = question == Question::Delivery;
        let up_to = self.sender.next().max(piece.end());
        let sync = requests.ask(now, up_to, is_delivery);
        let status = Options::SREQ.when(!terms.mode().edge);
        Asked { options: if is_delivery { Options::DREQ } else { status }, sync }
    }

    /// What is asked with a piece. Asked is after enough bytes, and with every packet after which
    /// nothing more can go (one that `closes` too); who neither repairs nor heeds a window asks at
    /// the end only.
    fn take_question(&mut self, piece: &Piece, mode: &Mode, closes: bool) -> Question {
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

    /// A piece is on its way, of which the peer will say whether it has arrived. What has no room
    /// there is refused, which looks as if it had vanished.
    pub fn expect_report(&mut self, piece: &Piece, sync: u32) {
        if self.sender.is_within_window(piece.end()) {
            self.length.handle_sent(piece, sync);
        }
    }

    /// A piece has been sent with these options; `sync` is the number of the next request after it,
    /// or with it.
    pub fn handle_sent(&mut self, piece: &Piece, options: Options, sync: u32) {
        self.is_end_told |= options.has(Options::WCLOSE);
        self.sender.sent(piece, sync);
    }
}
