//! [`Spending`]: how much a sender has used of what it was granted, and when it asks for more.
//!
//! ```text
//!   used == limit       asks                 asks            limit is raised
//!   |------ 250 ms -----|------ 500 ms ------|------ … 2 s --|
//! ```
//!
//! Who waits asks (RFC 9000, section 4.1), because the grant that he waits for may have been lost.
//! Of several receivers those are asked who have no room (`receivers.rs`).
//!
//! Invariants: what one receiver grants only grows, and to no more than it has room for beyond what
//! was used; a unit that was begun is sent to its end.

use super::counted::Counted;
use super::receivers::{Receivers, Slow};
use dacapo_base::Time;
use dacapo_lift::DropReason;
use dacapo_packet::{Kind, Packet};
use dacapo_wire::flow_control::{Header, Kind as Is, extend};
use std::time::Duration;

/// After how long a sender that waits asks first.
const ASKS_AFTER: Duration = Duration::from_millis(250);

/// How seldom it asks at the most.
const ASKS_EVERY_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Spending {
    counted: Counted,
    used: u64,
    receivers: Receivers,
    /// How much a receiver has room for when its application has taken all.
    room: u64,
    packet_len_max: u64,
    /// A unit was begun, and its last packet has not been handed down.
    is_within: bool,
    /// Since when it waits, or when it asked last; how often it has asked.
    waits_since: Option<Time>,
    asked: u32,
    /// How often it had to wait.
    pub times_waited: i64,
    /// No unit follows in this epoch: nothing waits any more.
    pub is_drained: bool,
}

impl Spending {
    pub fn new(counted: Counted, room: u64, slow: Slow, packet_len_max: usize) -> Self {
        Self {
            counted,
            used: 0,
            receivers: Receivers::new(slow, room),
            room,
            packet_len_max: packet_len_max as u64,
            is_within: false,
            waits_since: None,
            asked: 0,
            times_waited: 0,
            is_drained: false,
        }
    }

    /// What comes from now on is of this receiver, of several.
    pub fn turn_to(&mut self, receiver: u32) {
        self.receivers.turn_to(receiver);
    }

    /// How many packets may be handed down.
    pub fn credit(&self) -> usize {
        if self.is_within || self.is_drained {
            return usize::MAX;
        }
        let left = self.receivers.all().saturating_sub(self.used);
        usize::try_from(self.counted.packets(left, self.packet_len_max)).unwrap_or(usize::MAX)
    }

    /// The headers of a packet or train that is handed down, segment by segment.
    pub fn headers(&self, packet: &Packet) -> impl FnMut(usize) -> Header + use<> {
        let (used, counted) = (self.used, self.counted);
        let kind = if is_counted(packet) { Is::Counted } else { Is::Beside };
        let each = if kind == Is::Counted { counted.step(packet) } else { 0 };
        move |at| Header { place: (used + each * at as u64) as u32, kind }
    }

    /// It was handed down `now`.
    pub fn note(&mut self, now: Time, packet: &Packet) {
        if !is_counted(packet) {
            return;
        }
        self.used = self.used.saturating_add(self.counted.used(packet));
        self.is_within = !packet.is_unit_last();
        if self.is_blocked() && self.waits_since.is_none() {
            self.waits_since = Some(now);
            self.times_waited += 1;
        }
    }

    fn is_blocked(&self) -> bool {
        !self.is_within && !self.is_drained && self.used >= self.receivers.all()
    }

    /// A receiver grants so much in all.
    ///
    /// # Errors
    /// It is known already, of one receiver, or is less than is; or nobody has room for so much.
    pub fn hear(&mut self, place: u32) -> Result<(), DropReason> {
        let granted = self.receivers.granted();
        let limit = extend(place, granted.unwrap_or(self.used)).ok_or(DropReason::Malformed)?;
        // One more while a unit is under way, which has come as far as anybody can tell.
        let most = self.used.saturating_add(self.room).saturating_add(self.is_within.into());
        if limit > most {
            return Err(DropReason::Malformed);
        }
        if granted.is_some_and(|granted| limit < granted) {
            return Err(DropReason::Stale);
        }
        // Of several one says that it is there, and has no room.
        if granted == Some(limit) && !self.receivers.is_of_several() {
            return Err(DropReason::Duplicate);
        }
        self.receivers.grant(limit);
        self.wait_or_go_on();
        Ok(())
    }

    fn wait_or_go_on(&mut self) {
        if !self.is_blocked() {
            (self.waits_since, self.asked) = (None, 0);
        }
    }

    /// When it asks, unless more is granted.
    pub fn due(&self) -> Option<Time> {
        let wait = ASKS_AFTER * (1 << self.asked.min(3));
        self.waits_since.map(|since| since + wait.min(ASKS_EVERY_MAX))
    }

    /// What it says when the time has come that [`Spending::due`] said.
    pub fn ask(&mut self, now: Time) -> Option<Header> {
        self.due().filter(|at| *at <= now)?;
        (self.waits_since, self.asked) = (Some(now), self.asked.saturating_add(1));
        self.receivers.ask(self.used, self.asked, self.room);
        self.wait_or_go_on();
        Some(Header { place: self.used as u32, kind: Is::Blocked })
    }

    /// Nothing more is asked for.
    pub fn rest(&mut self) {
        (self.waits_since, self.asked) = (None, 0);
    }
}

/// Whether a packet is of a unit: marks of epochs are not.
fn is_counted(packet: &Packet) -> bool {
    packet.kind() == Kind::Data
}
