//! [`Reassembly`]: the units of which some segments have come.
//!
//! Segments by unit and index, and the memory of which units are finished. What comes in order is a
//! list of pieces, each a packet or a train; only what comes ahead of its turn is sorted.
//!
//! ```text
//!            floor                         newest
//!   finished   |  partial  finished  partial |
//!   …          [  a a - ]  [ x ]     [ b - ] ]     at most `units` in the window
//!
//!   a partial unit    pieces |0 1 2 3|4 5|   next = 6   ahead {8, 9}
//! ```
//!
//! A unit of which nothing has come costs its place alone, so the window is as long as what is sent
//! again may be late; the units of which a part waits are fewer.
//!
//! Invariants: at most `UNITS_MAX` units in the window, of which `PARTIAL_MAX` are in work: beyond
//! that the oldest is given up; at most `unit_len_max` bytes per unit; a unit is passed up at most
//! once; nothing is allocated for what comes in order, once as many units have been in work as are
//! now.

use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use std::collections::{BTreeMap, VecDeque};

/// How many units may lie between the oldest unfinished and the newest.
const UNITS_MAX: usize = 2_048;

/// Of how many of them parts may wait for the rest.
const PARTIAL_MAX: usize = 256;

/// How many finished units are remembered, so that a repeated segment is told from a late one.
const REMEMBERED: usize = 128;

/// How far ahead of the newest unit a number may be before it is taken for junk.
const AHEAD_MAX: i16 = 16_384;

/// How many units that are over are kept for the memory of later ones.
const SPARE_MAX: usize = 16;

/// Segments of one unit that follow each other, in one packet.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The low bits of the unit's number.
    pub unit: u16,
    /// The index of its first segment.
    pub index: usize,
    /// True when its last segment is the last of the unit.
    pub last: bool,
    /// The segments.
    pub packet: Packet,
}

/// What became of a piece.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It waits for others of its unit.
    Kept,
    /// Its unit is whole: [`Reassembly::taken`] has the pieces in order.
    Whole,
    /// It came before, or its unit is finished.
    Repeated(Packet),
    /// Its unit was given up.
    Late(Packet),
    /// It contradicts what came, or is far from every unit.
    Strange(Packet),
    /// Its unit exceeds the largest allowed and is given up: [`Reassembly::taken`] has the other
    /// pieces.
    TooLarge(Packet),
}

#[derive(Debug)]
enum State {
    /// Nothing of it has come.
    Missing,
    Partial(Box<Partial>),
    Finished,
    GivenUp,
}

#[derive(Debug, Default)]
struct Partial {
    /// What came in order from the first segment on.
    pieces: Vec<Packet>,
    /// The index that is wanted next.
    next: usize,
    /// Single segments ahead of it, by index: one far behind the others costs no more than one in
    /// front.
    ahead: BTreeMap<usize, Packet>,
    count: Option<usize>,
    came: usize,
    len: usize,
    newest: Time,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    floor: u64,
    units: VecDeque<State>,
    unit_len_max: usize,
    /// The pieces of the unit that became whole or too large.
    taken: Vec<Packet>,
    /// Pieces of units that fell out of the window.
    given_up: Vec<Packet>,
    #[expect(clippy::vec_box, reason = "a box comes from the window, and goes there again")]
    spare: Vec<Box<Partial>>,
    /// How many units are partial.
    partial: usize,
    joining: Option<Joining>,
}

/// What is known of where a stream is that was joined in its middle.
#[derive(Clone, Copy, Debug)]
enum Joining {
    Nothing,
    /// The unit of the piece that came last; none has followed it yet.
    At(u16),
}

impl Reassembly {
    pub fn new(unit_len_max: usize) -> Self {
        Self {
            floor: 0,
            units: VecDeque::new(),
            unit_len_max,
            taken: Vec::new(),
            given_up: Vec::new(),
            spare: Vec::new(),
            partial: 0,
            joining: None,
        }
    }

    /// The first pieces that come say where in the numbers of units the stream is.
    pub fn join(&mut self) {
        self.joining = Some(Joining::Nothing);
    }

