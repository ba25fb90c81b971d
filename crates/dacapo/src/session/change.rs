//! [`Change`]: what a flow is changed to while it runs.

use crate::plan::graph_of;
use dacapo_core::{Code, Command, Error, SessionId};
use dacapo_lift::Catalogue;

/// What a flow is changed to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The protocol of these modules, from the application to the network, as it is printed
    /// everywhere: `segment ! sequence hold=60ms ! checksum`.
    Graph(String),
}

impl Change {
    /// What the core is told.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] with what is wrong.
    pub(super) fn command(
        &self,
        session: SessionId,
        flow: usize,
        catalogue: &Catalogue,
    ) -> Result<Command, Error> {
        let Self::Graph(text) = self;
        let graph = graph_of(text, catalogue);
        let graph = graph.map_err(|what| Error::new(Code::IllegalGraph, what))?;
        Ok(Command::Change { session, flow, graph })
    }
}
