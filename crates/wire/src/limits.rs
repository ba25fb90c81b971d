//! The bounds of the control protocol: what a decoder refuses to go beyond and an encoder to make.
//!
//! Invariant: every bound on bytes is smaller than what the length field in front of it can say.

/// The body of a record, in bytes.
pub const BODY_LEN_MAX: usize = 65_536;

/// A name of a session or flow, in bytes.
pub const NAME_LEN_MAX: usize = 64;

/// A text for people, in bytes.
pub const TEXT_LEN_MAX: usize = 512;

/// The title of a session, in bytes.
pub const TITLE_LEN_MAX: usize = 256;

/// The group that a flow belongs to, in bytes.
pub const GROUP_LEN_MAX: usize = 64;

/// What a CONTROL or its answer carries, in bytes.
pub const PAYLOAD_LEN_MAX: usize = 4_096;

/// The hints of a PREPARE, in bytes.
pub const HINTS_LEN_MAX: usize = 256;

/// A graph, in bytes. It binds before [`MODULES_MAX`] modules of [`PARAMS_MAX`] parameters each.
pub const GRAPH_LEN_MAX: usize = 4_096;

/// The modules of a graph.
pub const MODULES_MAX: usize = 32;

/// The parameters of one module.
pub const PARAMS_MAX: usize = 32;

/// The flows of an OFFER, ANSWER or ACCEPT.
pub const FLOWS_MAX: usize = 64;

/// The attributes of an OFFER, those of all its flows together.
pub const ATTRIBUTES_MAX: usize = 256;

/// The modules that a JOIN says the participant has.
pub const JOIN_MODULES_MAX: usize = 256;

/// The transports that a JOIN says the participant has.
pub const JOIN_TRANSPORTS_MAX: usize = 16;

/// The attributes that a JOIN asks of every flow.
pub const JOIN_ATTRIBUTES_MAX: usize = 32;

/// The further addresses of a Creator in an OFFER.
pub const FURTHER_MAX: usize = 3;

/// The sessions of a LISTING. With the longest names and titles [`BODY_LEN_MAX`] binds before.
pub const SESSIONS_MAX: usize = 256;

/// The entries of a REPORT that say how many units were dropped for a reason: one per reason.
pub const DROPPED_MAX: usize = 256;