    /// While the stream is being joined: the unit of the first piece is the oldest. That is
    /// believed when a piece of the same unit or the next follows; until then another is taken
    /// instead, for the first may have been altered.
    fn find_beginning(&mut self, unit: u16) {
        let follows = match self.joining {
            None => return,
            Some(Joining::Nothing) => false,
            Some(Joining::At(last)) => unit.wrapping_sub(last) <= 1,
        };
        if follows {
            self.joining = None;
            return;
        }
        self.joining = Some(Joining::At(unit));
        while let Some(state) = self.units.pop_front() {
            self.let_go(state);
        }
        // A turn of the numbers lies below it, so that what comes late has a number too.
        self.floor = (1 << 16) + u64::from(unit);
    }

    /// The pieces of the unit that the last call made whole or found too large.
    pub fn taken(&mut self) -> &mut Vec<Packet> {
        &mut self.taken
    }

    /// The next piece of a unit that fell out of the window to make room.
    pub fn poll_given_up(&mut self) -> Option<Packet> {
        self.given_up.pop()
    }

    /// Whether a piece of several segments can be taken as a whole: it follows all that came of
    /// its unit.
    pub fn takes_run(&self, unit: u16, index: usize) -> bool {
        if self.joining.is_some() {
            return false;
        }
        match self.number(unit).map(|number| number.checked_sub(self.floor)) {
            Some(Some(place)) => match self.units.get(place as usize) {
                Some(State::Partial(partial)) => partial.next == index && partial.ahead.is_empty(),
                Some(State::Finished | State::GivenUp) => false,
                Some(State::Missing) | None => index == 0,
            },
            _ => false,
        }
    }

    /// The whole number of a unit; `None` when it is far from all that came.
    fn number(&self, unit: u16) -> Option<u64> {
        let newest = self.floor + self.units.len() as u64;
        let ahead = unit.wrapping_sub(newest as u16).cast_signed();
        if ahead > AHEAD_MAX {
            return None;
        }
        newest.checked_add_signed(i64::from(ahead))
    }

    /// Takes a piece; one of several segments only where [`Reassembly::takes_run`] says so.
    pub fn insert(&mut self, pool: &mut Pool, piece: Piece) -> Outcome {
        self.find_beginning(piece.unit);
        let Some(unit) = self.number(piece.unit) else {
            return Outcome::Strange(piece.packet);
        };
        if unit < self.floor {
            return Outcome::Late(piece.packet);
        }
        if self.is_whole_and_next(unit, &piece) {
            self.taken.push(piece.packet);
            self.units.push_back(State::Finished);
            self.raise_floor();
            return Outcome::Whole;
        }
        self.make_room(unit);
        let place = (unit - self.floor) as usize;
        if matches!(self.units[place], State::Missing) {
            self.begin(place);
        }
        let outcome = match &mut self.units[place] {
            State::Finished => Outcome::Repeated(piece.packet),
            State::Missing | State::GivenUp => Outcome::Late(piece.packet),
            State::Partial(partial) => partial.insert(pool, piece, self.unit_len_max),
        };
        let end = match outcome {
            Outcome::Whole => State::Finished,
            Outcome::TooLarge(_) => State::GivenUp,
            _ => return outcome,
        };
        self.take(place, end);
        self.raise_floor();
        outcome
    }

    /// Whether a piece is all of the unit behind the newest: what mostly comes where units are
    /// short. Nothing has to be kept of it.
    fn is_whole_and_next(&self, unit: u64, piece: &Piece) -> bool {
        let is_next = unit == self.floor + self.units.len() as u64 && self.units.len() < UNITS_MAX;
        let is_single = piece.index == 0 && piece.last && !piece.packet.is_train();
        is_next && is_single && piece.packet.payload_len() <= self.unit_len_max
    }

    /// The first of a unit comes: where as many are in work as may be, the oldest is given up.
    fn begin(&mut self, place: usize) {
        if self.partial == PARTIAL_MAX {
            let oldest = self.units.iter_mut().find(|state| matches!(state, State::Partial(_)));
            let state = oldest.map(|state| std::mem::replace(state, State::GivenUp));
            state.into_iter().for_each(|state| self.let_go(state));
        }
        self.partial += 1;
        self.units[place] = State::Partial(self.spare.pop().unwrap_or_default());
    }

