//! Decoder: [`Frame`] and [`Body`], a whole packet as views of the bytes that came in.
//!
//! ```text
//!   bytes -> 32 or more? -> version 1? -> dlen? -> checksum? -> format?  Frame::open
//!         -> the segments of the format, each with its length            Frame::body
//! ```
//!
//! In two steps, because who refuses a FIRST for its address still needs its key to say so.

use super::header::Raw;
use super::{
    AddressSegment, Control, Diagnostic, Fault, Format, HEADER_LEN, Header, Options, Spans,
    Traffic, TrafficControl, VERSION, sum,
};

/// A packet whose header, length and checksum are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: Header,
    segments: &'a [u8],
}

/// Length of a tag in bytes.
pub const TAG_LEN: usize = 8;

/// Bytes of the stream, with the tag in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Payload<'a> {
    /// The 8 bytes that `BTAG` announces. They take no sequence numbers (decided here).
    pub tag: Option<[u8; TAG_LEN]>,
    /// The stream's bytes.
    pub data: &'a [u8],
}

/// The segments after the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// DATA.
    Data(Payload<'a>),
    /// CNTL.
    Cntl(Control),
    /// FIRST.
    First(AddressSegment, Traffic, Payload<'a>),
    /// ECNTL.
    Ecntl(Control, Spans<'a>),
    /// TCNTL.
    Tcntl(TrafficControl, Traffic),
    /// JOIN, whose form in revision 4.0 is not published.
    Join(&'a [u8]),
    /// JCNTL.
    Jcntl(TrafficControl, AddressSegment, Traffic),
    /// DIAG.
    Diag(Diagnostic<'a>),
}

impl<'a> Frame<'a> {
    /// Reads the header and checks the whole.
    ///
    /// # Errors
    /// [`Fault::Short`], [`Fault::Version`], [`Fault::Length`], [`Fault::Checksum`],
    /// [`Fault::Format`], in the order in which it is looked.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Fault> {
        let (head, segments) = bytes.split_at_checked(HEADER_LEN).ok_or(Fault::Short)?;
        let raw = Raw::parse(head).or(Err(Fault::Short))?;
        if raw.version() != VERSION {
            return Err(Fault::Version(raw.version()));
        }
        if u64::from(raw.data_len) != segments.len() as u64 {
            return Err(Fault::Length);
        }
        let is_whole = !raw.options().has(Options::NOCHECK);
        let covered = if is_whole { segments } else { &[] };
        if sum(&[head, covered]) != 0xFFFF {
            return Err(Fault::Checksum);
        }
        Ok(Self { header: raw.header()?, segments })
    }

    /// Reads the segments.
    ///
    /// # Errors
    /// What is wrong with the first segment that is not as it must be.
    pub fn body(&self) -> Result<Body<'a>, Fault> {
        let bytes = self.segments;
        match self.header.format {
            Format::Data => self.payload(bytes).map(Body::Data),
            Format::Cntl => {
                let (control, rest) = Control::parse(bytes)?;
                nothing_after(rest, Fault::Control)?;
                Ok(Body::Cntl(control))
            }
            Format::First => {
                let (address, rest) = AddressSegment::parse(bytes)?;
                let (traffic, rest) = Traffic::parse(rest)?;
                Ok(Body::First(address, traffic, self.payload(rest)?))
            }
            Format::Ecntl => {
                let (control, rest) = Control::parse(bytes)?;
                Ok(Body::Ecntl(control, Spans::parse(rest)?))
            }
            Format::Tcntl => {
                let (control, rest) = TrafficControl::parse(bytes)?;
                let (traffic, rest) = Traffic::parse(rest)?;
                nothing_after(rest, Fault::Traffic)?;
                Ok(Body::Tcntl(control, traffic))
            }
            Format::Join => Ok(Body::Join(bytes)),
            Format::Jcntl => {
                let (control, rest) = TrafficControl::parse(bytes)?;
                let (address, rest) = AddressSegment::parse(rest)?;
                let (traffic, rest) = Traffic::parse(rest)?;
                nothing_after(rest, Fault::Traffic)?;
                Ok(Body::Jcntl(control, address, traffic))
            }
            Format::Diag => Diagnostic::parse(bytes).map(Body::Diag),
        }
    }

    fn payload(&self, bytes: &'a [u8]) -> Result<Payload<'a>, Fault> {
        let (tag, data) = if self.header.options.has(Options::BTAG) {
            let (tag, data) = bytes.split_first_chunk().ok_or(Fault::Tag)?;
            (Some(*tag), data)
        } else {
            (None, bytes)
        };
        let end = self.header.seq.checked_add(data.len() as u64);
        end.map(|_| Payload { tag, data }).ok_or(Fault::Sequence)
    }
}

fn nothing_after(rest: &[u8], fault: Fault) -> Result<(), Fault> {
    if rest.is_empty() { Ok(()) } else { Err(fault) }
}

impl Body<'_> {
    /// The format whose segments these are.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self {
            Self::Data(_) => Format::Data,
            Self::Cntl(_) => Format::Cntl,
            Self::First(..) => Format::First,
            Self::Ecntl(..) => Format::Ecntl,
            Self::Tcntl(..) => Format::Tcntl,
            Self::Join(_) => Format::Join,
            Self::Jcntl(..) => Format::Jcntl,
            Self::Diag(_) => Format::Diag,
        }
    }

    /// Appends the segments.
    pub fn emit(&self, into: &mut Vec<u8>) {
        match self {
            Self::Data(payload) => payload.emit(into),
            Self::Cntl(control) => control.emit(into),
            Self::First(address, traffic, payload) => {
                address.emit(into);
                traffic.emit(into);
                payload.emit(into);
            }
            Self::Ecntl(control, spans) => {
                control.emit(into);
                spans.emit(into);
            }
            Self::Tcntl(control, traffic) => {
                control.emit(into);
                traffic.emit(into);
            }
            Self::Join(bytes) => into.extend_from_slice(bytes),
            Self::Jcntl(control, address, traffic) => {
                control.emit(into);
                address.emit(into);
                traffic.emit(into);
            }
            Self::Diag(diagnostic) => diagnostic.emit(into),
        }
    }
}

impl Payload<'_> {
    fn emit(&self, into: &mut Vec<u8>) {
        if let Some(tag) = &self.tag {
            into.extend_from_slice(tag);
        }
        into.extend_from_slice(self.data);
    }
}
