//! Records as bytes that no encoder of ours would write.

use dacapo_wire::message::{Message, MessageKind};

/// A field.
pub fn field(tag: u16, value: &[u8]) -> Vec<u8> {
    [&tag.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

/// A record of that type with that body, whatever they are.
pub fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    [&header(kind, body.len() as u32)[..], body].concat()
}

/// A record of a kind that exists.
pub fn record_of(kind: MessageKind, fields: &[Vec<u8>]) -> Vec<u8> {
    record(kind.code(), &fields.concat())
}

/// The header of a record of that length, alone.
pub fn header(kind: u16, len: u32) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &len.to_be_bytes()].concat()
}

/// A message as an encoder of ours writes it.
pub fn bytes_of(message: impl Into<Message>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.into().encode(&mut bytes).expect("the test's message is legal");
    bytes
}

/// A legal record, with other bytes behind its body, which its length counts.
pub fn with_tail(message: impl Into<Message>, tail: &[u8]) -> Vec<u8> {
    let bytes = bytes_of(message);
    let kind = u16::from_be_bytes([bytes[0], bytes[1]]);
    record(kind, &[&bytes[6..], tail].concat())
}
