//! [`Cell`]: a request and a path, and the module that is right for them.

use dacapo::plan::{Assumptions, Plan};
use dacapo_lift::Path;
use dacapo_qos::{AttributeKey, Attributes, SessionFile};
use dacapo_wire::session::FlowOffer;
use std::time::Duration;

/// A cell of the page.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of its row: the module and a number.
    pub name: String,
    /// The module.
    pub module: String,
    /// What it is about.
    pub title: String,
    /// The session file, of one flow.
    pub session: String,
    /// The graph that stands there.
    pub expected: String,
}

/// What a cell asks.
pub struct Asked {
    /// Of the flow.
    pub attributes: Attributes,
    /// What is assumed of the path.
    pub path: Path,
    /// The time from one unit to the next.
    pub every: Duration,
}

/// What is chosen for a cell.
pub struct Chosen {
    /// The graph as text.
    pub graph: String,
    /// The flow as it is offered.
    pub offer: FlowOffer,
    /// Processor time of both ends, in ppb of a core.
    pub cpu_ppb: u64,
}

impl Cell {
    /// What is chosen from everything that there is.
    ///
    /// # Errors
    /// Nothing is: why.
    pub fn chosen(&self) -> Result<Chosen, String> {
        self.chosen_from(&Assumptions::default())
    }

    /// What is chosen from this.
    ///
    /// # Errors
    /// Nothing is: why.
    pub fn chosen_from(&self, assumptions: &Assumptions) -> Result<Chosen, String> {
        let plan = Plan::parse(&self.session, &self.name, assumptions);
        let plan = plan.map_err(|errors| errors.to_string())?;
        let explanation = plan.explain().pop().ok_or("the session has no flow")?.explanation;
        let offer = plan.offers().next().ok_or("the session has no flow")?.clone();
        Ok(Chosen { graph: explanation.graph, offer, cpu_ppb: explanation.cost.cpu_ppb })
    }

    /// What its session file asks.
    ///
    /// # Errors
    /// It is no session file, has no flow, or asks no frame rate.
    pub fn asked(&self) -> Result<Asked, String> {
        let file = SessionFile::parse(&self.session, &self.name).map_err(|it| it.to_string())?;
        let flow = file.flows.into_iter().next().ok_or("the session has no flow")?;
        let rate = flow.attributes.get(AttributeKey::FrameRate).and_then(|it| it.min.or(it.max));
        let rate_uhz = rate.filter(|it| *it > 0).ok_or("no frame_rate is asked")?;
        Ok(Asked {
            attributes: flow.attributes,
            path: file.path.map(|it| it.value).unwrap_or_default().path(),
            every: Duration::from_nanos(1_000_000_000_000_000 / rate_uhz),
        })
    }
}
