//! Sessions of an application's bytes over real sockets: what the calls of `dacapo::session`
//! promise.
//!
//! Ports are the system's choice. Time decides nothing: a test waits for what is to happen, and a
//! watchdog ends one that would wait for ever.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod any_stream;
mod ends;
mod groups;
mod life;
mod lost_flow;
mod messages;
mod misuse;
mod near;
mod processes;
mod quic;
mod reactors;
mod threads;
mod units;
mod world;
mod xtp;
