//! The records of a session: its flows are agreed, run, are counted up, and end.
//!
//! ```text
//!  participant                     creator
//!    JOIN       ---------------->
//!             <----------------   OFFER      the flows, each with its first graph
//!    ANSWER     ---------------->            which are taken, labels for those that come here
//!             <----------------   ACCEPT     labels for the others, the hash of what was agreed
//!    ACTIVATE   ---------------->
//!             <----------------   ACTIVATED
//!                 … flows run …
//!    END        <-------------->  REPORT     per flow: what was sent, what became of it
//!    CLOSE      <-------------->  CLOSED
//! ```
//!
//! Changes of a running flow are `change.rs`.
//!
//! Source: docs/protocol.md, "Records".

pub use crate::flow::{Direction, FlowAnswer, FlowOffer, STREAM_TOKEN_LEN};

use crate::attribute::AttributeForm;
use crate::flow::{read_address, read_attributes, write_address, write_attributes};
use crate::limits::{
    ATTRIBUTES_MAX, DROPPED_MAX, FLOWS_MAX, FURTHER_MAX, JOIN_ATTRIBUTES_MAX, JOIN_MODULES_MAX,
    JOIN_TRANSPORTS_MAX, PAYLOAD_LEN_MAX, TEXT_LEN_MAX, TITLE_LEN_MAX,
};
use crate::tlv::{Fault, Fields, Form, TOO_MANY, Tag, WRONG_LENGTH, Writer};
use crate::{Malformed, bytes};
use std::net::SocketAddr;

/// The number of a flow that stands for all flows of the session, in a [`Control`].
pub const FLOW_ALL: u16 = 0xFFFF;

/// The place of a module that stands for the access module, in a [`Control`].
pub const MODULE_ACCESS: u16 = 0xFFFF;

/// The code of a [`ControlAnswer`] that says that it was done.
pub const CODE_SUCCESS: u16 = 0;

/// The participant's first record on the session's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// The session's name; see [`crate::name`].
    pub name: String,
    /// The numbers of the modules that the participant has, at most [`JOIN_MODULES_MAX`], among
    /// them some that nobody has; empty: not said.
    pub modules: Vec<u16>,
    /// The same of transports, at most [`JOIN_TRANSPORTS_MAX`].
    pub transports: Vec<u16>,
    /// What every flow must be besides what the creator asks, at most [`JOIN_ATTRIBUTES_MAX`].
    pub attributes: Vec<AttributeForm>,
    /// Media begin where those are who have joined before, not at their beginning.
    pub live: bool,
    /// It joins at another port of the same host when it is told to; see
    /// [`Refuse`](crate::hub::Refuse).
    pub follows: bool,
}

impl Form for Join {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            name: fields.name(Tag::Name)?,
            modules: fields.u16_list(Tag::Module, JOIN_MODULES_MAX)?,
            transports: fields.u16_list(Tag::Transport, JOIN_TRANSPORTS_MAX)?,
            attributes: read_attributes(fields, JOIN_ATTRIBUTES_MAX)?,
            live: fields.flag(Tag::Live)?,
            follows: fields.flag(Tag::Follows)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.name(Tag::Name, &self.name)
            .u16_list(Tag::Module, &self.modules, JOIN_MODULES_MAX)
            .u16_list(Tag::Transport, &self.transports, JOIN_TRANSPORTS_MAX);
        write_attributes(&self.attributes, JOIN_ATTRIBUTES_MAX, to);
        if self.live {
            to.u8(Tag::Live, 1);
        }
        if self.follows {
            to.u8(Tag::Follows, 1);
        }
    }
}

/// The session and its flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The session's number at its creator.
    pub session: u64,
    /// What it is, for people; at most [`TITLE_LEN_MAX`] bytes are sent.
    pub title: String,
    /// How long contact may be lost before the session is given up, in milliseconds; `None` is five
    /// minutes.
    pub give_up_ms: Option<u32>,
    /// Where the creator is reached besides, for flows over several paths; at most
    /// [`FURTHER_MAX`], each one of a host and with a port.
    pub further: Vec<SocketAddr>,
    /// At most [`FLOWS_MAX`], with at most [`ATTRIBUTES_MAX`] attributes together.
    pub flows: Vec<FlowOffer>,
}

