//! The numbers by which networks know XTP.

/// The Ethertype of XTP.
pub const ETHERTYPE: u16 = 0x817D;
/// The protocol number of XTP in IP headers.
pub const PROTOCOL: u8 = 36;
