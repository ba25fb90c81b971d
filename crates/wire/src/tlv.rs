//! Fields: the tagged values that records and the elements of their lists are made of.
//!
//! ```text
//!   0         2         4            4 + length
//!  +---------+---------+------------+---------+---------+---
//!  | tag u16 | len u16 |   value    | tag u16 | len u16 | …
//!  +---------+---------+------------+---------+---------+---
//!  an element of a list is a field whose value is again fields; deeper it does not go
//! ```
//!
//! Invariants: fields may come in any order; one that the reader does not ask for is passed over;
//! one that may be there once and is there twice is refused, so that no two readers take different
//! ones. Every step consumes at least the four bytes of a header. Nothing is allocated before the
//! bytes that it is made of were seen to be there.
//!
//! Source: docs/protocol.md, "Fields".

use crate::bytes::Reader;
use crate::{name, text};
use std::num::NonZeroU16;

macro_rules! tags {
    ($($variant:ident = $code:literal $name:literal,)*) => {
        /// What a field is, by its tag.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Tag {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl Tag {
            /// Every tag, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the page.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The tag of that number; `None` when there is none in this version.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

tags! {
    VersionMin = 1 "version_min",
    VersionMax = 2 "version_max",
    Version = 3 "version",
    Instance = 4 "instance",
    Boot = 5 "boot",
    TimeNamespace = 6 "time_namespace",
    PathToken = 7 "path_token",
    Code = 8 "code",
    Text = 9 "text",
    Request = 10 "request",
    Name = 11 "name",
    Title = 12 "title",
    Session = 13 "session",
    Flow = 14 "flow",
    FlowId = 15 "flow_id",
    Label = 16 "label",
    Accepted = 17 "accepted",
    Direction = 18 "direction",
    DatagramLen = 19 "datagram_len",
    Epoch = 20 "epoch",
    Units = 21 "units",
    Bytes = 22 "bytes",
    Hash = 23 "hash",
    Delivered = 24 "delivered",
    Late = 25 "late",
    Lost = 26 "lost",
    Dropped = 27 "dropped",
    Duplicates = 28 "duplicates",
    Unknown = 29 "unknown",
    Payload = 30 "payload",
    Module = 31 "module",
    Mode = 32 "mode",
    Transcript = 33 "transcript",
    Base = 34 "base",
    Position = 35 "position",
    Graph = 36 "graph",
    Hints = 37 "hints",
    Participants = 38 "participants",
    FlowCount = 39 "flow_count",
    Transport = 40 "transport",
    Bound = 41 "bound",
    UnitLenMax = 42 "unit_len_max",
    Medium = 43 "medium",
    Attribute = 45 "attribute",
    Group = 46 "group",
    Playout = 47 "playout",
    StreamToken = 48 "stream_token",
    Live = 49 "live",
    GiveUp = 50 "give_up",
    Digest = 51 "digest",
    Multicast = 52 "multicast",
    StreamPort = 53 "stream_port",
    Follows = 54 "follows",
    Port = 55 "port",
    Further = 56 "further",
    PlayoutMin = 57 "playout_min",
}

impl Tag {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    pub(crate) const fn fault(self, what: &'static str) -> Fault {
        Fault { field: self.code(), what }
    }
}

pub(crate) const WRONG_LENGTH: &str = "the value has the wrong length";

/// What is wrong with which field; its record is added by who knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The tag; 0 when it could not be read.
    pub field: u16,
    pub what: &'static str,
}

/// A record's body, or an element of a list: something of fields.
pub(crate) trait Form: Sized {
    fn read(fields: Fields<'_>) -> Result<Self, Fault>;
    fn write(&self, to: &mut Writer);
}

/// Bytes that were seen to be whole fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, _, rest) = split(rest)?;
        }
        Ok(Self(bytes))
    }

    /// The values of all fields with that tag.
    pub fn all(self, tag: Tag) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        let fields = std::iter::from_fn(move || {
            let (code, value, after) = split(rest).ok()?;
            rest = after;
            Some((code, value))
        });
        fields.filter(move |(code, _)| *code == tag.code()).map(|(_, value)| value)
    }

    /// The value of a field that may be missing.
    pub fn find(self, tag: Tag) -> Result<Option<&'a [u8]>, Fault> {
        let mut values = self.all(tag);
        let value = values.next();
        match values.next() {
            Some(_) => Err(tag.fault("the field is there twice")),
            None => Ok(value),
        }
    }

    /// The value of a field that must be there.
    pub fn bytes(self, tag: Tag) -> Result<&'a [u8], Fault> {
        self.find(tag)?.ok_or(tag.fault("the field is missing"))
    }

    pub fn bytes_if_there(self, tag: Tag) -> Result<Option<&'a [u8]>, Fault> {
        self.find(tag)
    }

    pub fn array<const N: usize>(self, tag: Tag) -> Result<[u8; N], Fault> {
        exactly(tag, self.bytes(tag)?)
    }

    pub fn u8(self, tag: Tag) -> Result<u8, Fault> {
        self.array(tag).map(u8::from_be_bytes)
    }

    pub fn u16(self, tag: Tag) -> Result<u16, Fault> {
        self.array(tag).map(u16::from_be_bytes)
    }

    pub fn u32(self, tag: Tag) -> Result<u32, Fault> {
        self.array(tag).map(u32::from_be_bytes)
    }

    pub fn u64(self, tag: Tag) -> Result<u64, Fault> {
        self.array(tag).map(u64::from_be_bytes)
    }

    pub fn array_if_there<const N: usize>(self, tag: Tag) -> Result<Option<[u8; N]>, Fault> {
        self.find(tag)?.map(|value| exactly(tag, value)).transpose()
    }

    pub fn u8_if_there(self, tag: Tag) -> Result<Option<u8>, Fault> {
        Ok(self.array_if_there(tag)?.map(u8::from_be_bytes))
    }

    /// A switch; left out it is off.
    pub fn flag(self, tag: Tag) -> Result<bool, Fault> {
        match self.u8_if_there(tag)? {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(_) => Err(tag.fault("the value is neither 0 nor 1")),
        }
    }

    /// Nobody listens at port 0.
    pub fn port(self, tag: Tag) -> Result<Option<NonZeroU16>, Fault> {
        let none = || tag.fault("the value is 0");
        self.u16_if_there(tag)?.map(|port| NonZeroU16::new(port).ok_or_else(none)).transpose()
    }

    pub fn u16_if_there(self, tag: Tag) -> Result<Option<u16>, Fault> {
        Ok(self.array_if_there(tag)?.map(u16::from_be_bytes))
    }

    pub fn u32_if_there(self, tag: Tag) -> Result<Option<u32>, Fault> {
        Ok(self.array_if_there(tag)?.map(u32::from_be_bytes))
    }

    pub fn u64_if_there(self, tag: Tag) -> Result<Option<u64>, Fault> {
        Ok(self.array_if_there(tag)?.map(u64::from_be_bytes))
    }

    /// All numbers with that tag, at most `count_max`.
    pub fn u16_list(self, tag: Tag, count_max: usize) -> Result<Vec<u16>, Fault> {
        self.list(tag, count_max, |value| exactly(tag, value).map(u16::from_be_bytes))
    }

    pub fn text(self, tag: Tag, len_max: usize) -> Result<String, Fault> {
        let bytes = at_most(tag, self.bytes(tag)?, len_max)?;
        let text = std::str::from_utf8(bytes).map_err(|_| tag.fault("the text is not UTF-8"))?;
        Ok(text::sanitise(text, len_max))
    }

    pub fn blob(self, tag: Tag, len_max: usize) -> Result<Vec<u8>, Fault> {
        at_most(tag, self.bytes(tag)?, len_max).map(<[u8]>::to_vec)
    }

    pub fn name(self, tag: Tag) -> Result<String, Fault> {
        let name = std::str::from_utf8(self.bytes(tag)?)
            .map_err(|_| tag.fault("a name has a character other than a-z 0-9 . _ -"))?;
        name::check(name).map_err(|error| tag.fault(error.what()))?;
        Ok(name.to_owned())
    }

    /// All fields with that tag, at most `count_max`, each read by `read`.
    pub fn list<T>(
        self,
        tag: Tag,
        count_max: usize,
        mut read: impl FnMut(&'a [u8]) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut list = Vec::new();
        for value in self.all(tag) {
            if list.len() == count_max {
                return Err(tag.fault(TOO_MANY));
            }
            list.push(read(value)?);
        }
        Ok(list)
    }

    /// All elements with that tag, at most `count_max`.
    pub fn elements<T: Form>(self, tag: Tag, count_max: usize) -> Result<Vec<T>, Fault> {
        self.list(tag, count_max, |value| T::read(Fields::parse(value)?))
    }
}

