//! Module `use-by`: what is older than a given age is not handed over.
//!
//! On the way down every packet gets the time at which its unit was handed over, on the sender's
//! clock. On the way up that becomes the time until which it is of use, on the receiver's: whoever
//! hands it over later books it late instead. How far the sender's clock is ahead is found out over
//! the path (RFC 5905, section 8, from the exchange with the shortest round trip): half of the
//! round trip is assumed each way, as SRT does (draft-sharabayko-srt-01, section 4.5). Until that
//! is known nothing is late.
//!
//! ```text
//!   handed over                                                     deadline
//!   |---- sender ----|------ path ------|-- waits below --|-- above --| . . late
//!   stamp                                                 ^ use_by is set
//! ```
//!
//! Invariants: every packet goes up, and nothing is held; all segments of a view have one stamp.

use super::profile::Stamps;
use crate::control::parameter;
use crate::emitting::behind;
use crate::runs::in_runs;
use dacapo_base::Time;
use dacapo_lift::{
    ClockOffset, ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit,
    Params, Property, Setup, Stratum, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::use_by::{Header, LEN};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "use-by",
    id: 0x0008,
    function: "timeliness",
    mechanism: "time stamps on the sender's clock",
    summary: "units that are older than that are not handed over",
    stratum: Stratum::Shape,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[Property::Timely],
    takes: &[],
    beneath: &[],
    notes: &[],
    profile: &Stamps,
    params: &[ParamSpec {
        name: "age",
        unit: ParamUnit::Nanoseconds,
        default: 200_000_000,
        min: 1_000,
        max: AGE_NS_MAX,
        summary: "the age at which a unit is of no more use",
        control: Some(CONTROL_SET_AGE),
    }],
};

/// The longest deadline: what is older than 35 minutes cannot be told from what is yet to come.
pub(super) const AGE_NS_MAX: u64 = 1_800_000_000_000;

/// The number of the parameter `age`.
pub(super) const AGE: u16 = 0;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `age`; the new value in nanoseconds follows as a u64.
pub const CONTROL_SET_AGE: u8 = 1;

fn build(params: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(UseBy {
        age: Duration::from_nanos(params.value(&SPEC, "age")),
        clock: ClockOffset::default(),
    })
}

struct UseBy {
    age: Duration,
    clock: ClockOffset,
}

impl Module for UseBy {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let stamp = Header::at(slot.time.as_nanos()).emit();
        behind(cx, slot, |_| stamp)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        in_runs(cx, slot, of_one_time, |cx, run| self.up_run(cx, run))
    }

    fn handle_clock(&mut self, offset: ClockOffset) {
        self.clock = offset;
    }

    fn control(&mut self, _: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let (_, value) = parameter(&SPEC, message)?;
        self.age = Duration::from_nanos(value);
        Ok(Vec::new())
    }
}

impl UseBy {
    /// Segments that were handed over at one time.
    fn up_run(&self, cx: &mut Cx<'_>, run: &mut Packet) -> Verdict {
        let header = Header::parse(cx.pool.segment(run, 0));
        if cx.pool.pull_head(run, LEN).is_err() {
            return Verdict::Drop(DropReason::Malformed);
        }
        if let Some(at) = header.ok().and_then(|header| self.use_by(cx.now(), header)) {
            run.set_use_by(at);
        }
        Verdict::Forward
    }

    /// Until when it is of use, on our clock; `None` while the peer's is not known.
    fn use_by(&self, now: Time, header: Header) -> Option<Time> {
        if !self.clock.is_known() {
            return None;
        }
        let peer_now = self.clock.to_peer(now.as_nanos());
        let left = i128::from(header.sent_ns(peer_now)?) - i128::from(peer_now);
        let at = i128::from(now.as_nanos()) + left + self.age.as_nanos().cast_signed();
        Some(Time::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX)))
    }
}

/// How many segments from the first on have the same stamp.
fn of_one_time(cx: &Cx<'_>, packet: &Packet) -> usize {
    let stamp = |at: usize| cx.pool.segment(packet, at).first_chunk::<LEN>();
    let first = stamp(0);
    1 + (1..packet.segment_count()).take_while(|at| stamp(*at) == first).count()
}
