//! Flows of bytes of the application: who gets their ends, and a plan of one without a file.

use super::choice::{self, Constraints};
use super::need::Need;
use super::{Assumptions, Flow, Plan};
use crate::access::count::RawCountSink;
use crate::access::raw::{RawReceiver, RawSender};
use crate::access::timeline::Extent;
use crate::access::{Found, Progress};
use dacapo_core::{GIVE_UP_AFTER, JoinRequest, Port};
use dacapo_qos::configure::{Pins, Refusal};
use dacapo_qos::{Attributes, Passes};
use dacapo_wire::session::{Direction, FlowOffer};
use std::path::PathBuf;

/// The application's end of a flow of bytes, for a participant that has just joined.
#[derive(Debug)]
pub enum RawEnd {
    /// The creator sends: the flow ends when this is dropped, or the last that shares it.
    Sender(RawSender),
    /// The creator receives.
    Receiver(RawReceiver),
}

/// Gets the application's ends of flows of bytes: the flow's name and its end.
pub type OnRaw = Box<dyn FnMut(&str, RawEnd) + Send>;

/// Opens the creator's access module of a flow of bytes for who joins.
///
/// # Errors
/// Why it cannot, for the participant.
pub type OpenBytes = Box<dyn FnMut(&FlowOffer, &JoinRequest) -> Result<Port, String> + Send>;

/// Flows of bytes that nobody feeds or reads: they end at once, or are counted.
pub(super) fn nobody() -> OpenBytes {
    Box::new(|flow, _| {
        Ok(match flow.direction {
            Direction::ToParticipant => Port::Source(Box::new(RawSender::pair().1)),
            Direction::ToCreator => {
                Port::Sink(Box::new(RawCountSink::new(Progress::new(&flow.name))))
            }
        })
    })
}

/// Flows of bytes whose ends somebody gets.
pub(super) fn handed_to(mut on_raw: OnRaw) -> OpenBytes {
    Box::new(move |flow, _| {
        Ok(match flow.direction {
            Direction::ToParticipant => {
                let (sender, source) = RawSender::pair();
                on_raw(&flow.name, RawEnd::Sender(sender));
                Port::Source(Box::new(source))
            }
            Direction::ToCreator => {
                let (receiver, sink) = RawReceiver::of(flow);
                on_raw(&flow.name, RawEnd::Receiver(receiver));
                Port::Sink(Box::new(sink))
            }
        })
    })
}

/// A session of one flow of bytes.
#[derive(Clone, Debug)]
pub struct BytesFlow<'a> {
    /// The session's name.
    pub session: &'a str,
    /// For people.
    pub title: &'a str,
    /// The flow's name.
    pub flow: &'a str,
    /// Who sends.
    pub direction: Direction,
    /// The largest unit, in bytes, at least 1.
    pub unit_len_max: u32,
    /// What it must be.
    pub attributes: Attributes,
    /// Participants at a time.
    pub participants_max: usize,
}

impl Plan {
    /// A plan of one flow of bytes, without a file.
    ///
    /// # Errors
    /// No protocol meets the attributes: which, and what is nearest.
    pub fn of_bytes(
        bytes: &BytesFlow<'_>,
        assumptions: &Assumptions,
    ) -> Result<Self, Box<Refusal>> {
        let need = Need {
            index: 0,
            name: bytes.flow.to_owned(),
            direction: bytes.direction,
            found: Found::raw(),
            sink: None,
            attributes: bytes.attributes.clone(),
            pins: Pins::NONE,
            multicast: None,
            bound_bps: None,
            playout_ns: None,
            playout_min_ns: None,
            unit_max: Some(bytes.unit_len_max),
            digest: None,
            speed: assumptions.speed,
        };
        let constraints = Constraints::new(assumptions);
        let chosen = choice::choose(&need, bytes.attributes.clone(), &constraints)?;
        Ok(Self {
            path: PathBuf::new(),
            name: bytes.session.to_owned(),
            title: bytes.title.to_owned(),
            participants_max: bytes.participants_max,
            give_up_after: GIVE_UP_AFTER,
            assumptions: assumptions.clone(),
            flows: vec![Flow { need, chosen }],
            extent: Extent { duration_ns: 0, nominal: None, passes: Passes::ONCE },
        })
    }
}
