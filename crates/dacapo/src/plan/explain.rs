//! [`FlowExplanation`]: why a flow has its protocol, as text and as data.

use super::choice::Chosen;
use super::need::Need;
use crate::access::found::AssumedMedium;
use dacapo_qos::configure::Explanation;
use serde::Serialize;
use std::fmt;

/// Why a flow has the protocol that it has.
#[derive(Clone, Debug, Serialize)]
pub struct FlowExplanation {
    /// The flow's name.
    pub flow: String,
    /// What is asked, in words.
    pub asks: String,
    /// What stands in for its medium, where the file is missing.
    pub assumed_medium: Option<AssumedMedium>,
    /// The choice and its reasons.
    pub explanation: Explanation,
}

impl FlowExplanation {
    pub(super) fn of(need: &Need, chosen: &Chosen) -> Self {
        Self {
            flow: need.name.clone(),
            asks: chosen.attributes.to_string(),
            assumed_medium: need.found.assumed.clone(),
            explanation: chosen.choice.explanation.clone(),
        }
    }
}

impl fmt::Display for FlowExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks = if self.asks.is_empty() { "nothing" } else { &self.asks };
        writeln!(f, "{}: asks for {asks}", self.flow)?;
        self.explanation.fmt(f)?;
        match &self.assumed_medium {
            Some(assumed) => write!(f, "\nassumed of the medium: {assumed}"),
            None => Ok(()),
        }
    }
}
