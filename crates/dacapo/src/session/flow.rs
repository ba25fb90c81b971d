//! [`FlowInfo`]: a flow of a session as this end sees it; and the end itself.

use super::account::Final;
use crate::access::messages::Inbox;
use crate::access::raw::{RawMemory, RawReceiver, RawSender};
use crate::misuse::misuse;
use crate::plan::RawEnd;
use dacapo_core::Error;
use dacapo_core::table::Role;
use dacapo_lift::{Catalogue, Property};
use dacapo_qos::{format_rate, format_size};
use dacapo_wire::session::FlowOffer;
use std::fmt;

/// Which way the units of a flow go, seen from this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// This end sends.
    Outgoing,
    /// This end receives.
    Incoming,
}

/// A flow of a session, as it was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Its name, as calls take it.
    pub name: String,
    /// Which way its units go.
    pub direction: Direction,
    /// The modules of its protocol, from the application to the network, such as
    /// `segment ! sequence ! checksum`; empty when there are none.
    pub graph: String,
    /// The network below them, such as `udp`.
    pub transport: String,
    /// The largest unit in bytes.
    pub unit_len_max: usize,
    /// The most that it sends, in bit/s; 0 when the core decides.
    pub bound_bps: u64,
    /// A reader who is slow holds it up; else what does not fit the queue is lost, and booked.
    pub is_held_up: bool,
    /// Calls can use it; not so what carries pictures or sound, or was refused.
    pub is_usable: bool,
    /// Why it does not run for this participant, from when the session is set up.
    pub refused: Option<Error>,
}

impl FlowInfo {
    /// The flow of an offer.
    pub(super) fn of(offer: &FlowOffer, role: Role, catalogue: &Catalogue) -> Self {
        use dacapo_wire::session::Direction as Wire;
        let name = |id: u16| {
            let entry = catalogue.by_id(id);
            entry.map_or_else(|| format!("{id:#06x}"), |entry| entry.spec.name.to_owned())
        };
        let modules: Vec<String> = offer.graph.nodes.iter().map(|node| name(node.module)).collect();
        let above = catalogue.above(offer.transport, offer.graph.modules());
        let spec = catalogue.transport(offer.transport);
        let transport = spec.map(|spec| spec.name.to_owned());
        let direction = match (offer.direction, role) {
            (Wire::ToParticipant, Role::Creator) | (Wire::ToCreator, Role::Participant) => {
                Direction::Outgoing
            }
            (Wire::ToParticipant, Role::Participant) | (Wire::ToCreator, Role::Creator) => {
                Direction::Incoming
            }
        };
        Self {
            name: offer.name.clone(),
            direction,
            graph: modules.join(" ! "),
            is_held_up: above.contains(Property::NoLoss),
            transport: transport.unwrap_or_else(|| offer.transport.to_string()),
            unit_len_max: offer.unit_len_max as usize,
            bound_bps: offer.bound_bps,
            is_usable: true,
            refused: None,
        }
    }
}

impl fmt::Display for FlowInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.direction {
            Direction::Outgoing => "sent",
            Direction::Incoming => "received",
        };
        write!(f, "{}: {way} by this end, ", self.name)?;
        if !self.graph.is_empty() {
            write!(f, "{} ! ", self.graph)?;
        }
        let unit_len_max = format_size(self.unit_len_max as u64);
        write!(f, "{}, units up to {unit_len_max}", self.transport)?;
        match self.bound_bps {
            0 => {}
            bound => write!(f, ", at most {}", format_rate(bound))?,
        }
        if self.is_usable { Ok(()) } else { f.write_str(", not for calls") }
    }
}

/// A flow at this end.
#[derive(Debug)]
pub(super) struct Flow {
    pub info: FlowInfo,
    pub end: End,
    /// Units that the application has handed over.
    pub handed: u64,
    /// How it ended, once that is known; most flows run, so it is kept apart.
    pub account: Option<Box<Final>>,
    /// Why it ended before its end.
    pub failure: Option<Error>,
    /// The length of a unit that it could not take, and that its sender still has.
    pub awaits_room: Option<usize>,
    /// Its messages, when this end receives them instead of units.
    pub inbox: Option<Box<Inbox>>,
}

/// The application's end of a flow.
#[derive(Debug)]
pub(super) enum End {
    /// It sends.
    Sender(RawSender),
    /// It has sent everything; others may still send by the flow.
    Finished(RawSender),
    /// It receives.
    Receiver(RawReceiver),
    /// It is not the application's.
    None,
}

/// The memory of the units that a flow receives; it does not keep the flow.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitMemory(RawMemory);

impl UnitMemory {
    /// Gives the memory of a unit back, for one that comes. Of a flow that is gone it is freed.
    pub fn give_back(&self, unit: Vec<u8>) {
        self.0.give_back(unit);
    }

    /// Memory for a unit, of one that was given back where there is one; empty.
    pub fn spare(&self) -> Vec<u8> {
        self.0.spare()
    }

