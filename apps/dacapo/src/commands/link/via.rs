//! [`Via`]: an emulated link on the way of a session, in the process that joins it.
//!
//! ```text
//!   player ── 127.0.0.1:any ── relay: forward, back ── server
//! ```

use super::figures;
use crate::app::config_from_env;
use crate::cli::OverLink;
use crate::exit::Failure;
use dacapo::emulator::{PathStats, Relay, RelayConfig, RelayHandle};
use dacapo::host::HostConfig;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// A link on the way to a server.
pub struct Via {
    relay: RelayHandle,
    text: String,
    seed: u64,
}

impl Via {
    /// What a host must be that may go over a link.
    ///
    /// # Errors
    /// What the environment says of it is nothing that there is.
    pub fn host(over: &OverLink) -> Result<HostConfig, Failure> {
        Ok(HostConfig { streams: over.link.is_none(), ..config_from_env()? })
    }

    /// A link to the server at an address such as `HOST:PORT`, where one is asked for.
    pub fn open(over: &OverLink, authority: &str) -> Result<Option<Self>, Failure> {
        let Some(link) = &over.link else { return Ok(None) };
        let to = dacapo::host::resolve(authority);
        let to = to.map_err(|error| Failure::core(&format!("connect to {authority}"), &error))?;
        let mut config = RelayConfig::new((Ipv4Addr::LOCALHOST, 0).into(), to);
        (config.forward, config.back) = (link.clone(), link.clone());
        config.seed = over.link_seed;
        let relay = Relay::spawn(config).map_err(|error| Failure::run_time("the link", error))?;
        Ok(Some(Self { relay, text: link.to_string(), seed: over.link_seed }))
    }

    /// A failure to reach the server, which names the near end of the link, names the server too.
    pub fn explain(mut failure: Failure, authority: &str) -> Failure {
        // That of a signal says nothing.
        if !failure.text.is_empty() {
            failure.text = format!("connect to {authority} over the link: {}", failure.text);
        }
        failure
    }

    /// Where the server is found now.
    pub fn addr(&self) -> SocketAddr {
        self.relay.local_addr()
    }

    /// What it does, for people.
    pub fn describe(&self) -> String {
        format!("over a link with {} both ways (seed {})", self.text, self.seed)
    }

    /// Ends it; the account of what it did.
    pub fn close(self) -> LinkAccount {
        LinkAccount { text: self.text, seed: self.seed, stats: self.relay.stop() }
    }
}

/// What a link on the way has done.
pub struct LinkAccount {
    text: String,
    seed: u64,
    stats: PathStats,
}

impl LinkAccount {
    /// Whether it accounts for every datagram.
    pub fn is_right(&self) -> bool {
        self.stats.closes() && self.stats.fault.is_none()
    }

    /// Prints it.
    pub fn print(&self) {
        figures::print_on_the_way(&self.stats);
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let mut json = figures::to_json(&self.stats);
        json["config"] = json!(self.text);
        json["seed"] = json!(self.seed);
        json
    }
}
