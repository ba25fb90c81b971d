//! [`Came`]: a packet that has come, read.

use crate::wire::{Body, Header};
use std::net::SocketAddr;

/// A packet, where it came from, and how long it is.
#[derive(Clone, Copy)]
pub struct Came<'a> {
    pub from: SocketAddr,
    pub header: Header,
    pub body: Body<'a>,
    /// Its length in bytes.
    pub len: usize,
}