    /// Takes the pieces of a unit out, which is then finished or given up.
    fn take(&mut self, place: usize, end: State) {
        if let State::Partial(mut partial) = std::mem::replace(&mut self.units[place], end) {
            partial.empty_into(&mut self.taken);
            self.keep_spare(partial);
        }
    }

    /// What has come of a unit is given up.
    fn let_go(&mut self, state: State) {
        if let State::Partial(mut partial) = state {
            partial.empty_into(&mut self.given_up);
            self.keep_spare(partial);
        }
    }

    /// A unit is partial no longer; its memory is used again.
    fn keep_spare(&mut self, partial: Box<Partial>) {
        self.partial -= 1;
        if self.spare.len() < SPARE_MAX {
            self.spare.push(partial);
        }
    }

    fn make_room(&mut self, unit: u64) {
        let oldest = (unit + 1).saturating_sub(UNITS_MAX as u64);
        while self.floor < oldest {
            match self.units.pop_front() {
                Some(state) => {
                    self.floor += 1;
                    self.let_go(state);
                }
                // Nothing lies between: go there at once.
                None => self.floor = oldest,
            }
        }
        while self.floor + self.units.len() as u64 <= unit {
            self.units.push_back(State::Missing);
        }
    }

    fn raise_floor(&mut self) {
        while let Some(State::Finished | State::GivenUp) = self.units.front() {
            if self.units.len() <= REMEMBERED {
                break;
            }
            self.units.pop_front();
            self.floor += 1;
        }
    }

    /// When the unit that has waited longest got its last segment.
    pub fn oldest(&self) -> Option<Time> {
        let waiting = self.units.iter().filter_map(|state| match state {
            State::Partial(partial) => Some(partial.newest),
            _ => None,
        });
        waiting.min()
    }

    /// Gives up every unit whose last segment came before `before`; their pieces come out of
    /// [`Reassembly::poll_given_up`].
    pub fn give_up(&mut self, before: Time) {
        for place in 0..self.units.len() {
            if let State::Partial(partial) = &self.units[place]
                && partial.newest <= before
            {
                let state = std::mem::replace(&mut self.units[place], State::GivenUp);
                self.let_go(state);
            }
        }
        self.raise_floor();
    }
}

impl Partial {
    fn insert(&mut self, pool: &mut Pool, piece: Piece, unit_len_max: usize) -> Outcome {
        let Piece { index, last, packet, .. } = piece;
        let segments = packet.segment_count();
        let end = index + segments;
        let seen_end = self.ahead.keys().next_back().map_or(self.next, |&last| last + 1);
        let strange = self.count.is_some_and(|count| end > count || (last && end != count))
            || (last && seen_end > end);
        if strange {
            return Outcome::Strange(packet);
        }
        if index < self.next || self.ahead.contains_key(&index) {
            return Outcome::Repeated(packet);
        }
        self.len += packet.payload_len();
        if self.len > unit_len_max || end > unit_len_max.saturating_add(1) {
            return Outcome::TooLarge(packet);
        }
        if last {
            self.count = Some(end);
        }
        self.newest = packet.time;
        self.came += segments;
        if index == self.next {
            self.append(pool, packet);
            while let Some(waited) = self.ahead.remove(&self.next) {
                self.append(pool, waited);
            }
        } else {
            self.ahead.insert(index, packet);
        }
        if self.count == Some(self.came) { Outcome::Whole } else { Outcome::Kept }
    }

    /// Adds what is next: to the piece before it, where both lie in one body.
    fn append(&mut self, pool: &mut Pool, packet: Packet) {
        self.next += packet.segment_count();
        let packet = match self.pieces.last_mut() {
            Some(last) => match pool.join(last, packet) {
                Ok(()) => return,
                Err(packet) => packet,
            },
            None => packet,
        };
        self.pieces.push(packet);
    }

    /// Moves everything into a list, and is as new.
    fn empty_into(&mut self, list: &mut Vec<Packet>) {
        let mut pieces = std::mem::take(&mut self.pieces);
        list.append(&mut pieces);
        list.extend(std::mem::take(&mut self.ahead).into_values());
        *self = Self { pieces, ..Self::default() };
    }
}
