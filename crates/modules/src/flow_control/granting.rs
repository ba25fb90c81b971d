//! [`Granting`]: how much has come at a receiver, and how much more it has room for.
//!
//! ```text
//!   limit = came + room - unread          told when a quarter of the room is to be had again
//! ```
//!
//! Who takes part from somewhere in the middle begins with the first packet that comes; one of
//! several who is slower than others may get what it has no room for: it is not taken, and when
//! there is room again all before is as good as come.
//!
//! Invariants: what was granted never becomes less; what comes beyond it, and the unit that had
//! begun before, is not taken.

use super::counted::Counted;
use dacapo_lift::Unread;
use dacapo_wire::flow_control::{Header, Kind, extend};

/// A grant is told when it is larger by this part of the room: so one is under way for each quarter
/// that is read, and none for each packet.
const PARTS: u64 = 4;

#[derive(Debug)]
pub(super) struct Granting {
    counted: Counted,
    room: u64,
    /// How far a unit may reach that begins below the limit.
    unit_max: u64,
    came: u64,
    granted: u64,
    /// The sender waits, and has used so much.
    asked: Option<u64>,
    /// This end is one of several.
    is_one_of_several: bool,
    /// Nothing has come yet of which it could be told where this end begins.
    is_new: bool,
    /// The sender does not know yet that this end is there, or asks whether it still is.
    says_it_is_there: bool,
    /// How far the sender is: what came before had no room.
    missed: Option<u64>,
}

impl Granting {
    pub fn new(counted: Counted, room: u64, unit_len_max: usize) -> Self {
        let unit_max = counted.came(unit_len_max);
        Self {
            counted,
            room,
            unit_max,
            came: 0,
            granted: room,
            asked: None,
            is_one_of_several: false,
            is_new: false,
            says_it_is_there: false,
            missed: None,
        }
    }

    /// This end is one of several, and takes part from the first packet on that comes.
    pub fn join(&mut self) {
        (self.is_one_of_several, self.is_new) = (true, true);
    }

    /// Something is at this place: here a new end begins.
    fn begin(&mut self, place: u32) {
        if std::mem::take(&mut self.is_new) {
            self.came = place.into();
            self.granted = self.came.saturating_add(self.room);
            self.says_it_is_there = true;
        }
    }

    /// A packet of a unit came, with this place and so many bytes; false where nobody was to send
    /// it.
    #[must_use]
    pub fn take(&mut self, place: u32, len: usize) -> bool {
        self.begin(place);
        let end = extend(place, self.came).map(|it| it.saturating_add(self.counted.came(len)));
        let Some(end) = end.filter(|end| self.may_reach(*end)) else {
            self.missed = end.filter(|_| self.is_one_of_several).max(self.missed);
            return false;
        };
        self.came = self.came.max(end);
        true
    }

    /// The sender says that it waits, and has used so much; false where it cannot have.
    #[must_use]
    pub fn hear(&mut self, place: u32) -> bool {
        self.begin(place);
        let Some(used) = extend(place, self.came) else { return false };
        if !self.may_reach(used) {
            // Of several others may have had room for that.
            self.missed = Some(used).filter(|_| self.is_one_of_several).max(self.missed);
            self.says_it_is_there = self.is_one_of_several;
            return self.is_one_of_several;
        }
        // All that was sent before this has come, or never will.
        self.came = self.came.max(used);
        self.asked = Some(used);
        self.says_it_is_there |= self.is_one_of_several && self.granted <= used;
        true
    }

    fn may_reach(&self, end: u64) -> bool {
        end <= self.granted.saturating_add(self.unit_max)
    }

    /// Whether it is worth knowing what waits for the application.
    pub fn wants_unread(&self) -> bool {
        let is_asked = self.asked.is_some() || self.says_it_is_there || self.missed.is_some();
        is_asked || self.is_worth_telling(self.came.saturating_add(self.room))
    }

    fn is_worth_telling(&self, limit: u64) -> bool {
        limit.saturating_sub(self.granted) >= (self.room / PARTS).max(1)
    }

    /// So much waits: what is to be told the sender.
    pub fn grant(&mut self, unread: Unread) -> Option<Header> {
        let free = self.room.saturating_sub(self.counted.unread(unread));
        if let Some(missed) = self.missed.take_if(|_| free >= (self.room / PARTS).max(1)) {
            self.came = self.came.max(missed);
        }
        let limit = self.came.saturating_add(free).max(self.granted);
        // A unit that is longer than the room, or was beyond it, has come: as much is no room yet.
        let is_room = limit > self.came;
        let helps = is_room && self.asked.is_some_and(|used| limit > used);
        let is_more = is_room && self.is_worth_telling(limit);
        if helps || is_more {
            (self.granted, self.asked) = (limit, None);
        } else if !self.says_it_is_there {
            return None;
        }
        self.says_it_is_there = false;
        Some(Header { place: self.granted as u32, kind: Kind::Granted })
    }

    /// Nobody waits any more.
    pub fn rest(&mut self) {
        (self.asked, self.says_it_is_there, self.missed) = (None, false, None);
    }
}
