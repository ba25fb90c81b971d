//! [`Controller`]: says how much of a path may be in flight, and how fast it is used.
//!
//! ```text
//!   flows --allowance?--> Path --window, rate--- Controller
//!         --what left---->     --on_sent------->
//!   modules' reports ---->     --on_delivered, on_lost, on_marked-->
//! ```
//!
//! One for each path, shared by its flows and their epochs. It has no clock and sends nothing.
//! What flows tell nothing about (no module of their graph
//! [acknowledges](crate::Sent::is_acknowledged)) is not in flight to it: its window does not hold
//! that, and its rate where it [says so](Controller::holds_unreported).

use dacapo_base::{Ecn, Time};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a controller is told with each call.
#[derive(Clone, Copy, Debug)]
pub struct ControllerCx {
    /// The time of the call.
    pub now: Time,
    /// Bytes that have left and of which nothing is known yet, after what is told.
    pub in_flight_bytes: u64,
    /// The round trip, as far as it is known.
    pub rtt: Option<Duration>,
    /// Something waits that the window or the rate does not let out.
    pub is_limited: bool,
}

/// What has left for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The length of its datagrams; the last may be shorter.
    pub datagram_len: usize,
    /// How many they are.
    pub packets: u64,
    /// All their bytes.
    pub bytes: u64,
    /// A module of the flow will say what became of them.
    pub is_acknowledged: bool,
    /// They left as ECN-capable.
    pub is_ecn_capable: bool,
}

/// What has come at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Packets.
    pub packets: u64,
    /// Their bytes, as they left.
    pub bytes: u64,
    /// When the newest was sent.
    pub sent_at: Option<Time>,
    /// A round trip that was measured with it.
    pub rtt: Option<Duration>,
}

/// What was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Packets.
    pub packets: u64,
    /// Their bytes, as they left.
    pub bytes: u64,
    /// When the newest of them left, where a module has said.
    pub sent_at: Option<Time>,
    /// Nothing was heard of anything for so long that all that was in flight counts as lost.
    pub is_silence: bool,
}

/// What came with a mark of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Packets.
    pub packets: u64,
    /// All of them left after this, where that is known.
    pub left_after: Option<Time>,
}

/// What both ends have counted between two questions: what left, and what had come of it when the
/// newer question did (the content of RFC 8888, in sums).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that it tells of left after this.
    pub left_after: Time,
    /// When the newer question left, behind everything that it counts.
    pub asked: Time,
    /// Packets that came, and about how many bytes those were.
    pub packets: u64,
    /// See `packets`.
    pub bytes: u64,
    /// Packets that were missing already at the question before, and had not come by this one.
    pub lost: u64,
    /// Those of the packets that came with a mark of congestion (CE).
    pub marked: u64,
    /// How long the newer question and its answer took.
    pub rtt: Duration,
    /// When that question came by the peer's clock less when it left by ours, in nanoseconds: only
    /// by how much it changes says something.
    pub one_way_ns: i64,
}

/// What is known of a path before anything is measured: what was measured before it moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prior {
    /// The round trip.
    pub rtt: Option<Duration>,
    /// The most that is to be sent until more is measured, in bit/s.
    pub rate_bps_max: Option<u64>,
}

/// Says how much of a path may be in flight, and how fast it is used.
pub trait Controller: Send {
    /// Something has left.
    fn on_sent(&mut self, cx: &ControllerCx, sent: &Sent) {
        let _ = (cx, sent);
    }

    /// Something has come.
    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        let _ = (cx, delivered);
    }

    /// Something was lost.
    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        let _ = (cx, lost);
    }

    /// So many packets that were reported lost had come, or were only late.
    fn on_spurious(&mut self, cx: &ControllerCx, packets: u64) {
        let _ = (cx, packets);
    }

    /// Packets came with a mark of congestion (ECN; RFC 3168).
    fn on_marked(&mut self, cx: &ControllerCx, marked: &Marked) {
        let _ = (cx, marked);
    }

    /// Both ends have counted more: told to who [goes by that](Controller::goes_by_counts).
    fn on_counted(&mut self, cx: &ControllerCx, counts: &Counts) {
        let _ = (cx, counts);
    }

    /// Something leaves again after nothing has for [`crate::IDLE_AFTER`]: what was learned may be
    /// old.
    fn on_idle(&mut self, cx: &ControllerCx) {
        let _ = cx;
    }

    /// The time has come that [`Controller::due`] said.
    fn on_timeout(&mut self, cx: &ControllerCx) {
        let _ = cx;
    }

    /// The most bytes in flight; `u64::MAX`: any number.
    fn window(&self) -> u64 {
        u64::MAX
    }

    /// How fast the path is used, in bit/s; `None`: its flows' own bounds are enough.
    fn rate_bps(&self) -> Option<u64> {
        None
    }

    /// Whether the rate holds also what no module reports about: else those flows keep their own
    /// bounds alone. It is asked once.
    fn holds_unreported(&self) -> bool {
        true
    }

    /// With which congestion codepoint packets leave: ECT(0) of one that yields when they come with
    /// a mark ([`Controller::on_marked`]; RFC 3168), ECT(1) of one that yields by how many of them
    /// do (RFC 9331). It is asked once.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Whether it goes by what both ends count ([`Controller::on_counted`]), where the peer counts:
    /// then its window and rate hold all packets of the path, whether a module reports about them
    /// or not, and it is told by counts alone what came, was lost or marked. It is asked once.
    fn goes_by_counts(&self) -> bool {
        false
    }

    /// When it wants to be called though nothing happens.
    fn due(&self) -> Option<Time> {
        None
    }
}

/// Holds nothing back: what a path has while it has no other.
pub(crate) struct Free;

impl Controller for Free {}

/// The static facts of a controller.
#[derive(Clone, Copy, Debug)]
pub struct ControllerSpec {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The RFC, specification or paper that it follows.
    pub source: &'static str,
    /// It may be chosen for paths of datagrams; one that may not stands for what a transport does
    /// itself.
    pub datagrams: bool,
    /// Which paths of datagrams it controls where nobody names another.
    pub usual: Option<Leads>,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To this very host.
    Here,
    /// To another one.
    Elsewhere,
}

/// What makes a controller for a path that begins, or goes another way from now on.
pub type OpenController = dyn Fn(Time, &Prior) -> Box<dyn Controller> + Send + Sync;

/// A controller of a catalogue.
#[derive(Clone)]
pub struct ControllerEntry {
    /// What is known of it.
    pub spec: &'static ControllerSpec,
    /// What makes one.
    pub open: Arc<OpenController>,
}

impl ControllerEntry {
    /// One that is made so.
    pub fn new(
        spec: &'static ControllerSpec,
        open: impl Fn(Time, &Prior) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        Self { spec, open: Arc::new(open) }
    }
}

impl fmt::Debug for ControllerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerEntry").field(&self.spec.name).finish()
    }
}