pub(crate) const TOO_MANY: &str = "there are more than the protocol allows";

fn split(bytes: &[u8]) -> Result<(u16, &[u8], &[u8]), Fault> {
    const CUT: Fault = Fault { field: 0, what: "the header of a field is cut off" };
    let mut reader = Reader(bytes);
    let code = reader.u16().map_err(|_| CUT)?;
    let len = reader.u16().map_err(|_| CUT)?;
    let value = reader.take(usize::from(len));
    let what = "the field is longer than what it is in";
    value.map(|value| (code, value, reader.0)).map_err(|_| Fault { field: code, what })
}

fn exactly<const N: usize>(tag: Tag, value: &[u8]) -> Result<[u8; N], Fault> {
    value.try_into().map_err(|_| tag.fault(WRONG_LENGTH))
}

fn at_most(tag: Tag, value: &[u8], len_max: usize) -> Result<&[u8], Fault> {
    if value.len() > len_max { Err(tag.fault(TOO_LONG)) } else { Ok(value) }
}

const TOO_LONG: &str = "the value is longer than the protocol allows";

/// Writes fields; remembers the first thing that cannot be written, which [`Self::finish`] tells.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    fault: Option<Fault>,
}

impl Writer {
    pub fn bytes(&mut self, tag: Tag, value: &[u8]) -> &mut Self {
        let Ok(len) = u16::try_from(value.len()) else { return self.refuse(tag.fault(TOO_LONG)) };
        self.bytes.extend_from_slice(&tag.code().to_be_bytes());
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(value);
        self
    }

