//! [`Other`]: what is left of a request when a module does not exist.

use super::cell::{Cell, Chosen};
use dacapo::Catalogue;
use dacapo::plan::Assumptions;
use std::sync::Arc;

/// How much dearer the best other graph must be, in its processor time.
const DEARER: f64 = 1.10;

/// What becomes of the request without the module.
pub enum Other {
    /// It is refused.
    Refused,
    /// It is met by this graph, at so many times the processor time.
    Met(String, f64),
}

/// What becomes of a cell's request without its module.
pub fn of(cell: &Cell, chosen: &Chosen) -> Other {
    let mut catalogue = Catalogue::default();
    catalogue.modules.retain(|entry| entry.spec.name != cell.module);
    let assumptions =
        Assumptions { catalogue: Some(Arc::new(catalogue)), ..Assumptions::default() };
    match cell.chosen_from(&assumptions) {
        Ok(other) => Other::Met(other.graph, other.cpu_ppb as f64 / chosen.cpu_ppb.max(1) as f64),
        Err(_) => Other::Refused,
    }
}

impl Other {
    /// Whether the module has its place: without it the request is refused, or a tenth dearer.
    pub fn is_worse(&self) -> bool {
        match self {
            Self::Refused => true,
            Self::Met(_, times) => *times >= DEARER,
        }
    }

    /// Times the processor time; none where the request is refused.
    pub fn cost(&self) -> Option<f64> {
        match self {
            Self::Refused => None,
            Self::Met(_, times) => Some(*times),
        }
    }

    /// In words.
    pub fn text(&self) -> String {
        match self {
            Self::Refused => "refused".to_owned(),
            Self::Met(graph, times) => format!("{graph}, {times:.2} ×"),
        }
    }
}
