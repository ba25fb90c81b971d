//! [`Granting`]: how much has come at a receiver, and how much more it has room for.
//!
//! ```text
//!   limit = came + room - unread          told when a quarter of the room is to be had again
//! ```
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
}

impl Granting {
    pub fn new(counted: Counted, room: u64, unit_len_max: usize) -> Self {
        let unit_max = counted.came(unit_len_max);
        Self { counted, room, unit_max, came: 0, granted: room, asked: None }
    }

    /// A packet of a unit came, with this place and so many bytes; false where nobody was to send
    /// it.
    #[must_use]
    pub fn take(&mut self, place: u32, len: usize) -> bool {
        let Some(end) = self.end(place, self.counted.came(len)) else { return false };
        self.came = self.came.max(end);
        true
    }

    /// The sender says that it waits, and has used so much; false where it cannot have.
    #[must_use]
    pub fn hear(&mut self, place: u32) -> bool {
        let Some(used) = self.end(place, 0) else { return false };
        // All that was sent before this has come, or never will.
        self.came = self.came.max(used);
        self.asked = Some(used);
        true
    }

    fn end(&self, place: u32, len: u64) -> Option<u64> {
        let end = extend(place, self.came)?.saturating_add(len);
        (end <= self.granted.saturating_add(self.unit_max)).then_some(end)
    }

    /// Whether it is worth knowing what waits for the application.
    pub fn wants_unread(&self) -> bool {
        self.asked.is_some() || self.is_worth_telling(self.came.saturating_add(self.room))
    }

    fn is_worth_telling(&self, limit: u64) -> bool {
        limit.saturating_sub(self.granted) >= (self.room / PARTS).max(1)
    }

    /// So much waits: what is to be told the sender.
    pub fn grant(&mut self, unread: Unread) -> Option<Header> {
        let free = self.room.saturating_sub(self.counted.unread(unread));
        let limit = self.came.saturating_add(free).max(self.granted);
        let helps = self.asked.is_some_and(|used| limit > used);
        // A unit that is longer than the room has come: as much is no room yet.
        let is_more = limit > self.came && self.is_worth_telling(limit);
        if !helps && !is_more {
            return None;
        }
        (self.granted, self.asked) = (limit, None);
        Some(Header { place: limit as u32, kind: Kind::Granted })
    }

    /// Nobody waits any more.
    pub fn rest(&mut self) {
        self.asked = None;
    }
}
