//! Access modules that do little and count, and the sessions of a core that is fuzzed.

use super::Rig;
use dacapo_base::Time;
use dacapo_core::{
    BeginError, CommandError, JoinRequest, Port, SessionProvider, SessionSpec, Sink, Source,
    SourcePoll, Taken, UnitView, UnitWriter,
};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::time::Duration;

/// Gives a few small units, 5 ms apart.
#[derive(Debug)]
pub struct Few {
    left: u32,
    next: Time,
}

impl Few {
    /// So many.
    #[must_use]
    pub fn new(left: u32) -> Self {
        Self { left, next: Time::ZERO }
    }
}

impl Source for Few {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if self.left == 0 {
            return SourcePoll::End;
        }
        if now < self.next {
            return SourcePoll::Wait(self.next);
        }
        match unit.begin(40) {
            Ok(()) => {
                unit.write(&[0x5A; 40]);
                self.left -= 1;
                self.next = now + Duration::from_millis(5);
                SourcePoll::Unit
            }
            Err(BeginError::NoMemory) => SourcePoll::Blocked,
            Err(BeginError::TooLarge) => SourcePoll::Failed("the units are too large".into()),
        }
    }

    fn command(&mut self, _: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        Ok(payload.iter().rev().copied().collect())
    }
}

/// Takes everything.
#[derive(Debug, Default)]
pub struct Any;

impl Sink for Any {
    fn handle_unit(&mut self, _: Time, _: &UnitView<'_>) -> Taken {
        Taken::Delivered
    }
}

/// The access module that a flow needs where its creator is, or where it is not.
#[must_use]
pub fn port(flow: &FlowOffer, is_creator: bool) -> Port {
    if (flow.direction == Direction::ToParticipant) == is_creator {
        Port::Source(Box::new(Few::new(8)))
    } else {
        Port::Sink(Box::new(Any))
    }
}

struct Serves;

impl SessionProvider for Serves {
    fn open(&mut self, flow: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(port(flow, true))
    }
}

/// A flow of small units over datagrams (1) or a stream (3).
#[must_use]
pub fn flow(name: &str, direction: Direction, modules: &[u16], transport: u16) -> FlowOffer {
    FlowOffer {
        name: name.into(),
        direction,
        graph: GraphForm::line(modules.iter().map(|&module| (module, Vec::new()))),
        transport,
        bound_bps: if transport == 3 { 0 } else { 10_000_000 },
        unit_len_max: 1_000,
        datagram_len: 1_200,
        digest: true,
        ..FlowOffer::default()
    }
}

/// The sessions that [`publish`] serves, by name.
pub const SESSIONS: [&str; 4] = ["down", "up", "both", "tcp"];

/// Serves sessions in both directions, over datagrams and over a stream.
///
/// # Panics
/// One of them cannot be served: a mistake in here.
pub fn publish(rig: &mut Rig) {
    use Direction::{ToCreator, ToParticipant};
    let flows = |name: &str| match name {
        "down" => vec![flow("down", ToParticipant, &[1, 2, 3], 1)],
        "up" => vec![flow("up", ToCreator, &[1, 2, 4, 3], 1)],
        "tcp" => vec![flow("tcp", ToParticipant, &[], 3)],
        _ => vec![flow("a", ToParticipant, &[2], 1), flow("b", ToCreator, &[1, 2], 1)],
    };
    for name in SESSIONS {
        let spec = SessionSpec {
            name: name.into(),
            title: "A session".into(),
            flows: flows(name),
            participants_max: 8,
            give_up_after: dacapo_core::GIVE_UP_AFTER,
        };
        rig.core().publish(spec, Box::new(Serves)).expect("the sessions of a rig are valid");
    }
}
