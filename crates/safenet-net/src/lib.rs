//! The SAFENET message service over a network: calls that wait.
//!
//! [`MessageHost`], the service of `dacapo-safenet` on the engine that a host of `dacapo-xtp-net`
//! turns, with SEND_MESSAGE and GET_MESSAGE as the document has them: the synchronous one returns
//! when the peer's user has the message, and every one by a time.
//!
//! Packets come, leave and are sent again in calls only; who has nothing else to do calls
//! [`MessageHost::turn`]. Its messages are the same: who brings an event loop uses the two
//! crates below as they are.
//!
//! ```text
//!   send_message_and_wait   get_message   wait      calls: try, else turn until it is so, or time
//!        |      ^ outcome        ^ part    ^ outcome
//!   Messages  ==  Engine  ==  Host  ---- network                                       host.rs
//!        `--- ends, tidings: kept until they are asked for                             heard.rs
//!                    before a wait: watch for a moment, or sleep                        watch.rs
//! ```
//!
//! Two hosts, one of which waits for the other:
//!
//! ```
//! use dacapo_safenet::{Config, Outcome, Route};
//! use dacapo_safenet_net::MessageHost;
//! use dacapo_xtp_net::{Host, InternetConfig, Udp};
//! use std::time::Duration;
//!
//! let port = 7;
//! let end = || -> Result<MessageHost, Box<dyn std::error::Error>> {
//!     let network = Udp::bind(&InternetConfig::new(([127, 0, 0, 1], 0).into()))?;
//!     let host = Host::new(Box::new(network), dacapo_xtp::Config::default())?;
//!     Ok(MessageHost::new(host, Config::new(([127, 0, 0, 1], port).into())))
//! };
//! let (mut near, mut far) = (end()?, end()?);
//! far.listen(port)?;
//! let route = Route::host(far.local(), port);
//! let receiver = std::thread::spawn(move || {
//!     let until = far.after(Duration::from_secs(60));
//!     let message = far.get_message(port, until).map(|part| part.data);
//!     // What the sender is told leaves in this call; here nobody else comes.
//!     (far, message)
//! });
//! let until = near.after(Duration::from_secs(60));
//! let outcome = near.send_message_and_wait(route, b"track 17".to_vec(), until)?;
//! assert_eq!(outcome, Outcome::Delivered);
//! assert_eq!(receiver.join().map_err(|_| "a panic")?.1?, b"track 17");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fault;
mod heard;
mod host;
mod watch;

pub use fault::{Awaited, CallError};
pub use host::MessageHost;