    pub fn u8(&mut self, tag: Tag, value: u8) -> &mut Self {
        self.bytes(tag, &[value])
    }

    pub fn u16(&mut self, tag: Tag, value: u16) -> &mut Self {
        self.bytes(tag, &value.to_be_bytes())
    }

    pub fn u16_list(&mut self, tag: Tag, list: &[u16], count_max: usize) -> &mut Self {
        if list.len() > count_max {
            return self.refuse(tag.fault(TOO_MANY));
        }
        list.iter().fold(self, |to, value| to.u16(tag, *value))
    }

    pub fn u32(&mut self, tag: Tag, value: u32) -> &mut Self {
        self.bytes(tag, &value.to_be_bytes())
    }

    pub fn u64(&mut self, tag: Tag, value: u64) -> &mut Self {
        self.bytes(tag, &value.to_be_bytes())
    }

    /// The text, made safe and cut, so that the peer has what we would print.
    pub fn text(&mut self, tag: Tag, value: &str, len_max: usize) -> &mut Self {
        self.bytes(tag, text::sanitise(value, len_max).as_bytes())
    }

    pub fn blob(&mut self, tag: Tag, value: &[u8], len_max: usize) -> &mut Self {
        match at_most(tag, value, len_max) {
            Ok(value) => self.bytes(tag, value),
            Err(fault) => self.refuse(fault),
        }
    }

    pub fn name(&mut self, tag: Tag, value: &str) -> &mut Self {
        match name::check(value) {
            Ok(()) => self.bytes(tag, value.as_bytes()),
            Err(error) => self.refuse(tag.fault(error.what())),
        }
    }

    pub fn elements<T: Form>(&mut self, tag: Tag, list: &[T], count_max: usize) -> &mut Self {
        if list.len() > count_max {
            return self.refuse(tag.fault(TOO_MANY));
        }
        for element in list {
            let mut inner = Self::default();
            element.write(&mut inner);
            match inner.finish() {
                Ok(bytes) => self.bytes(tag, &bytes),
                Err(fault) => self.refuse(fault),
            };
        }
        self
    }

    pub fn refuse(&mut self, fault: Fault) -> &mut Self {
        self.fault.get_or_insert(fault);
        self
    }

    pub fn finish(self) -> Result<Vec<u8>, Fault> {
        self.fault.map_or(Ok(self.bytes), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_are_distinct_and_come_back() {
        assert!(Tag::ALL.is_sorted_by(|a, b| a.code() < b.code()));
        for &tag in Tag::ALL {
            assert_eq!(Tag::from_code(tag.code()), Some(tag));
        }
        assert_eq!((Tag::from_code(0), Tag::from_code(44), Tag::from_code(58)), (None, None, None));
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused_and_a_list_is_not() {
        let mut writer = Writer::default();
        writer.u16(Tag::Code, 1).u16(Tag::Code, 2);
        let bytes = writer.finish().expect("fits");
        let fields = Fields::parse(&bytes).expect("whole");
        assert_eq!(fields.u16(Tag::Code), Err(Tag::Code.fault("the field is there twice")));
        assert_eq!(
            fields.list(Tag::Code, 2, |value| exactly(Tag::Code, value)),
            Ok(vec![[0, 1], [0, 2]])
        );
        assert!(fields.list(Tag::Code, 1, |value| exactly::<2>(Tag::Code, value)).is_err());
    }

    #[test]
    fn a_cut_field_is_refused_by_its_tag() {
        assert_eq!(Fields::parse(&[0, 8, 0]).map(|_| ()).map_err(|fault| fault.field), Err(0));
        assert_eq!(
            Fields::parse(&[0, 8, 0, 2, 1]).map(|_| ()).map_err(|fault| fault.field),
            Err(8)
        );
        assert!(Fields::parse(&[]).is_ok() && Fields::parse(&[9, 9, 0, 0]).is_ok());
    }

    #[test]
    fn the_first_thing_that_cannot_be_written_is_told() {
        let mut writer = Writer::default();
        writer.name(Tag::Name, "").blob(Tag::Payload, &[0; 9], 8).bytes(Tag::Hints, &[0; 65_536]);
        assert_eq!(writer.finish(), Err(Tag::Name.fault("a name is empty")));
        let mut writer = Writer::default();
        writer.bytes(Tag::Hints, &[0; 65_536]);
        assert_eq!(writer.finish(), Err(Tag::Hints.fault(TOO_LONG)));
    }
}
