//! The records of the hub: two cores meet, look at what there is, and part.
//!
//! ```text
//!  dialer                          listener
//!    HELLO      ---------------->            versions, who it is
//!             <----------------   WELCOME    the version, who it is, the token of the path
//!             <----------------   REFUSE     … or why not
//!    LIST       <-------------->  LISTING    the sessions that can be joined
//!    GOODBYE    <-------------->
//! ```
//!
//! Source: docs/protocol.md, "Records".

use crate::limits::{SESSIONS_MAX, TEXT_LEN_MAX, TITLE_LEN_MAX};
use crate::tlv::{Fault, Fields, Form, Tag, Writer};
use std::num::NonZeroU16;

/// The dialer's first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The lowest version that it speaks.
    pub version_min: u16,
    /// The highest version that it speaks.
    pub version_max: u16,
    /// Drawn at random at the start of the core, to know a core that dials itself.
    pub instance: [u8; 16],
    /// The boot of the host; the same at both ends together with the namespace: one clock.
    pub boot: [u8; 16],
    /// The namespace of time within the host.
    pub time_namespace: u64,
}

impl Form for Hello {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            version_min: fields.u16(Tag::VersionMin)?,
            version_max: fields.u16(Tag::VersionMax)?,
            instance: fields.array(Tag::Instance)?,
            boot: fields.array(Tag::Boot)?,
            time_namespace: fields.u64(Tag::TimeNamespace)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::VersionMin, self.version_min)
            .u16(Tag::VersionMax, self.version_max)
            .bytes(Tag::Instance, &self.instance)
            .bytes(Tag::Boot, &self.boot)
            .u64(Tag::TimeNamespace, self.time_namespace);
    }
}

/// The listener's answer to a [`Hello`] that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// As in [`Hello`].
    pub instance: [u8; 16],
    /// As in [`Hello`].
    pub boot: [u8; 16],
    /// As in [`Hello`].
    pub time_namespace: u64,
    /// What path probes show to belong to this connection; secret.
    pub path_token: [u8; 16],
}

impl Form for Welcome {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            version: fields.u16(Tag::Version)?,
            instance: fields.array(Tag::Instance)?,
            boot: fields.array(Tag::Boot)?,
            time_namespace: fields.u64(Tag::TimeNamespace)?,
            path_token: fields.array(Tag::PathToken)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::Version, self.version)
            .bytes(Tag::Instance, &self.instance)
            .bytes(Tag::Boot, &self.boot)
            .u64(Tag::TimeNamespace, self.time_namespace)
            .bytes(Tag::PathToken, &self.path_token);
    }
}

/// No, to a [`Hello`] or on a session's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refuse {
    /// Why, for programs: docs/errors.md.
    pub code: u16,
    /// Why, for people; at most [`TEXT_LEN_MAX`] bytes are sent.
    pub text: String,
    /// The port of the same host at which the session is to be joined instead; only to a JOIN that
    /// says `follows`.
    pub port: Option<NonZeroU16>,
}

impl Form for Refuse {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            code: fields.u16(Tag::Code)?,
            text: fields.text(Tag::Text, TEXT_LEN_MAX)?,
            port: fields.port(Tag::Port)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::Code, self.code).text(Tag::Text, &self.text, TEXT_LEN_MAX);
        if let Some(port) = self.port {
            to.u16(Tag::Port, port.get());
        }
    }
}

/// Asks which sessions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Comes back in the [`Listing`].
    pub request: u32,
}

impl Form for List {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { request: fields.u32(Tag::Request)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request);
    }
}

/// Which sessions there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The number of the [`List`] that it answers.
    pub request: u32,
    /// At most [`SESSIONS_MAX`].
    pub sessions: Vec<SessionEntry>,
}

impl Form for Listing {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            request: fields.u32(Tag::Request)?,
            sessions: fields.elements(Tag::Session, SESSIONS_MAX)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.u32(Tag::Request, self.request).elements(Tag::Session, &self.sessions, SESSIONS_MAX);
    }
}

/// One session of a [`Listing`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEntry {
    /// What to JOIN; see [`crate::name`].
    pub name: String,
    /// What it is, for people; at most [`TITLE_LEN_MAX`] bytes are sent.
    pub title: String,
    /// How many flows it has.
    pub flow_count: u16,
    /// How many participants it has now.
    pub participants: u32,
}

impl Form for SessionEntry {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            name: fields.name(Tag::Name)?,
            title: fields.text(Tag::Title, TITLE_LEN_MAX)?,
            flow_count: fields.u16(Tag::FlowCount)?,
            participants: fields.u32(Tag::Participants)?,
        })
    }

    fn write(&self, to: &mut Writer) {
        to.name(Tag::Name, &self.name)
            .text(Tag::Title, &self.title, TITLE_LEN_MAX)
            .u16(Tag::FlowCount, self.flow_count)
            .u32(Tag::Participants, self.participants);
    }
}

/// The connection is about to be closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goodbye {
    /// Why, for programs: docs/errors.md.
    pub code: u16,
    /// Why, for people; at most [`TEXT_LEN_MAX`] bytes are sent.
    pub text: String,
}

impl Form for Goodbye {
    fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Ok(Self { code: fields.u16(Tag::Code)?, text: fields.text(Tag::Text, TEXT_LEN_MAX)? })
    }

    fn write(&self, to: &mut Writer) {
        to.u16(Tag::Code, self.code).text(Tag::Text, &self.text, TEXT_LEN_MAX);
    }
}