    /// How long the unit is that comes next, in bytes, when one waits.
    pub fn next_len(&self) -> Option<usize> {
        self.0.next_len()
    }
}

impl Flow {
    /// Where the memory of what it receives goes back to.
    pub fn unit_memory(&self) -> UnitMemory {
        match &self.end {
            End::Receiver(receiver) => UnitMemory(receiver.memory()),
            End::Sender(_) | End::Finished(_) | End::None => UnitMemory::default(),
        }
    }

    /// A flow with its end; without one calls cannot use it.
    pub fn new(mut info: FlowInfo, end: Option<RawEnd>) -> Self {
        info.is_usable = end.is_some();
        let end = match end {
            Some(RawEnd::Sender(sender)) => {
                sender.promise_wake();
                if sender.is_finished() { End::Finished(sender) } else { End::Sender(sender) }
            }
            Some(RawEnd::Receiver(receiver)) => {
                if info.is_held_up {
                    receiver.promise_wake();
                }
                End::Receiver(receiver)
            }
            None => End::None,
        };
        Self { info, end, handed: 0, account: None, failure: None, awaits_room: None, inbox: None }
    }

    /// Whether a reader who is slow holds it up.
    pub fn is_held_up(&self) -> bool {
        self.info.is_held_up && matches!(self.end, End::Receiver(_))
    }

    /// This end has sent everything, and the flow is to end.
    pub fn finish(&mut self) {
        self.end_by(RawSender::finish);
    }

    /// This end has sent everything; others may go on.
    pub fn leave(&mut self) {
        self.end_by(RawSender::leave);
    }

    fn end_by(&mut self, end: impl FnOnce(&mut RawSender)) {
        self.end = match std::mem::replace(&mut self.end, End::None) {
            End::Sender(mut sender) => {
                end(&mut sender);
                End::Finished(sender)
            }
            end => end,
        };
    }

    /// Its session waits to be accepted.
    pub fn wait(&mut self) {
        if let End::Sender(sender) = &mut self.end {
            sender.wait();
        }
    }

    /// Its session is accepted.
    pub fn take_in(&mut self) {
        if let End::Sender(sender) = &mut self.end {
            sender.take_in();
            if sender.is_finished() {
                self.leave();
            }
        }
    }

    /// From now on this end sends messages.
    ///
    /// # Errors
    /// Misuse when it cannot.
    pub fn send_messages(&self) -> Result<(), Error> {
        let Self { info, end, .. } = self;
        let cannot = |why: &str| misuse(format!("the flow \"{}\" {why}", info.name));
        let End::Sender(sender) = end else { return Err(cannot("is finished; nothing follows")) };
        let begun = sender.begin_messages(info.unit_len_max);
        begun.map_err(|error| cannot(&format!("cannot carry messages: {error}")))
    }

    /// From now on this end receives messages.
    pub fn receive_messages(&mut self) {
        self.inbox.get_or_insert_default();
    }

    /// Its session is over: others that send by it need not wait for this end to finish. True when
    /// there are, or were, others.
    pub fn let_go(&mut self) -> bool {
        let End::Sender(sender) = &mut self.end else { return false };
        sender.leave();
        !sender.is_alone()
    }

    /// Whether this end has sent, and learns what became of it when the flow ends: not while others
    /// go on sending by it.
    pub fn awaits_account(&self) -> bool {
        let sender = self.sender().filter(|sender| !sender.has_others());
        sender.is_some() && self.account.is_none()
    }

    /// Units that wait before a flow that others go on sending by.
    pub fn waiting_among_others(&self) -> Option<u64> {
        let sender = self.sender().filter(|sender| sender.has_others() && sender.is_open());
        sender.map(RawSender::waiting)
    }

    /// What this end sends by, or has sent by.
    pub fn sender(&self) -> Option<&RawSender> {
        match &self.end {
            End::Sender(sender) | End::Finished(sender) => Some(sender),
            End::Receiver(_) | End::None => None,
        }
    }

    /// Whether a call that sends `len` bytes has something to say.
    pub fn takes(&self, len: usize) -> bool {
        match &self.end {
            End::Sender(sender) => self.is_lost(sender) || sender.has_capacity(len),
            _ => true,
        }
    }

    /// Whether a call that sends a message of `len` bytes has something to say.
    pub fn takes_message(&self, priority: u16, len: usize) -> bool {
        match &self.end {
            End::Sender(sender) => self.is_lost(sender) || sender.has_message_room(priority, len),
            _ => true,
        }
    }

    /// Whether nothing that this end sends goes by it any more: it has ended, or has failed for its
    /// session.
    fn is_lost(&self, sender: &RawSender) -> bool {
        self.failure.is_some() || !sender.is_open()
    }

    /// Whether a call that receives has something to say.
    pub fn gives(&self) -> bool {
        let has_part = || self.inbox.as_ref().is_some_and(|inbox| inbox.has_part());
        match &self.end {
            End::Receiver(receiver) => receiver.has_unit() || receiver.is_finished() || has_part(),
            _ => true,
        }
    }
}
