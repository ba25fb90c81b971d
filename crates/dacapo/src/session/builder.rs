//! [`Builder`]: what an endpoint is told before it starts.

use super::endpoint::Endpoint;
use crate::Catalogue;
use crate::access::AccessEntry;
use crate::host::{Host, HostConfig, user_identity};
use dacapo_core::Error;
use dacapo_lift::Entry;
use dacapo_path::ControllerEntry;
use dacapo_security::Identity;
use dacapo_transport::entry::TransportEntry;
use std::fmt;
use std::sync::Arc;

/// What an endpoint is told before it starts: nothing is this user's identity, the parts of this
/// build, and what the environment says.
#[derive(Default)]
pub struct Builder {
    config: Option<HostConfig>,
    identity: Option<Identity>,
    catalogue: Catalogue,
    controller: Option<&'static str>,
}

impl Builder {
    /// Nothing is told yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A C-module of the program's own, chosen and named in session files like those that are
    /// there. Both ends of a flow need it; numbers from 0xF000 on are free for this.
    #[must_use]
    pub fn module(mut self, entry: Entry) -> Self {
        self.catalogue.modules.push(entry);
        self
    }

    /// A transport of the program's own, chosen and named in session files like those that are
    /// there. Both ends of a flow need it; numbers from 0xF000 on are free for this.
    #[must_use]
    pub fn transport(mut self, entry: TransportEntry) -> Self {
        self.catalogue.transports.push(entry);
        self
    }

    /// An access module of the program's own, named by `source` and `sink` in session files and by
    /// [`Join::access`](crate::Join::access). Only the end that names it needs it; numbers from
    /// 0xF000 on are free for this.
    #[must_use]
    pub fn access(mut self, entry: AccessEntry) -> Self {
        self.catalogue.access.push(entry);
        self
    }

    /// A controller of the program's own, for paths of datagrams; [`Builder::control_by`] chooses
    /// it. It is this end's alone: no peer needs to know it.
    #[must_use]
    pub fn controller(mut self, entry: ControllerEntry) -> Self {
        self.catalogue.controllers.push(entry);
        self
    }

    /// The controller of each path of datagrams, by its name; when nothing is said `bbr`, and
    /// `reserved` where both ends are on one host.
    #[must_use]
    pub fn control_by(self, name: &'static str) -> Self {
        Self { controller: Some(name), ..self }
    }

    /// What flows are composed of, instead of the parts of this build.
    #[must_use]
    pub fn catalogue(self, catalogue: Catalogue) -> Self {
        Self { catalogue, ..self }
    }

    /// The identity that others see, instead of this user's.
    #[must_use]
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// How its host is set, instead of what the environment says.
    #[must_use]
    pub fn config(self, config: HostConfig) -> Self {
        Self { config: Some(config), ..self }
    }

    /// The endpoint.
    ///
    /// # Errors
    /// As [`Endpoint::new`]; two parts of a kind of one name or number, naming both; a controller
    /// that is not there, with those that are.
    pub fn build(self) -> Result<Endpoint, Error> {
        let config = self.config.map_or_else(HostConfig::from_env, Ok)?;
        let controller = self.controller.or(config.controller);
        let config = HostConfig { controller, ..config };
        self.catalogue.specs()?;
        let identity = self.identity.map_or_else(user_identity, Ok)?;
        Endpoint::with_host(Host::of(identity, config, Arc::new(self.catalogue))?)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("transports", &self.catalogue.transports)
            .finish_non_exhaustive()
    }
}
