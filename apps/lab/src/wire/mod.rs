//! Faults on real sockets: whole cores in threads and processes, and who disturbs them.
//!
//! ```text
//!   station   a Host in a thread (in a network namespace, if need be) that serves or joins
//!      |        tap: its UDP, counted and listened to      ports: units that say who they are
//!      |
//!   junk, initials     datagrams that nobody asked for, at a rate, from many addresses
//!   knocks             TCP connections that say nothing, or say it slowly
//!   process            the same in a process of its own (`dacapo-lab-end`), to stop and to kill
//!      |
//!   junk_run, flood, churn, cuts, stops       what the rows of `faults/wire.rs`, `contact.rs` run
//! ```
//!
//! What is measured here is measured with a clock, so figures differ from run to run; whether a row
//! holds depends on what happened and never on how long it took, except in its full form, which
//! judges its own targets.
//!
//! Invariants: only loopback and network namespaces made here are used; every socket, thread,
//! process and namespace is gone when a run returns.

pub mod churn;
pub mod cuts;
pub mod flood;
pub mod initials;
pub mod junk;
pub mod junk_run;
pub mod knocks;
pub mod ports;
pub mod process;
pub mod rounds;
pub mod station;
pub mod stops;
pub mod tap;

/// Every program of the lab counts what it has on the heap, thread by thread.
#[global_allocator]
static HEAP: dacapo_heap::Counting = dacapo_heap::Counting;
