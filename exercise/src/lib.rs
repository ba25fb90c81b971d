//! Toys: parts of one's own that dacapo composes, agrees and runs without a change in the project.
//!
//! | kind | toy | what it shows |
//! |---|---|---|
//! | C-module | [`sum8`] | one byte per packet, chosen by name in a session file |
//! | T-module | [`unix`] | control and flows over Unix sockets, at addresses that are none of IP |
//! | controller | [`steady`] | a pace for all flows of a path, which the program chooses |
//! | access module | [`numbers`] | a source and a sink of numbered units, named in a session file |

pub mod numbers;
pub mod steady;
pub mod sum8;
pub mod unix;
