//! The records of a change: a running flow gets another graph, in a new epoch.
//!
//! ```text
//!  sender of the flow              receiver
//!             <----------------   REQUEST    somebody there would like another graph
//!    PREPARE    ---------------->            the graph of epoch e
//!             <----------------   READY      a label for e; or CANNOT
//!    SWITCHED   ---------------->            e begins with this unit; or ABORT
//!             <----------------   DONE       the old epoch is settled
//! ```
//!
//! Source: docs/protocol.md, "Records".

use crate::flow::{read_graph, write_graph};
use crate::graph::GraphForm;
use crate::limits::{HINTS_LEN_MAX, TEXT_LEN_MAX};
use crate::tlv::{Fault, Fields, Form, Tag, Writer};

/// How an epoch gives way to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The new one is made before the old one is drained: nothing is interrupted.
    #[default]
    Make,
    /// The old one is dead and is dropped first.
    Break,
}

impl Mode {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        match fields.u8(Tag::Mode)? {
            0 => Ok(Self::Make),
            1 => Ok(Self::Break),
            _ => Err(Tag::Mode.fault("the mode is neither 0 nor 1")),
        }
    }
}

/// The receiver is to build the graph of a new epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepare {
    /// Which flow.
    pub flow: u16,
    /// The new epoch.
    pub epoch: u64,
    /// The sender's label for what the receiver's modules send back in it.
    pub label: u32,
    /// How the old one gives way.
    pub mode: Mode,
    /// The new graph.
    pub graph: GraphForm,
    /// The hash over what both have said; keys are bound to it.
    pub transcript: [u8; 32],
    /// About the path, at most [`HINTS_LEN_MAX`] bytes.
    pub hints: Vec<u8>,
    /// The number of the transport of the new epoch; not said: that of the flow.
    pub transport: Option<u16>,
}

impl Form for Prepare {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            label: fields.u32(Tag::Label)?,
            mode: Mode::read(fields)?,
            graph: read_graph(fields)?,
            transcript: fields.array(Tag::Transcript)?,
            hints: fields.blob(Tag::Hints, HINTS_LEN_MAX)?,
            transport: fields.u16_if_there(Tag::Transport)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow).u64(Tag::Epoch, self.epoch).u32(Tag::Label, self.label);
        to.u8(Tag::Mode, self.mode as u8);
        write_graph(&self.graph, to);
        to.bytes(Tag::Transcript, &self.transcript).blob(Tag::Hints, &self.hints, HINTS_LEN_MAX);
        if let Some(transport) = self.transport {
            to.u16(Tag::Transport, transport);
        }
    }
}

/// The graph of the new epoch is built, and its packets are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Which flow.
    pub flow: u16,
    /// The new epoch.
    pub epoch: u64,
    /// The label of its packets.
    pub label: u32,
    /// In mode [`Mode::Break`]: the first unit that was not released.
    pub position: Option<u64>,
}

impl Form for Ready {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            label: fields.u32(Tag::Label)?,
            position: fields.u64_if_there(Tag::Position)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow).u64(Tag::Epoch, self.epoch).u32(Tag::Label, self.label);
        if let Some(position) = self.position {
            to.u64(Tag::Position, position);
        }
    }
}

/// The graph of the new epoch cannot be built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cannot {
    /// Which flow.
    pub flow: u16,
    /// The epoch that will not be.
    pub epoch: u64,
    /// Why, for programs: docs/errors.md.
    pub code: u16,
    /// Why, for people; at most [`TEXT_LEN_MAX`] bytes are sent.
    pub text: String,
}

impl Form for Cannot {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            code: fields.u16(Tag::Code)?,
            text: fields.text(Tag::Text, TEXT_LEN_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow).u64(Tag::Epoch, self.epoch).u16(Tag::Code, self.code).text(
            Tag::Text,
            &self.text,
            TEXT_LEN_MAX,
        );
    }
}

/// The new epoch will not be; only before its first unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abort {
    /// Which flow.
    pub flow: u16,
    /// The epoch that will not be.
    pub epoch: u64,
}

impl Form for Abort {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { flow: fields.u16(Tag::FlowId)?, epoch: fields.u64(Tag::Epoch)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow).u64(Tag::Epoch, self.epoch);
    }
}

/// The new epoch has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Which flow.
    pub flow: u16,
    /// The new epoch.
    pub epoch: u64,
    /// The number of its first unit.
    pub base: u64,
}

impl Form for Switched {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            base: fields.u64(Tag::Base)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow).u64(Tag::Epoch, self.epoch).u64(Tag::Base, self.base);
    }
}

/// An old epoch is settled, and its graph is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Which flow.
    pub flow: u16,
    /// The old epoch.
    pub epoch: u64,
    /// Units of it that were delivered.
    pub delivered: u64,
    /// Units of it that were not.
    pub lost: u64,
}

impl Form for Done {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            epoch: fields.u64(Tag::Epoch)?,
            delivered: fields.u64(Tag::Delivered)?,
            lost: fields.u64(Tag::Lost)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow)
            .u64(Tag::Epoch, self.epoch)
            .u64(Tag::Delivered, self.delivered)
            .u64(Tag::Lost, self.lost);
    }
}

/// The receiver would like another graph; the sender decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Which flow.
    pub flow: u16,
    /// The graph that it would like.
    pub graph: GraphForm,
    /// Why, for people; at most [`TEXT_LEN_MAX`] bytes are sent.
    pub text: String,
}

impl Form for Request {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            flow: fields.u16(Tag::FlowId)?,
            graph: read_graph(fields)?,
            text: fields.text(Tag::Text, TEXT_LEN_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::FlowId, self.flow);
        write_graph(&self.graph, to);
        to.text(Tag::Text, &self.text, TEXT_LEN_MAX);
    }
}
