//! One flow in the records of a session: as it is offered, and what an end says to it.
//!
//! The records around it are `session.rs`.
//!
//! Source: docs/protocol.md, "Fields".

use crate::Malformed;
use crate::attribute::AttributeForm;
use crate::graph::GraphForm;
use crate::limits::{ATTRIBUTES_MAX, GROUP_LEN_MAX, TEXT_LEN_MAX};
use crate::medium::Medium;
use crate::session::CODE_SUCCESS;
use crate::tlv::{Fault, Fields, Form, TOO_MANY, Tag, WRONG_LENGTH, Writer};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

/// The length of the token of a stream, in bytes.
pub const STREAM_TOKEN_LEN: usize = 16;

/// Which way a flow's data go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the creator to the participant.
    #[default]
    ToParticipant,
    /// From the participant to the creator.
    ToCreator,
}

impl Direction {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        match fields.u8(Tag::Direction)? {
            0 => Ok(Self::ToParticipant),
            1 => Ok(Self::ToCreator),
            _ => Err(Tag::Direction.fault("the direction is neither 0 nor 1")),
        }
    }
}

/// One flow of an [`Offer`](crate::session::Offer).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowOffer {
    /// Its number in the session.
    pub flow: u16,
    /// Its name; see [`crate::name`].
    pub name: String,
    /// Which way its data go.
    pub direction: Direction,
    /// What it carries.
    pub medium: Medium,
    /// The flows that are played together have the same one; at most [`GROUP_LEN_MAX`] bytes are
    /// sent; empty: none.
    pub group: String,
    /// The graph of its first epoch.
    pub graph: GraphForm,
    /// The number of the transport.
    pub transport: u16,
    /// The multicast group that its data are sent to, and the port; only where the transport sends
    /// to groups.
    pub multicast: Option<SocketAddr>,
    /// The most that its sender sends, in bit/s.
    pub bound_bps: u64,
    /// The longest unit, in bytes.
    pub unit_len_max: u32,
    /// The longest datagram that the creator takes and makes, in bytes.
    pub datagram_len: u16,
    /// How long after it was sent a unit is shown, in nanoseconds.
    pub playout_ns: u64,
    /// How much of that is kept at least, where no more is to be kept than is used, in nanoseconds.
    pub playout_min_ns: Option<u64>,
    /// Whether both ends hash every unit and compare at the end.
    pub digest: bool,
    /// What the flow must be.
    pub attributes: Vec<AttributeForm>,
}

impl Form for FlowOffer {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            name: fields.name(Tag::Name)?,
            direction: Direction::read(fields)?,
            medium: read_medium(fields)?,
            group: fields.text(Tag::Group, GROUP_LEN_MAX)?,
            graph: read_graph(fields)?,
            transport: fields.u16(Tag::Transport)?,
            multicast: read_multicast(fields)?,
            bound_bps: fields.u64(Tag::Bound)?,
            unit_len_max: fields.u32(Tag::UnitLenMax)?,
            datagram_len: fields.u16(Tag::DatagramLen)?,
            playout_ns: fields.u64(Tag::Playout)?,
            playout_min_ns: fields.u64_if_there(Tag::PlayoutMin)?,
            digest: fields.flag(Tag::Digest)?,
            attributes: read_attributes(fields, ATTRIBUTES_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow)
            .name(Tag::Name, &self.name)
            .u8(Tag::Direction, self.direction as u8);
        write_medium(&self.medium, to);
        to.text(Tag::Group, &self.group, GROUP_LEN_MAX);
        write_graph(&self.graph, to);
        to.u16(Tag::Transport, self.transport)
            .u64(Tag::Bound, self.bound_bps)
            .u32(Tag::UnitLenMax, self.unit_len_max)
            .u16(Tag::DatagramLen, self.datagram_len)
            .u64(Tag::Playout, self.playout_ns);
        if let Some(least) = self.playout_min_ns {
            to.u64(Tag::PlayoutMin, least);
        }
        if self.digest {
            to.u8(Tag::Digest, 1);
        }
        if let Some(group) = self.multicast {
            write_multicast(group, to);
        }
        // Those of all flows together are counted by the record.
        write_attributes(&self.attributes, usize::MAX, to);
    }
}

fn read_multicast(fields: Fields<'_>) -> Result<Option<SocketAddr>, Fault> {
    let Some(bytes) = fields.bytes_if_there(Tag::Multicast)? else { return Ok(None) };
    let group = read_address(Tag::Multicast, bytes)?;
    if !group.ip().is_multicast() {
        return Err(Tag::Multicast.fault("the address is not one of a group"));
    }
    Ok(Some(group))
}

fn write_multicast(group: SocketAddr, to: &mut Writer) {
    if !group.ip().is_multicast() {
        to.refuse(Tag::Multicast.fault("the address is not one of a group"));
    }
    write_address(Tag::Multicast, group, to);
}

