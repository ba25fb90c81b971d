//! Sessions of an application's bytes over real sockets: what the calls of `dacapo::session`
//! promise.
//!
//! Ports are the system's choice. Time decides nothing: a test waits for what is to happen, and a
//! watchdog ends one that would wait for ever.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod any_stream;
mod compressed;
mod dialing;
mod ends;
mod face;
mod futures;
mod groups;
mod handles;
mod life;
mod links;
mod loans;
mod lost_flow;
#[path = "../media/mod.rs"]
mod media;
mod messages;
mod misuse;
mod near;
mod own_loop;
mod processes;
mod quic;
mod reactors;
mod reconsider;
mod threads;
mod units;
#[path = "../../../sys/tests/common/veth.rs"]
mod veth;
mod waits;
mod world;
mod xtp;