impl Form for Offer {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        let offer = Self {
            session: fields.u64(Tag::Session)?,
            title: fields.text(Tag::Title, TITLE_LEN_MAX)?,
            give_up_ms: fields.u32_if_there(Tag::GiveUp)?,
            further: fields.list(Tag::Further, FURTHER_MAX, read_further)?,
            flows: fields.elements(Tag::Flow, FLOWS_MAX)?,
        };
        offer.check_attributes()?;
        Ok(offer)
    }

    fn write(&self, to: &mut Writer) {
        if let Err(fault) = self.check_attributes() {
            to.refuse(fault);
        }
        to.u64(Tag::Session, self.session).text(Tag::Title, &self.title, TITLE_LEN_MAX);
        if let Some(give_up_ms) = self.give_up_ms {
            to.u32(Tag::GiveUp, give_up_ms);
        }
        write_further(&self.further, to);
        to.elements(Tag::Flow, &self.flows, FLOWS_MAX);
    }
}

impl Offer {
    fn check_attributes(&self) -> Result<(), Fault> {
        let counts = self.flows.iter().map(|flow| flow.attributes.len());
        let is_within = counts.fold(0, usize::saturating_add) <= ATTRIBUTES_MAX;
        if is_within { Ok(()) } else { Err(Tag::Attribute.fault(TOO_MANY)) }
    }
}

/// What a datagram may be sent to, and reaches one host: anything else would make the participant
/// send where the creator has no business.
fn is_of_one_host(address: &SocketAddr) -> bool {
    let ip = address.ip();
    let is_broadcast = matches!(ip, std::net::IpAddr::V4(ip) if ip.is_broadcast());
    address.port() > 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

const NOT_OF_ONE_HOST: &str = "the address is not one of a host, with a port";

fn read_further(value: &[u8]) -> Result<SocketAddr, Fault> {
    let address = read_address(Tag::Further, value)?;
    let fault = || Tag::Further.fault(NOT_OF_ONE_HOST);
    Some(address).filter(is_of_one_host).ok_or_else(fault)
}

fn write_further(further: &[SocketAddr], to: &mut Writer) {
    if further.len() > FURTHER_MAX {
        to.refuse(Tag::Further.fault(TOO_MANY));
    }
    for &address in further {
        if !is_of_one_host(&address) {
            to.refuse(Tag::Further.fault(NOT_OF_ONE_HOST));
        }
        write_address(Tag::Further, address, to);
    }
}

/// What the participant says to the flows of an [`Offer`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// At most [`FLOWS_MAX`].
    pub flows: Vec<FlowAnswer>,
}

impl Form for Answer {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { flows: fields.elements(Tag::Flow, FLOWS_MAX)? })
    }

    fn write(&self, to: &mut Writer) {
        to.elements(Tag::Flow, &self.flows, FLOWS_MAX);
    }
}

/// What the creator says to the [`Answer`]; from here on the flows are agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// The hash over what both have said; keys are bound to it.
    pub transcript: [u8; 32],
    /// At most [`FLOWS_MAX`].
    pub flows: Vec<FlowAnswer>,
}

impl Form for Accept {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            transcript: fields.array(Tag::Transcript)?,
            flows: fields.elements(Tag::Flow, FLOWS_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.bytes(Tag::Transcript, &self.transcript).elements(Tag::Flow, &self.flows, FLOWS_MAX);
    }
}

/// Asks for data to flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activate {
    /// Comes back in the [`Activated`].
    pub request: u32,
}

impl Form for Activate {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { request: fields.u32(Tag::Request)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request);
    }
}

/// Data may flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activated {
    /// The number of the [`Activate`] that it answers.
    pub request: u32,
}

impl Form for Activated {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { request: fields.u32(Tag::Request)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request);
    }
}

/// Asks for data to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deactivate {
    /// Comes back in the [`Deactivated`].
    pub request: u32,
}

impl Form for Deactivate {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { request: fields.u32(Tag::Request)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request);
    }
}

/// Data have stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deactivated {
    /// The number of the [`Deactivate`] that it answers.
    pub request: u32,
}

impl Form for Deactivated {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { request: fields.u32(Tag::Request)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request);
    }
}

/// The sender of a flow has sent all of it, or all that it can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Which flow.
    pub flow: u16,
    /// Its last epoch.
    pub epoch: u64,
    /// Units that were sent, in all epochs.
    pub units: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The hash over their bytes.
    pub hash: [u8; 32],
    /// [`CODE_SUCCESS`], or why the flow ends before its source did: docs/errors.md.
    pub code: u16,
    /// The particulars.
    pub text: String,
}

impl Form for End {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            units: fields.u64(Tag::Units)?,
            bytes: fields.u64(Tag::Bytes)?,
            hash: fields.array(Tag::Hash)?,
            code: fields.u16(Tag::Code)?,
            text: fields.text(Tag::Text, TEXT_LEN_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow)
            .u64(Tag::Epoch, self.epoch)
            .u64(Tag::Units, self.units)
            .u64(Tag::Bytes, self.bytes)
            .bytes(Tag::Hash, &self.hash)
            .u16(Tag::Code, self.code)
            .text(Tag::Text, &self.text, TEXT_LEN_MAX);
    }
}