/// An address with its port.
pub(crate) fn read_address(tag: Tag, bytes: &[u8]) -> Result<SocketAddr, Fault> {
    let wrong = || tag.fault(WRONG_LENGTH);
    let (ip, port) = bytes.split_last_chunk::<2>().ok_or_else(wrong)?;
    let ip = match (<[u8; 4]>::try_from(ip), <[u8; 16]>::try_from(ip)) {
        (Ok(four), _) => IpAddr::from(four),
        (_, Ok(six)) => IpAddr::from(six),
        _ => return Err(wrong()),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

pub(crate) fn write_address(tag: Tag, address: SocketAddr, to: &mut Writer) {
    let mut bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes.extend(address.port().to_be_bytes());
    to.bytes(tag, &bytes);
}

fn read_medium(fields: Fields<'_>) -> Result<Medium, Fault> {
    let bytes = fields.bytes(Tag::Medium)?;
    let what = "the medium is not known or has the wrong length";
    Medium::decode(bytes).map_err(|Malformed| Tag::Medium.fault(what))
}

fn write_medium(medium: &Medium, to: &mut Writer) {
    let mut bytes = Vec::new();
    medium.encode(&mut bytes);
    to.bytes(Tag::Medium, &bytes);
}

pub(crate) fn read_graph(fields: Fields<'_>) -> Result<GraphForm, Fault> {
    let bytes = fields.bytes(Tag::Graph)?;
    GraphForm::decode(bytes).map_err(|error| Tag::Graph.fault(error.what()))
}

pub(crate) fn write_graph(graph: &GraphForm, to: &mut Writer) {
    let mut bytes = Vec::new();
    match graph.encode(&mut bytes) {
        Ok(()) => to.bytes(Tag::Graph, &bytes),
        Err(error) => to.refuse(Tag::Graph.fault(error.what())),
    };
}

pub(crate) fn read_attributes(
    fields: Fields<'_>,
    count_max: usize,
) -> Result<Vec<AttributeForm>, Fault> {
    fields.list(Tag::Attribute, count_max, |value| {
        AttributeForm::decode(value).map_err(|Malformed| Tag::Attribute.fault(WRONG_LENGTH))
    })
}

pub(crate) fn write_attributes(list: &[AttributeForm], count_max: usize, to: &mut Writer) {
    if list.len() > count_max {
        to.refuse(Tag::Attribute.fault(TOO_MANY));
    }
    for attribute in list {
        let mut bytes = Vec::new();
        attribute.encode(&mut bytes);
        to.bytes(Tag::Attribute, &bytes);
    }
}

/// What one end says to one flow, in an [`Answer`](crate::session::Answer) or
/// [`Accept`](crate::session::Accept).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowAnswer {
    /// Its number in the session.
    pub flow: u16,
    /// Whether it is taken; if not, the code of docs/errors.md and a text for people, of which at
    /// most [`TEXT_LEN_MAX`] bytes are sent.
    pub accepted: Result<(), (u16, String)>,
    /// The label of the packets that come to this end; without meaning when none do.
    pub label: u32,
    /// The longest datagram that this end takes and makes, in bytes.
    pub datagram_len: u16,
    /// In an [`Accept`](crate::session::Accept) of a flow on a byte stream: what the participant
    /// names the stream by that it dials for the flow. It is for both ends only.
    pub stream_token: Option<[u8; STREAM_TOKEN_LEN]>,
    /// In an [`Accept`](crate::session::Accept) of a flow to a group: how many units had been fed
    /// before; those are not for this participant.
    pub base: Option<u64>,
    /// Beside the token: the port to dial, where it is not that of the control connection.
    pub stream_port: Option<NonZeroU16>,
}

impl Form for FlowAnswer {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            accepted: read_accepted(fields)?,
            label: fields.u32(Tag::Label)?,
            datagram_len: fields.u16(Tag::DatagramLen)?,
            stream_token: fields.array_if_there(Tag::StreamToken)?,
            base: fields.u64_if_there(Tag::Base)?,
            stream_port: fields.port(Tag::StreamPort)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        let (accepted, code, text) = match &self.accepted {
            Ok(()) => (1, CODE_SUCCESS, ""),
            Err((code, text)) => (0, *code, text.as_str()),
        };
        to.u16(Tag::FlowId, self.flow)
            .u8(Tag::Accepted, accepted)
            .u16(Tag::Code, code)
            .text(Tag::Text, text, TEXT_LEN_MAX)
            .u32(Tag::Label, self.label)
            .u16(Tag::DatagramLen, self.datagram_len);
        if let Some(token) = &self.stream_token {
            to.bytes(Tag::StreamToken, token);
        }
        if let Some(base) = self.base {
            to.u64(Tag::Base, base);
        }
        if let Some(port) = self.stream_port {
            to.u16(Tag::StreamPort, port.get());
        }
    }
}

/// The reason of a flow that is taken must be there, and means nothing.
fn read_accepted(fields: Fields<'_>) -> Result<Result<(), (u16, String)>, Fault> {
    let reason = (fields.u16(Tag::Code)?, fields.text(Tag::Text, TEXT_LEN_MAX)?);
    match fields.u8(Tag::Accepted)? {
        0 => Ok(Err(reason)),
        1 => Ok(Ok(())),
        _ => Err(Tag::Accepted.fault("the value is neither 0 nor 1")),
    }
}
