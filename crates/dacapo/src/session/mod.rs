//! Sessions of an application's own bytes, as a program uses them.
//!
//! The life cycle of 1998 (create, listen or connect, activate, deactivate, close) as calls that
//! block, over a [`Host`](crate::Host) that the callers' threads drive. A flow carries *units*:
//! what one call sends, one call receives.
//!
//! ```text
//!        Creator                                 Participant
//!   create(session file)                    connect(uri)
//!     | listen(address)                         |
//!     | accept() <------ joins -----------------+
//!     v                                         v
//!   ready                                     ready
//!     | activate() waits <-------- activate()   |
//!     v                                         v        activate()
//!   active   send, recv, finish               active <----------------+
//!     |         waits  <--------- deactivate()  +-----------------> paused
//!     v                                         v                     |
//!   closed   close(), drop     <----->        closed <----------------+
//! ```
//!
//! - *ready*: the flows are agreed ([`Session::flows`]). The Participant says when they run.
//! - *active*: units go. [`FlowSender::finish`] ends one flow that this end sends: all that was
//!   handed over arrives, then the peer's calls that receive give `None`.
//! - *paused*: nothing is lost and nothing goes; what is handed over waits.
//! - *closed*: from either end, or because contact was lost. What has arrived can still be read at
//!   the end that has not called `close`, and [`Session::account`] says what became of every unit.
//!
//! Who serves a session to several accepts each of them, as a session of its own. A flow that is
//! sent once for all (to a group, or over `tcp-multicast`) is the same flow in all of these: a unit
//! that is sent by one of them goes to everybody, and each has an account of what was sent since it
//! takes part. Who leaves ends it for itself only.
//!
//! Pictures and sound come from the files that the session file names, and go where [`Join`] says:
//! into files, to a player, or counted; else they are declined. [`Session::command`] tells them
//! PLAY, STOP, FF, FR, FWD, RWD, and [`Session::events`] what happens besides.
//!
//! A flow loses what its protocol does not repair. A receiver that reads more slowly than its peer
//! sends holds a flow up that asks for no loss ([`FlowInfo::is_held_up`]): its sender waits. Of any
//! other flow it loses what does not fit the queue (4,096 units, 4 MiB), which the account shows as
//! `overflow`.
//!
//! # Messages
//! Instead of units a flow can carry whole messages of any length, with priorities and tickets:
//! [`Session::message_sender`] and [`Session::message_receiver`] make its ends so.
//!
//! # Threads
//! Calls do the work of the engine on the calling thread; an [`Endpoint`] has one thread more,
//! which works only when no call has for 5 ms, so that life signs go out while the application is
//! busy elsewhere. When the reactor, which all of this is about, has worked for three quarters of
//! the last second, a peer that comes then, or is connected to, gets a further one, with a thread
//! and a lock of its own ([`Counters::reactors`]). Who joins is sent there, to another port, while
//! somebody accepts; a session for a certain number of participants, or with a flow that is sent
//! once for several, stays at the first.
//! [`Endpoint`], [`Creator`], [`Session`], [`FlowSender`] and [`FlowReceiver`] are handles: clone
//! them, send them to other threads. Of the application's code only its sources, sinks and what
//! [reconsiders](Reconsider) a flow run under their locks.
//!
//! # Forks
//! They stay with the process that made them. In a fork of it every call that gives an
//! [error](crate::Error) gives [`Forked`](crate::Code::Forked), others find nothing, none of them
//! waits, and to drop a handle changes nothing for the parent and its peers. A fork may make an
//! [`Endpoint`] of its own.
//!
//! # Errors
//! Every call gives an [error](crate::Error), with a stable number and whose fault it is. A call
//! that was wrong (a flow that does not exist, a session that is closed) has the code 101 and a
//! text that says what to do.
//!
//! ```no_run
//! // One program …
//! let creator = dacapo::create(
//!     r#"
//!     [session]
//!     name = "notes"
//!     [[flow]]
//!     name = "text"
//!     from = "participant"
//!     source = { raw = true }
//!     attributes = { order = "ordered", integrity = "checked" }
//!     "#,
//! )?;
//! creator.listen("127.0.0.1:19981")?;
//! let session = creator.accept()?;
//! let mut text = session.receiver("text")?;
//! while text.recv_with(|unit| println!("{}", String::from_utf8_lossy(&unit)))?.is_some() {}
//! session.close()?;
//! # Ok::<(), dacapo::Error>(())
//! ```
//!
//! ```no_run
//! // … and the other.
//! let session = dacapo::connect("dacapo://127.0.0.1:19981/notes")?;
//! session.activate()?;
//! let mut text = session.sender("text")?;
//! text.send(b"hello")?;
//! text.finish()?;
//! println!("{}", session.close()?);
//! # Ok::<(), dacapo::Error>(())
//! ```

mod account;
mod asked;
mod background;
mod builder;
mod change;
mod creator;
mod deadline;
mod driver;
mod endpoint;
mod ends;
mod entry;
mod event;
mod events;
mod flow;
#[cfg(feature = "async")]
mod futures;
mod handle;
mod ids;
mod join;
mod messages;
mod others;
mod peers;
mod poll;
mod publish;
mod reconsider;
mod shard;
mod state;
mod turn;
mod units;
mod waiters;
mod waiting;
mod wanted;
mod watch;
mod worker;

pub use account::{Account, FlowAccount, Measured, ModuleFigures};
pub use builder::Builder;
pub use change::Change;
pub use creator::{BACKLOG_MAX, Creator};
pub use deadline::Deadline;
pub use driver::Counters;
pub use endpoint::{Endpoint, connect, connect_with, create};
pub use ends::{FlowReceiver, FlowSender, Received};
pub use event::{Event, Events, Outcome};
pub use flow::{Direction, FlowInfo};
#[cfg(feature = "async")]
pub use futures::AsyncEndpoint;
pub use handle::Session;
pub use ids::{FlowId, PeerId, SessionId, Ticket};
pub use join::Join;
pub use messages::{Got, MessageReceiver, MessageSender, SendOutcome};
pub use reconsider::{RECONSIDER_EVERY, Reconsider};
pub use turn::{Command, Turned};
pub use units::UnitView;
pub use waiting::Wait;
pub use watch::TICKETS_MAX;