/// What became of the units of a flow: sent = delivered + late + lost + dropped + unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Which flow.
    pub flow: u16,
    /// Units that the application got.
    pub delivered: u64,
    /// Units that came after they were of use.
    pub late: u64,
    /// Units that did not come.
    pub lost: u64,
    /// Units that were dropped, by the number of the reason; at most [`DROPPED_MAX`] reasons.
    pub dropped: Vec<(u8, u64)>,
    /// Units that came again; not part of the sum.
    pub duplicates: u64,
    /// Units of which nothing can be said; 0 after an end in order.
    pub unknown: u64,
    /// Bytes of the units that were delivered.
    pub bytes: u64,
    /// The hash over those bytes.
    pub hash: [u8; 32],
}

impl Form for Report {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            delivered: fields.u64(Tag::Delivered)?,
            late: fields.u64(Tag::Late)?,
            lost: fields.u64(Tag::Lost)?,
            dropped: fields.list(Tag::Dropped, DROPPED_MAX, read_dropped)?,
            duplicates: fields.u64(Tag::Duplicates)?,
            unknown: fields.u64(Tag::Unknown)?,
            bytes: fields.u64(Tag::Bytes)?,
            hash: fields.array(Tag::Hash)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow)
            .u64(Tag::Delivered, self.delivered)
            .u64(Tag::Late, self.late)
            .u64(Tag::Lost, self.lost);
        write_dropped(&self.dropped, to);
        to.u64(Tag::Duplicates, self.duplicates)
            .u64(Tag::Unknown, self.unknown)
            .u64(Tag::Bytes, self.bytes)
            .bytes(Tag::Hash, &self.hash);
    }
}

fn read_dropped(value: &[u8]) -> Result<(u8, u64), Fault> {
    let read = |mut reader: bytes::Reader<'_>| {
        let dropped = (reader.u8()?, reader.u64()?);
        reader.end().map(|()| dropped)
    };
    read(bytes::Reader(value)).map_err(|Malformed| Tag::Dropped.fault(WRONG_LENGTH))
}

fn write_dropped(dropped: &[(u8, u64)], to: &mut Writer) {
    if dropped.len() > DROPPED_MAX {
        to.refuse(Tag::Dropped.fault(TOO_MANY));
    }
    for (reason, count) in dropped {
        to.bytes(Tag::Dropped, &[&[*reason][..], &count.to_be_bytes()].concat());
    }
}

/// Asks to end the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// Why, for programs: docs/errors.md.
    pub code: u16,
    /// Why, for people; at most [`TEXT_LEN_MAX`] bytes are sent.
    pub text: String,
}

impl Form for Close {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { code: fields.u16(Tag::Code)?, text: fields.text(Tag::Text, TEXT_LEN_MAX)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::Code, self.code).text(Tag::Text, &self.text, TEXT_LEN_MAX);
    }
}

/// The session has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed;

impl Form for Closed {
    fn read(_fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn write(&self, _to: &mut Writer) {}
}

/// From one module to its peer, beside the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Comes back in the [`ControlAnswer`].
    pub request: u32,
    /// Which flow; [`FLOW_ALL`]: the access modules of all of them, at one instant.
    pub flow: u16,
    /// The epoch whose graph is meant.
    pub epoch: u64,
    /// The module's place in the graph, or [`MODULE_ACCESS`].
    pub module: u16,
    /// What it is told, at most [`PAYLOAD_LEN_MAX`] bytes.
    pub payload: Vec<u8>,
}

impl Form for Control {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            request: fields.u32(Tag::Request)?,
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            module: fields.u16(Tag::Module)?,
            payload: fields.blob(Tag::Payload, PAYLOAD_LEN_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request)
            .u16(Tag::FlowId, self.flow)
            .u64(Tag::Epoch, self.epoch)
            .u16(Tag::Module, self.module)
            .blob(Tag::Payload, &self.payload, PAYLOAD_LEN_MAX);
    }
}

/// What the module answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlAnswer {
    /// The number of the [`Control`] that it answers.
    pub request: u32,
    /// [`CODE_SUCCESS`], or why not: docs/errors.md.
    pub code: u16,
    /// At most [`PAYLOAD_LEN_MAX`] bytes.
    pub payload: Vec<u8>,
}

impl Form for ControlAnswer {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            request: fields.u32(Tag::Request)?,
            code: fields.u16(Tag::Code)?,
            payload: fields.blob(Tag::Payload, PAYLOAD_LEN_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request).u16(Tag::Code, self.code).blob(
            Tag::Payload,
            &self.payload,
            PAYLOAD_LEN_MAX,
        );
    }
}
