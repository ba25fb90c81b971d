//! [`Builder`]: what an endpoint is told before it starts.

use super::endpoint::Endpoint;
use crate::catalogue::with_modules;
use crate::host::{Host, HostConfig, user_identity};
use dacapo_core::Error;
use dacapo_lift::Entry;
use dacapo_security::Identity;
use std::fmt;
use std::sync::Arc;

/// What an endpoint is told before it starts: nothing is this user's identity, the modules and
/// transports of this build, and what the environment says.
#[derive(Default)]
pub struct Builder {
    config: Option<HostConfig>,
    identity: Option<Identity>,
    modules: Vec<Entry>,
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
        self.modules.push(entry);
        self
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
    /// As [`Endpoint::new`]; two modules of one name or number, naming both.
    pub fn build(self) -> Result<Endpoint, Error> {
        let catalogue = Arc::new(with_modules(&self.modules)?);
        let config = self.config.map_or_else(HostConfig::from_env, Ok)?;
        let identity = self.identity.map_or_else(user_identity, Ok)?;
        Endpoint::with_host(Host::of(identity, config, catalogue)?)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules: Vec<&str> = self.modules.iter().map(|entry| entry.spec.name).collect();
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("modules", &modules)
            .finish_non_exhaustive()
    }
}
